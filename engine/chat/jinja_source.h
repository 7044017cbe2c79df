// Rewrites parts of Jinja's syntax that llama.cpp's lexer does not read as parts that it reads.
#pragma once

#include <string>

namespace jinja {
struct lexer_result;
}

namespace engine {

/// Returns the template with the same meaning and the same lines:
///   raw      {% raw %}a{{b}}{% endraw %} becomes {% if true %}{{ 'a{{b}}' }}{% endif %}
///   escapes  \u00e9, \x41, \101 and \a in strings become their characters. An unknown escape such as \d keeps its
///            backslash, as in Python
/// Other parts stay unchanged, so that the lexer refuses them and names their place.
std::string with_known_syntax(const std::string& text);

/// Joins two neighbouring tokens "/" to the operator "//", which Arithmetic of jinja_strict.cpp computes.
void join_floor_divisions(jinja::lexer_result& lexed);

}  // namespace engine

// Reading arithmetic out of completions: calculator marks, final numbers, letters, scores.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/data/record.h"

namespace engine {

/// Whole numbers with + - * /, the usual precedence.
/// @return  nothing if it is not such an expression, a division leaves a rest, or it overflows
std::optional<std::int64_t> evaluate_expression(std::string_view expression);

/// Recomputes every mark `<<11+33=44>>44` of a text: left side, result and the number after it.
/// @return  empty, or which mark is wrong
std::string wrong_mark(std::string_view text);

/// The last number after the last `trigger` ("" = in the whole text), commas removed, a trailing
/// ".0" ignored. @return  nothing if there is none, or it is not whole
std::optional<std::int64_t> last_number(std::string_view text, std::string_view trigger);

/// All marks right, and the number after `trigger` is the answer.
CheckResult check_final_number(std::string_view text,
                               std::int64_t answer,
                               std::string_view trigger);

/// The first option letter, in parentheses or as a word of its own, after the last "answer is".
std::optional<char> chosen_letter(std::string_view text);

/// All marks right, and the letter is the answer's.
CheckResult check_choice(std::string_view text, std::string_view answer);

/// The score an evaluation gives: the first number behind the first word "score", or the one that a
/// text without that word begins with. Of "8/10" and "8 out of 10" it is 8, of "from 1 to 10: 8"
/// too.
/// @return  nothing if there is none, or it lies outside 0..10
std::optional<double> read_score(std::string_view text);

/// A score on the right side of 5.
CheckResult check_score(std::string_view text, bool good);

}  // namespace engine

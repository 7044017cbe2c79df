// Replaces those nodes of a parsed template for which llama.cpp's engine gives another text than
// jinja2:
//   undefined   a member of an undefined value, or adding one, is an error
//   none        is printed as None, joined with ~ as None, and kept by the filter default
//   lists       are printed as Python writes them
//   characters  lengths, indices, slices and white space of strings count code points, not bytes
//   numbers     the operator //, the sign of %, division by zero, floats with the shortest digits
//   filters     round, sum, unique and format (jinja_filters.h)
//   input       the result of a method or filter on a message's content stays marked as content
#pragma once

namespace jinja {
struct program;
}

namespace engine {

/// Replaces the nodes of `program`.
void make_strict(jinja::program& program);

}  // namespace engine

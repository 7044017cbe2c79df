// Filters and operators of jinja2 that llama.cpp's engine does not have, or has with other results.
#pragma once

#include <string>
#include <vector>

#include "jinja/value.h"

namespace engine {

/// True for round, sum, unique and format.
bool is_added_filter(const std::string& name);

/// v|name(args...), for a name of is_added_filter(). Sums are of integers, uniques of strings, numbers, none and
/// booleans, and formats have %s, %d and %%.
/// @throws jinja::raised_exception  for other values
jinja::value added_filter(const std::string& name,
                          const jinja::value& v,
                          const std::vector<jinja::value>& args);

/// a % b and a // b of numbers, with Python's signs.
/// @throws jinja::raised_exception  b is 0
jinja::value remainder_of(const jinja::value& a, const jinja::value& b);
jinja::value floor_division_of(const jinja::value& a, const jinja::value& b);

/// True for integers and floats, not for booleans.
bool is_number(const jinja::value& v);
/// Every number of a template must be within +-2^53: the engine keeps each integer as a float too, and each float as
/// an integer.
/// @throws jinja::raised_exception  otherwise; nan is allowed
void check_range(double x);

}  // namespace engine

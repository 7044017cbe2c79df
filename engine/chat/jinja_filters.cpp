#include "engine/chat/jinja_filters.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "engine/chat/jinja_text.h"
#include "jinja/runtime.h"

namespace engine {
namespace {

using jinja::is_val;
using jinja::mk_val;
using jinja::value;
using Values = std::vector<value>;

[[noreturn]] void fail(const std::string& message) {
  throw jinja::raised_exception(message);
}

value rounded_to_nearest(const value& v, int digits) {
  if (is_val<jinja::value_int>(v)) return v;
  if (!std::isfinite(v->as_float())) return v;
  // printf rounds the exact binary value, half to even, as Python does.
  return mk_val<jinja::value_float>(
      std::strtod(fmt::format("{:.{}f}", v->as_float(), digits).c_str(), nullptr));
}

/// round(precision=0, method='common')
value round_of(const value& v, const Values& args) {
  constexpr std::int64_t kMostDigits = 15;
  if (!is_number(v) || args.size() > 2) fail("round: takes a number, digits and a method");
  std::int64_t digits = 0;
  if (!args.empty()) {
    if (!is_val<jinja::value_int>(args[0])) fail("round: digits are an integer");
    digits = args[0]->as_int();
  }
  if (digits < 0 || digits > kMostDigits) fail("round: 0 to 15 digits are supported");
  const std::string method = args.size() > 1 ? args[1]->as_string().str() : "common";
  if (method == "common") return rounded_to_nearest(v, static_cast<int>(digits));
  if (method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  const double power = std::pow(10.0, static_cast<double>(digits)), x = v->as_float() * power;
  return mk_val<jinja::value_float>((method == "ceil" ? std::ceil(x) : std::floor(x)) / power);
}

value sum_of(const value& v, const Values& args) {
  if (!is_val<jinja::value_array>(v) || !args.empty()) fail("sum: takes a list of integers");
  std::int64_t sum = 0;
  for (const value& item : v->val_arr)
    if (!is_val<jinja::value_int>(item) || __builtin_add_overflow(sum, item->as_int(), &sum))
      fail("sum: takes a list of integers");
  check_range(static_cast<double>(sum));
  return mk_val<jinja::value_int>(sum);
}

/// Equal for values that Python holds for equal, strings without regard to case.
std::string unique_key(const value& v) {
  if (is_val<jinja::value_string>(v)) return "s" + in_case(v->val_str, false)->val_str.str();
  if (v->is_none()) return "none";
  const bool is_whole =
      is_val<jinja::value_int>(v) || is_val<jinja::value_bool>(v) ||
      (is_val<jinja::value_float>(v) && v->as_float() == std::floor(v->as_float()));
  if (is_whole && std::abs(v->val_flt) < 1e15) return fmt::format("n{}", v->val_int);
  if (!is_number(v)) fail("unique: takes strings and numbers");
  return is_val<jinja::value_int>(v) ? fmt::format("n{}", v->val_int)
                                     : fmt::format("f{}", v->val_flt);
}

value unique_of(const value& v, const Values& args) {
  if (!is_val<jinja::value_array>(v) || !args.empty()) fail("unique: takes a list");
  auto result = mk_val<jinja::value_array>();
  std::set<std::string> seen;
  for (const value& item : v->val_arr)
    if (seen.insert(unique_key(item)).second) result->push_back(item);
  return result;
}

/// The decimal digits of %d.
value whole_number(const value& v) {
  if (!is_number(v) || !std::isfinite(v->val_flt)) fail("format: %d takes a number");
  return mk_val<jinja::value_string>(std::to_string(v->as_int()));
}

void append_part(jinja::string& out, std::string text, bool is_input) {
  if (!text.empty()) out.parts.push_back({is_input, std::move(text)});
}

value format_of(const value& v, const Values& args) {
  if (!is_val<jinja::value_string>(v)) fail("format: takes a string");
  auto result = mk_val<jinja::value_string>();
  jinja::string& out = result->val_str;
  std::size_t n_used = 0;
  for (const jinja::string_part& part : v->val_str.parts) {
    std::string plain;
    for (std::size_t i = 0; i < part.val.size(); i++) {
      if (part.val[i] != '%') {
        plain += part.val[i];
        continue;
      }
      const char kind = ++i < part.val.size() ? part.val[i] : '\0';
      if (kind == '%') {
        plain += '%';
        continue;
      }
      if (kind != 's' && kind != 'd') fail("format: %s, %d and %% are supported");
      if (n_used == args.size()) fail("not enough arguments for format string");
      const value& given = args[n_used++];
      append_part(out, std::move(plain), part.is_input);
      plain.clear();
      out.append((kind == 's' ? printed_value(given) : whole_number(given))->val_str);
    }
    append_part(out, std::move(plain), part.is_input);
  }
  if (n_used < args.size()) fail("not all arguments converted during string formatting");
  return result;
}

}  // namespace

bool is_number(const value& v) {
  return is_val<jinja::value_int>(v) || is_val<jinja::value_float>(v);
}

void check_range(double x) {
  constexpr double kMost = 0x1p53;
  if (std::abs(x) > kMost) fail("numbers beyond 2^53 are not supported");
}

bool is_added_filter(const std::string& name) {
  return name == "round" || name == "sum" || name == "unique" || name == "format";
}

value added_filter(const std::string& name, const value& v, const Values& args) {
  if (name == "round") return round_of(v, args);
  if (name == "sum") return sum_of(v, args);
  return name == "unique" ? unique_of(v, args) : format_of(v, args);
}

value remainder_of(const value& a, const value& b) {
  if (b->as_float() == 0) fail("integer modulo by zero");
  if (is_val<jinja::value_int>(a) && is_val<jinja::value_int>(b)) {
    const std::int64_t divisor = b->as_int();
    const std::int64_t rest = a->as_int() % divisor;
    return mk_val<jinja::value_int>(rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor
                                                                             : rest);
  }
  const double rest = std::fmod(a->as_float(), b->as_float());
  return mk_val<jinja::value_float>(
      rest != 0 && (rest < 0) != (b->as_float() < 0) ? rest + b->as_float() : rest);
}

value floor_division_of(const value& a, const value& b) {
  if (b->as_float() == 0) fail("integer division or modulo by zero");
  const value rest = remainder_of(a, b);
  if (is_val<jinja::value_int>(rest)) {
    const std::int64_t quotient = a->as_int() / b->as_int();
    const bool has_other_sign =
        (a->as_int() % b->as_int() != 0) && (a->as_int() < 0) != (b->as_int() < 0);
    return mk_val<jinja::value_int>(quotient - (has_other_sign ? 1 : 0));
  }
  const double quotient = (a->as_float() - rest->as_float()) / b->as_float();
  if (quotient == 0)
    return mk_val<jinja::value_float>(std::copysign(0.0, a->as_float() / b->as_float()));
  const double floor = std::floor(quotient);
  check_range(floor);
  return mk_val<jinja::value_float>(quotient - floor > 0.5 ? floor + 1 : floor);
}

}  // namespace engine

// Python values as C++ values, their repr() texts, and integer division as Python defines it. The py
// generator computes the expected results of its tests with these, so that making records needs no
// Python; tests compare them with CPython.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace engine {

using PyInt = std::int64_t;
using PyNumbers = std::vector<PyInt>;      ///< list of int
using PyWords = std::vector<std::string>;  ///< list of str
using PyGrid = std::vector<PyNumbers>;     ///< list of lists of int
/// dict, in the order of insertion, as Python keeps it.
template <class Key, class Value>
using PyDict = std::vector<std::pair<Key, Value>>;
using PyTable = PyDict<std::string, PyInt>;

/// An argument of a generated call.
using PyArgument = std::variant<PyInt, std::string, PyNumbers, PyWords, PyTable, PyGrid>;

/// a // b: rounded down, also for negative numbers. @param b  not 0
constexpr PyInt py_divided(PyInt a, PyInt b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

/// a % b: has the sign of b. @param b  not 0
constexpr PyInt py_modulo(PyInt a, PyInt b) {
  return a - py_divided(a, b) * b;
}

/// repr() of a bool: "True". All overloads require strings without quotes, backslashes and control
/// characters.
inline std::string py_repr(bool value) {
  return value ? "True" : "False";
}
/// repr() of an int.
inline std::string py_repr(PyInt value) {
  return std::to_string(value);
}
/// repr() of a str.
inline std::string py_repr(std::string_view value) {
  return "'" + std::string(value) + "'";
}
/// repr() of a str. Without this overload a std::string would be ambiguous.
inline std::string py_repr(const std::string& value) {
  return py_repr(std::string_view(value));
}
/// repr() of a str of one character.
inline std::string py_repr(char value) {
  return py_repr(std::string_view(&value, 1));
}
// Declared before pairs, because a dict can hold lists.
template <class Item>
std::string py_repr(const std::vector<Item>& items);
/// repr() of a value, or "None".
template <class Value>
std::string py_repr(const std::optional<Value>& value) {
  return value ? py_repr(*value) : "None";
}

/// A key and its value as repr() of a dict writes them: "'a': 1".
template <class Key, class Value>
std::string py_repr(const std::pair<Key, Value>& entry) {
  return py_repr(entry.first) + ": " + py_repr(entry.second);
}

template <class T>
inline constexpr bool kIsPyEntry = false;
template <class Key, class Value>
inline constexpr bool kIsPyEntry<std::pair<Key, Value>> = true;

/// repr() of a list, or of a dict if the items are pairs.
template <class Item>
std::string py_repr(const std::vector<Item>& items) {
  std::string text(kIsPyEntry<Item> ? "{" : "[");
  for (std::size_t i = 0; i < items.size(); i++) text += (i > 0 ? ", " : "") + py_repr(items[i]);
  return text + (kIsPyEntry<Item> ? "}" : "]");
}

/// repr() of an argument.
inline std::string py_repr(const PyArgument& argument) {
  return std::visit([](const auto& value) { return py_repr(value); }, argument);
}

/// dict[key]; a missing key is added with a default value, as setdefault() does.
template <class Key, class Value>
Value& py_entry(PyDict<Key, Value>& dict, const Key& key) {
  const auto found =
      std::find_if(dict.begin(), dict.end(), [&](const auto& one) { return one.first == key; });
  return found != dict.end() ? found->second : dict.emplace_back(key, Value{}).second;
}

}  // namespace engine

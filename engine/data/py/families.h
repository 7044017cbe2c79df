// The function families of the py task. A family is one pattern of a function: a description,
// alternative bodies that compute the same, and the C++ function that computes the results which the
// tests of a record expect. Slots in the texts:
//   $a $b   arguments        $x $y  items of a loop     $r $t  results
//   $P $p   a predicate on $x and its description       $O $o  an operation on $x and its description
//   $K      a small number   $L     a letter            $F     the function's own name
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/py/values.h"

namespace engine {

/// A predicate or operation on $x: its code and its description, with the slots $x, $K and $L.
struct PyPiece {
  std::string_view code;
  std::string_view phrase;
};

/// The kind of the items that pieces work on: numbers, characters of a str, or words.
enum class PyItems { Numbers, Characters, Words };

/// The predicates for that kind of items.
std::span<const PyPiece> py_predicates(PyItems items);
/// The operations for that kind of items; characters have none of their own and get those of numbers.
std::span<const PyPiece> py_operations(PyItems items);

/// The pieces and constants that fill the slots of one function.
struct PyChoices {
  int predicate = 0;  ///< index in py_predicates()
  int operation = 0;  ///< index in py_operations()
  PyInt k = 2;        ///< $K, never 0
  char letter = 'a';  ///< $L

  /// The value of $P for an item.
  bool holds(PyInt x) const;
  bool holds(char x) const;                ///< of a character
  bool holds(const std::string& x) const;  ///< of a word
  /// The value of $O for an item.
  PyInt changed(PyInt x) const;
  std::string changed(const std::string& x) const;  ///< of a word

  /// The items for which $P holds.
  template <class Item>
  std::vector<Item> kept(const std::vector<Item>& items) const {
    std::vector<Item> out;
    for (const Item& x : items)
      if (holds(x)) out.push_back(x);
    return out;
  }
  /// $O of each item.
  template <class Item>
  std::vector<Item> mapped(const std::vector<Item>& items) const {
    std::vector<Item> out;
    for (const Item& x : items) out.push_back(changed(x));
    return out;
  }
};

/// One call of a function of a family: its slots and its arguments.
struct PyCall : PyChoices {
  const std::vector<PyArgument>& arguments;  ///< [family.kinds.size()], of the types the kinds name

  /// Keeps a reference to the arguments.
  PyCall(const PyChoices& choices, const std::vector<PyArgument>& given)
      : PyChoices(choices), arguments(given) {}
  /// Argument i as a value of type T. @throws std::bad_variant_access  for another type
  template <class T>
  const T& get(std::size_t i = 0) const {
    return std::get<T>(arguments[i]);
  }
  PyInt number(std::size_t i = 0) const { return get<PyInt>(i); }               ///< argument i
  const PyNumbers& list(std::size_t i = 0) const { return get<PyNumbers>(i); }  ///< argument i
  const std::string& text() const { return get<std::string>(); }                ///< argument 0
  const PyWords& words() const { return get<PyWords>(); }                       ///< argument 0
  const PyTable& table() const { return get<PyTable>(); }                       ///< argument 0
  const PyGrid& grid() const { return get<PyGrid>(); }                          ///< argument 0
};

/// A pattern of functions.
struct PyFamily {
  std::string_view id;
  /// One letter an argument: l list of numbers, w list of words, s string, n number, d dictionary,
  /// g grid, k small number.
  std::string_view kinds;
  std::string_view verbs;            ///< beginnings of function names, separated by spaces
  std::string_view doc;              ///< noun phrase for the returned value
  int level;                         ///< 1: levels 1 and 2; 2: only level 2
  std::string_view alternatives[3];  ///< bodies without the function's indent; the last may be ""
  std::string (*result)(const PyCall&);  ///< repr() of the returned value

  /// The alternative bodies. [2 or 3]
  std::span<const std::string_view> bodies() const {
    return std::span(alternatives).first(alternatives[2].empty() ? 2 : 3);
  }
};

/// All families, in a fixed order: records depend on it.
std::span<const PyFamily> py_families();

std::span<const PyFamily> py_list_families();   ///< functions of lists of numbers
std::span<const PyFamily> py_text_families();   ///< functions of strings and lists of words
std::span<const PyFamily> py_other_families();  ///< functions of dictionaries, numbers and grids

}  // namespace engine

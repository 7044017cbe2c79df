#include "engine/data/py/families.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>

#include "engine/data/text.h"

namespace engine {

namespace {

constexpr PyPiece kNumberPredicates[] = {{"$x % 2 == 0", "even numbers"},
                                         {"$x % 2 == 1", "odd numbers"},
                                         {"$x > $K", "numbers greater than $K"},
                                         {"$x < $K", "numbers less than $K"},
                                         {"$x % $K == 0", "numbers divisible by $K"},
                                         {"$x >= $K", "numbers of at least $K"},
                                         {"$x != $K", "numbers different from $K"},
                                         {"$x % 10 == $K", "numbers ending in $K"}};
constexpr PyPiece kCharacterPredicates[] = {{"$x in 'aeiou'", "small vowels"},
                                            {"$x.isdigit()", "digits"},
                                            {"$x.isupper()", "upper-case letters"},
                                            {"$x.islower()", "lower-case letters"},
                                            {"$x.isalpha()", "letters"},
                                            {"$x != ' '", "characters other than spaces"},
                                            {"$x == '$L'", "characters equal to '$L'"},
                                            {"$x != '$L'", "characters other than '$L'"},
                                            {"$x < '$L'", "characters before '$L'"}};
constexpr PyPiece kWordPredicates[] = {{"len($x) > $K", "words longer than $K characters"},
                                       {"len($x) < $K", "words shorter than $K characters"},
                                       {"len($x) == $K", "words of exactly $K characters"},
                                       {"$x.startswith('$L')", "words that start with '$L'"},
                                       {"$x.endswith('$L')", "words that end with '$L'"},
                                       {"'$L' in $x", "words that contain '$L'"},
                                       {"'$L' not in $x", "words without '$L'"}};
constexpr PyPiece kNumberOperations[] = {{"$x * $K", "multiplied by $K"},
                                         {"$x + $K", "increased by $K"},
                                         {"$x - $K", "decreased by $K"},
                                         {"$x * $x", "squared"},
                                         {"abs($x)", "made positive"},
                                         {"-$x", "negated"},
                                         {"$x // $K", "divided by $K and rounded down"},
                                         {"$x % $K", "reduced modulo $K"}};
constexpr PyPiece kWordOperations[] = {{"$x.upper()", "in upper case"},
                                       {"$x.lower()", "in lower case"},
                                       {"$x[::-1]", "reversed"},
                                       {"$x + '$L'", "followed by '$L'"},
                                       {"'$L' + $x", "after a leading '$L'"},
                                       {"$x.capitalize()", "with a capital first letter"},
                                       {"$x[:$K]", "cut to $K characters"}};

std::string with_case(std::string text, int (*convert)(int)) {
  for (char& c : text) c = static_cast<char>(convert(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::span<const PyPiece> py_predicates(PyItems items) {
  if (items == PyItems::Characters) return kCharacterPredicates;
  if (items == PyItems::Words) return kWordPredicates;
  return kNumberPredicates;
}

std::span<const PyPiece> py_operations(PyItems items) {
  if (items == PyItems::Words) return kWordOperations;
  return kNumberOperations;
}

// The tables below follow the order of the pieces above.

bool PyChoices::holds(PyInt x) const {
  const bool value[] = {py_modulo(x, 2) == 0,
                        py_modulo(x, 2) == 1,
                        x > k,
                        x < k,
                        py_modulo(x, k) == 0,
                        x >= k,
                        x != k,
                        py_modulo(x, 10) == k};
  static_assert(std::size(value) == std::size(kNumberPredicates));
  return value[predicate];
}

bool PyChoices::holds(char x) const {
  const auto u = static_cast<unsigned char>(x);
  const bool value[] = {std::string_view("aeiou").find(x) != std::string_view::npos,
                        std::isdigit(u) != 0,
                        std::isupper(u) != 0,
                        std::islower(u) != 0,
                        std::isalpha(u) != 0,
                        x != ' ',
                        x == letter,
                        x != letter,
                        x < letter};
  static_assert(std::size(value) == std::size(kCharacterPredicates));
  return value[predicate];
}

bool PyChoices::holds(const std::string& x) const {
  const auto size = static_cast<PyInt>(x.size());
  const bool contains = x.find(letter) != std::string::npos;
  const bool value[] = {size > k, size < k, size == k, x.starts_with(letter), x.ends_with(letter),
                        contains, !contains};
  static_assert(std::size(value) == std::size(kWordPredicates));
  return value[predicate];
}

PyInt PyChoices::changed(PyInt x) const {
  const PyInt value[] = {x * k,          x + k, x - k, x * x, std::abs(x), -x, py_divided(x, k),
                         py_modulo(x, k)};
  static_assert(std::size(value) == std::size(kNumberOperations));
  return value[operation];
}

std::string PyChoices::changed(const std::string& x) const {
  const std::string value[] = {with_case(x, std::toupper),
                               with_case(x, std::tolower),
                               std::string(x.rbegin(), x.rend()),
                               x + letter,
                               letter + x,
                               capitalised(with_case(x, std::tolower)),
                               x.substr(0, static_cast<std::size_t>(k))};
  static_assert(std::size(value) == std::size(kWordOperations));
  return value[operation];
}

std::span<const PyFamily> py_families() {
  static const std::vector<PyFamily> families = [] {
    std::vector<PyFamily> all;
    for (const auto& part : {py_list_families(), py_text_families(), py_other_families()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return families;
}

}  // namespace engine

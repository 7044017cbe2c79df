// The function families of the py task: patterns of bodies and descriptions.
//   $a $b   arguments        $x $y  items of a loop     $r $t  results
//   $P $p   a predicate on $x and how it is said        $O $o  an operation on $x, likewise
//   $K      a small number   $L     a letter
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace engine {

struct PyFamily {
  std::string_view id;
  /// One letter an argument: l list of numbers, w list of words, s string, n number, d dictionary,
  /// g grid, k small number.
  std::string_view kinds;
  std::string_view verbs;                ///< of function names, separated by spaces
  std::string_view doc;                  ///< what is returned, as a noun phrase
  int level;                             ///< 1: short ones; 2
  std::vector<std::string_view> bodies;  ///< alternatives; lines without the function's indent
};

std::span<const PyFamily> py_families();

/// A piece of code on $x and how it is said.
struct PyPiece {
  std::string_view code;
  std::string_view said;
};
std::span<const PyPiece> py_predicates(char item_kind);  ///< 'l' numbers, 's' characters, 'w' words
std::span<const PyPiece> py_operations(char item_kind);

}  // namespace engine

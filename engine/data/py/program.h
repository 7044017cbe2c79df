// Random Python functions and classes, each with a description and tests.
#pragma once

#include <string>
#include <vector>

#include "engine/data/record.h"

namespace engine {

/// A function or class and its tests.
struct PyProgram {
  std::string name;                  ///< of the function or class
  std::string signature;             ///< "def f(a, b):", or the class up to its first method
  std::string body;                  ///< indented lines, ending in a newline
  std::string doc;                   ///< noun phrase for the returned value; "" for a class
  std::vector<std::string> calls;    ///< "f([1, 2])"
  std::vector<std::string> results;  ///< [calls.size()] repr() of each call's value
  std::vector<std::string> setup;    ///< statements that a class's tests need before the calls
  std::string key;                   ///< content key: everything that a prompt shows
  /// The whole definition.
  std::string code() const { return signature + "\n" + body; }
};

/// Draws a function: of a family at levels 1 and 2, a composition of two or three steps at level 3.
/// @return  false if the caller has to draw again: the key lies in another split, or all results
///          are equal
bool draw_py_function(Random& rng, int level, Split split, PyProgram& out);

/// Draws a class around a list or a dictionary, with 3 to 5 methods.
/// @return  false if the caller has to draw again, as draw_py_function()
bool draw_py_class(Random& rng, Split split, PyProgram& out);

}  // namespace engine

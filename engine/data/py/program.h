// Random Python functions and classes with descriptions and tests.
#pragma once

#include <string>
#include <vector>

#include "engine/data/record.h"

namespace engine {

struct PyProgram {
  std::string name;                  ///< of the function or class
  std::string signature;             ///< "def f(a, b):" or the class's head up to its methods
  std::string body;                  ///< indented lines, ending in a newline
  std::string doc;                   ///< what it returns, as a noun phrase; "" for a class
  std::vector<std::string> calls;    ///< "f([1, 2])"
  std::vector<std::string> results;  ///< repr of each call's value
  std::vector<std::string> setup;    ///< statements before the calls of a class's tests
  std::string key;                   ///< family, parameters and name: all that is shown
  std::string code() const { return signature + "\n" + body; }
};

/// One family of level 1 or 1-2; at level 3 a composition of two or three steps.
/// @return  false if the draw leads nowhere (another split, a call fails, all results alike)
bool draw_py_function(Random& rng, int level, Split split, PyProgram& out);

/// A class around a list or a dictionary, with 3-6 methods.
bool draw_py_class(Random& rng, Split split, PyProgram& out);

}  // namespace engine

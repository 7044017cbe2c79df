// A small interpreter of the part of Python that the py generator writes: functions, classes,
// loops, comprehensions, lambdas, integers, strings, lists, tuples, dictionaries, sets. It computes
// the expected values of tests when records are made, so that making them needs no Python; a test
// compares it with CPython. No floats, no imports, no exceptions, no generators.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace engine {

/// A program outside the subset, an error while it ran, or too many steps.
class PyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class MiniPython {
 public:
  /// Parses and runs a module. @throws PyError
  explicit MiniPython(std::string_view source);
  ~MiniPython();

  /// Runs further statements in the module. @throws PyError
  void run(std::string_view source);

  /// repr() of an expression's value. @throws PyError
  std::string evaluate(std::string_view expression);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace engine

// For tests that need a program which scripts/setup.sh installs (python3, Xvfb). Where nobody asked
// for it they are skipped. The scripts that install everything set DECOSCOPE_TEST_NEEDS_ALL=1:
// under them what is absent is a failure.
#pragma once

#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

namespace tests {

inline bool absence_is_failure() {
  const char* set = std::getenv("DECOSCOPE_TEST_NEEDS_ALL");
  return set != nullptr && std::string_view(set) == "1";
}

}  // namespace tests

/// Ends the test, as skipped or failed, unless `found`. For functions that return nothing.
#define NEEDS(found, what)                                                              \
  do {                                                                                  \
    if (!(found) && tests::absence_is_failure())                                        \
      FAIL() << (what) << "; DECOSCOPE_TEST_NEEDS_ALL=1 says that everything is there"; \
    if (!(found)) GTEST_SKIP() << (what);                                               \
  } while (false)

// For tests that need a program which scripts/setup.sh installs (python3, Xvfb), or something that
// the usual machine has (sparse files, inotify). Without it the test is skipped. It fails under
// DECOSCOPE_TEST_NEEDS_ALL=1; scripts that install everything set this variable.
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

/// Skips or fails the test unless `found`. Use it only in functions that return void.
#define NEEDS(found, what)                                                    \
  do {                                                                        \
    const bool is_found = (found);                                            \
    if (!is_found && tests::absence_is_failure())                             \
      FAIL() << (what) << "; DECOSCOPE_TEST_NEEDS_ALL=1 does not allow that"; \
    if (!is_found) GTEST_SKIP() << (what);                                    \
  } while (false)

// What Dear ImGui is compiled with besides its own imconfig.h (cmake/imgui.cmake names this file to
// it): where its assertions go. They hold in a release too, and one of them that fails need not end
// a session of somebody who has runs in it.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace ui {

[[noreturn]] inline void abort_on_assert(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: IM_ASSERT(%s) failed\n", file, line, expression);
  std::abort();
}

/// Called where an IM_ASSERT does not hold; where it returns, Dear ImGui goes on. It aborts, as
/// tests want it to, but while an AssertLog (ui/shell/assert_log.h) lives.
inline void (*on_failed_assert)(const char* expression,
                                const char* file,
                                int line) = abort_on_assert;

}  // namespace ui

#define IM_ASSERT(_EXPR) \
  ((_EXPR) ? static_cast<void>(0) : ui::on_failed_assert(#_EXPR, __FILE__, __LINE__))

// The configuration of Dear ImGui (cmake/imgui.cmake names this file): the handling of its assertions. They are active in release builds
// too, where a failed assertion need not end the user's session.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace ui {

/// Prints a failed assertion and aborts.
[[noreturn]] inline void abort_on_assert(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: IM_ASSERT(%s) failed\n", file, line, expression);
  std::abort();
}

/// Called for a failed IM_ASSERT; if it returns, Dear ImGui continues. It aborts by default, as tests need, and reports while an AssertLog
/// (ui/widgets/assert_log.h) exists.
inline void (*on_failed_assert)(const char* expression,
                                const char* file,
                                int line) = abort_on_assert;

}  // namespace ui

#define IM_ASSERT(_EXPR) \
  ((_EXPR) ? static_cast<void>(0) : ui::on_failed_assert(#_EXPR, __FILE__, __LINE__))

#include "ui/widgets/assert_log.h"

#include <filesystem>

#include <fmt/format.h>
#include <imgui.h>

#include "engine/base/types.h"

namespace ui {
namespace {

AssertLog* the_log = nullptr;  // the log that on_failed_assert, a plain function, reports to

}  // namespace

AssertLog::AssertLog(std::function<void(const std::string&)> report) : report_(std::move(report)) {
  engine::ensure(the_log == nullptr, "there must be only one AssertLog at a time");
  the_log = this;
  on_failed_assert = take;
}

AssertLog::~AssertLog() {
  on_failed_assert = abort_on_assert;
  the_log = nullptr;
}

void AssertLog::take(const char* expression, const char* file, int line) {
  if (!the_log->reported_.emplace(file, line).second) return;
  the_log->report_(
      fmt::format("window: {}:{}: assertion failed: {}; this is a bug of the program, which "
                  "continues; save your work and please report it",
                  std::filesystem::path(file).filename().string(), line, expression));
}

}  // namespace ui

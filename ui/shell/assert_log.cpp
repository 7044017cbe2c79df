#include "ui/shell/assert_log.h"

#include <filesystem>

#include <fmt/format.h>
#include <imgui.h>

#include "engine/base/types.h"

namespace ui {
namespace {

AssertLog* the_log = nullptr;  // what on_failed_assert, a plain function, tells

}  // namespace

AssertLog::AssertLog(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {
  engine::ensure(the_log == nullptr, "there is one AssertLog at a time");
  the_log = this;
  on_failed_assert = take;
}

AssertLog::~AssertLog() {
  on_failed_assert = abort_on_assert;
  the_log = nullptr;
}

void AssertLog::take(const char* expression, const char* file, int line) {
  if (!the_log->told_.emplace(file, line).second) return;
  the_log->tell_(fmt::format(
      "the window: {}:{}: {} does not hold: a fault of this program, which goes on; save what you "
      "need, and please report it",
      std::filesystem::path(file).filename().string(), line, expression));
}

}  // namespace ui

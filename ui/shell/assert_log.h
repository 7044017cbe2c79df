// A person's session goes on though Dear ImGui found something wrong in how it is used: what it
// asserts is told, once for each place, instead of ending the program (ui/widgets/imgui_config.h).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

namespace ui {

/// One at a time, on the thread that draws. Once it is gone a failed IM_ASSERT aborts as before.
class AssertLog {
 public:
  /// @param tell  takes one sentence that names the place and what did not hold there
  explicit AssertLog(std::function<void(const std::string&)> tell);
  ~AssertLog();
  AssertLog(const AssertLog&) = delete;
  AssertLog& operator=(const AssertLog&) = delete;

 private:
  static void take(const char* expression, const char* file, int line);

  std::function<void(const std::string&)> tell_;
  std::set<std::pair<std::string, int>> told_;  // file and line
};

}  // namespace ui

// Reports failed assertions of Dear ImGui, once per place, instead of ending the program (ui/widgets/imgui_config.h).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

namespace ui {

/// While an object exists, failed assertions are reported; otherwise they abort. At most one object, on the thread that draws.
class AssertLog {
 public:
  /// @param report  receives a sentence with the place and the failed condition
  explicit AssertLog(std::function<void(const std::string&)> report);
  ~AssertLog();
  AssertLog(const AssertLog&) = delete;
  AssertLog& operator=(const AssertLog&) = delete;

 private:
  static void take(const char* expression, const char* file, int line);

  std::function<void(const std::string&)> report_;
  std::set<std::pair<std::string, int>> reported_;  // the places reported: file and line
};

}  // namespace ui

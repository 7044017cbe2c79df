#include "ui/panels/results/log.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/describe.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/search.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

struct LogView : PanelState {
  std::string filter;  // only lines that contain it are shown; empty: all
};

struct Line {
  engine::Nanoseconds t = 0;
  std::string text;
  engine::Notice::Level level = engine::Notice::Level::Info;
};

std::vector<Line> lines_of(const engine::Timeline& timeline) {
  using Level = engine::Notice::Level;
  std::vector<Line> lines;
  for (const engine::Notice& n : timeline.notices())
    lines.push_back({n.t, for_window(n.text), n.level});
  for (const engine::RunRecord& run : timeline.runs()) {
    if (run.failed)
      lines.push_back({run.failed->t,
                       fmt::format("run {} failed (code {}): {}", run.id(), run.failed->code,
                                   for_window(run.failed->message)),
                       Level::Error});
    for (const engine::PayloadDropped& d : run.dropped)
      lines.push_back(
          {d.t, fmt::format("run {}: {}", run.id(), engine::describe(d)), Level::Warning});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.t < b.t; });
  return lines;
}

std::string why_no_log(const Context& context) {
  if (lines_of(context.timeline).empty())
    return "No messages. Failures, dropped payloads and notices appear here.";
  return "";
}

void draw_log(Context& context) {
  const std::string& filter = context.states.get<LogView>().filter;
  for (const Line& line : lines_of(context.timeline)) {
    if (!found_in(line.text, filter)) continue;
    words(fmt::format("{:>9.3f} s", static_cast<double>(line.t) / 1e9), theme().dim);
    ImGui::SameLine(px(92));
    wrapped(line.text, line.level == engine::Notice::Level::Error     ? theme().bad
                       : line.level == engine::Notice::Level::Warning ? theme().warn
                                                                      : theme().text);
  }
}

void draw_log_head(Context& context) {
  ImGui::SetNextItemWidth(px(130));
  text_line("##filter", "filter", context.states.get<LogView>().filter);
  ImGui::SameLine();
  if (!button("Copy")) return;
  for (const Line& line : lines_of(context.timeline))
    context.requests.copy +=
        fmt::format("{:.3f} s  {}\n", static_cast<double>(line.t) / 1e9, line.text);
}

}  // namespace

const Panel kLogPanel{.id = "log",
                      .title = "Log",
                      .empty = why_no_log,
                      .draw = draw_log,
                      .head = draw_log_head,
                      .sketch = Sketch::Lines,
                      .live = Dock::Foot,
                      .compare = Dock::Foot};

}  // namespace ui

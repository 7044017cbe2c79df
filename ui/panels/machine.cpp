#include "ui/panels/machine.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "ui/draw.h"

namespace ui {
namespace {

constexpr std::size_t kRecent = 80;

std::string why_no_machine(const Context& context) {
  if (!context.timeline.samples().empty()) return "";
  const auto runs = context.timeline.runs();
  const bool over = !runs.empty() && std::ranges::all_of(runs, &engine::RunRecord::over);
  if (!context.source.empty() && (over || context.reading < 0))
    return "This recording holds no samples.";
  return over ? "The runs were over before the first sample: one comes every 100 ms."
              : "No samples yet. A run brings one every 100 ms.";
}

// The newest samples of one quantity; those that were not available are left out.
template <class Of>
std::vector<float> recent(std::span<const engine::Sampled> samples, Of of) {
  std::vector<float> values;
  for (const engine::Sampled& s : samples.last(std::min(samples.size(), kRecent)))
    if (of(s) >= 0) values.push_back(static_cast<float>(of(s)));
  return values;
}

// A quantity in percent: its name, how it went lately on a scale to 100 %, what it is now.
void percent_row(const Figure& figure, std::span<const float> values, Rgb ink) {
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float left = ImGui::GetCursorPosX(), wide = ImGui::GetContentRegionAvail().x;
  const float high = ImGui::GetTextLineHeight(), label = px(84), value = px(52);
  words(figure.label, theme().dim);
  ImGui::SameLine(left + label);
  sparkline(values, {std::max(px(20), wide - label - value), high}, ink, 100);
  ImGui::PushFont(fonts().bold, kTextSize);
  ImGui::SameLine(left + wide - ImGui::CalcTextSize(figure.value.c_str()).x);
  words(figure.value, theme().bright);
  ImGui::PopFont();
  ImGui::SetCursorScreenPos(min);
  figure_button(figure, {wide, high});
}

std::string percent_words(double percent) {
  return percent >= 0 ? fmt::format("{:.0f} %", percent) : "-";
}

// Of a server's two hundred threads only those in view are drawn.
void threads(std::span<const engine::Sampled> samples) {
  const std::vector<double>& now = samples.back().thread_busy_percent;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(now.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const auto thread = static_cast<std::size_t>(i);
      const Figure busy{
          fmt::format("thread {}", i + 1), percent_words(now[thread]),
          "time this thread computed / period",
          fmt::format("over {}", short_time(static_cast<double>(samples.back().period)))};
      percent_row(busy,
                  recent(samples,
                         [thread](const engine::Sampled& s) {
                           return thread < s.thread_busy_percent.size()
                                      ? s.thread_busy_percent[thread]
                                      : -1;
                         }),
                  theme().good);
    }
}

void draw_machine(Context& context) {
  const auto samples = context.timeline.samples();
  const engine::Sampled& now = samples.back();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  const Figure busy{
      now.device + " busy", percent_words(now.busy_percent),
      now.busy_percent >= 0 ? "processor time of this program / (period x threads)" : now.reason,
      fmt::format("over {}", short_time(static_cast<double>(now.period)))};
  percent_row(busy, recent(samples, [](const engine::Sampled& s) { return s.busy_percent; }),
              theme().good);
  if (now.engine_busy_percent >= 0)
    percent_row({"decoding", percent_words(now.engine_busy_percent),
                 "own compute of all lanes / period", busy.numbers},
                recent(samples, [](const engine::Sampled& s) { return s.engine_busy_percent; }),
                handle_on(theme()));
  if (now.memory_bytes >= 0)
    label_value("memory, at most", fmt::format("{:.0f} MB", now.memory_bytes / 1e6));
  threads(samples);
  ImGui::PopStyleVar();
}

}  // namespace

const Panel kMachinePanel{"machine", "Machine", why_no_machine, draw_machine, nullptr};

}  // namespace ui

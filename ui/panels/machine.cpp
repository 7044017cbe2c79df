// How busy the device and each of its threads was, and how much memory the program held, as the engine sampled it.
#include "ui/panels/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ui/draw.h"

namespace ui {
namespace {

constexpr std::size_t kRecent = 80;

std::string why_empty(const Context& context) {
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

// A thread a row: its number, how busy it was lately on a scale to 100 %, how busy it is.
void thread_row(std::span<const engine::Sampled> samples, std::size_t thread, float wide) {
  const std::vector<float> values = recent(samples, [thread](const engine::Sampled& s) {
    return thread < s.thread_busy_percent.size() ? s.thread_busy_percent[thread] : -1;
  });
  const float left = ImGui::GetCursorPosX(), high = ImGui::GetTextLineHeight();
  words(fmt::format("thread {}", thread + 1), theme().dim);
  ImGui::SameLine(left + px(72));
  sparkline(values, {std::max(px(20), wide - px(72 + 52)), high}, theme().good, 100);
  const std::string now = values.empty() ? "-" : fmt::format("{:.0f} %", values.back());
  ImGui::PushFont(fonts().bold, kTextSize);
  ImGui::SameLine(left + wide - ImGui::CalcTextSize(now.c_str()).x);
  words(now, theme().bright);
  ImGui::PopFont();
}

void threads(std::span<const engine::Sampled> samples) {
  const std::size_t n = samples.back().thread_busy_percent.size();
  const float wide = ImGui::GetContentRegionAvail().x;
  if (n > 0) small_label("decoding threads, busy");
  // Of a server's two hundred only those in view are drawn.
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(n));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      thread_row(samples, static_cast<std::size_t>(i), wide);
}

void draw(Context& context) {
  const auto samples = context.timeline.samples();
  const engine::Sampled& now = samples.back();
  const float wide = ImGui::GetContentRegionAvail().x;
  const Figure busy{
      now.device + " busy", now.busy_percent >= 0 ? fmt::format("{:.0f} %", now.busy_percent) : "-",
      now.busy_percent >= 0 ? "processor time of this program / (period x threads)" : now.reason,
      fmt::format("over {}", short_time(static_cast<double>(now.period)))};
  label_value(busy);
  sparkline(recent(samples, [](const engine::Sampled& s) { return s.busy_percent; }),
            {wide, px(20)}, theme().good);
  if (now.engine_busy_percent >= 0) {
    const Figure engine{"decoding", fmt::format("{:.0f} %", now.engine_busy_percent),
                        "own compute of all lanes / period", busy.numbers};
    label_value(engine);
    sparkline(recent(samples, [](const engine::Sampled& s) { return s.engine_busy_percent; }),
              {wide, px(20)}, handle_on(theme()));
  }
  if (now.memory_bytes >= 0)
    label_value("memory, at most", fmt::format("{:.0f} MB", now.memory_bytes / 1e6));
  threads(samples);
}

}  // namespace

const Panel kMachinePanel{"machine", "Machine", why_empty, draw, nullptr};

}  // namespace ui

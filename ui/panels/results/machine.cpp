#include "ui/panels/results/machine.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/event/timeline/run_slices.h"
#include "engine/event/timeline/timeline.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

constexpr std::size_t kRecent = 80;

std::string why_no_machine(const Context& context) {
  if (!context.timeline.samples().empty()) return "";
  const auto runs = context.timeline.runs();
  const bool over = !runs.empty() && std::ranges::all_of(runs, &engine::RunRecord::over);
  if (!context.source.empty() && (over || context.reading < 0))
    return "This recording contains no samples.";
  return over ? "The runs ended before the first sample; samples are taken every 100 ms."
              : "No samples yet. While a run is active, a sample is taken every 100 ms.";
}

// Returns the newest values of one quantity, without samples in which it was not available.
template <class Of>
std::vector<float> recent(std::span<const engine::Sampled> samples, Of of) {
  std::vector<float> values;
  for (const engine::Sampled& s : samples.last(std::min(samples.size(), kRecent)))
    if (of(s) >= 0) values.push_back(static_cast<float>(of(s)));
  return values;
}

// Draws a row for a quantity in percent: name, recent values on a scale up to 100 %, newest value.
void percent_row(const Figure& figure, std::span<const float> values, Rgb ink) {
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float left = ImGui::GetCursorPosX(), wide = ImGui::GetContentRegionAvail().x;
  const float high = ImGui::GetTextLineHeight(), value = px(52);
  const float label = std::max(px(84), ImGui::CalcTextSize(figure.label.c_str()).x + px(8));
  words(figure.label, theme().dim);
  ImGui::SameLine(left + label);
  sparkline(figure.label, values, {std::max(px(20), wide - label - value), high}, ink, 100);
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

// Draws one row per thread. The clipper draws only the visible rows, because a server may have 200 threads.
void threads(std::span<const engine::Sampled> samples) {
  const std::vector<double>& now = samples.back().thread_busy_percent;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(now.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const auto thread = static_cast<std::size_t>(i);
      const bool gpu = engine::of_gpu(samples.back());
      const Figure busy{
          gpu ? "our kernels" : fmt::format("thread {}", i + 1), percent_words(now[thread]),
          gpu ? "time from the launch of a kernel to the end of the wait for it / period"
              : "time this thread computed / period",
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

// Draws a quantity that the GPU's driver reports; the tooltip says why a value is missing.
void driver_value(const engine::Sampled& sample,
                  const char* field,
                  const Figure& figure,
                  bool known) {
  const auto why = sample.absent.find(field);
  label_value(known ? figure
                    : Figure{figure.label, "-",
                             why == sample.absent.end() ? figure.formula : why->second,
                             figure.numbers});
}

void gpu_figures(const engine::Sampled& s, const std::string& over) {
  const auto gigabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) * 1e-9; };
  const auto megahertz = [](double mhz) { return fmt::format("{:.0f} MHz", mhz); };
  const std::string by = "as reported by the GPU's driver";
  driver_value(s, "gpu_memory_busy_percent",
               {"memory busy", percent_words(s.gpu_memory_busy_percent),
                "time in which the memory was read or written, " + by, over},
               s.gpu_memory_busy_percent >= 0);
  driver_value(s, "gpu_memory_used_bytes",
               {"memory used",
                fmt::format("{:.1f} of {:.1f} GB", gigabytes(s.gpu_memory_used_bytes),
                            gigabytes(s.gpu_memory_total_bytes)),
                "by all programs, " + by, over},
               s.gpu_memory_used_bytes >= 0);
  driver_value(s, "gpu_clock_mhz",
               {"clock", megahertz(s.gpu_clock_mhz), "of the processors, " + by, over},
               s.gpu_clock_mhz >= 0);
  driver_value(s, "gpu_memory_clock_mhz",
               {"memory clock", megahertz(s.gpu_memory_clock_mhz), by, over},
               s.gpu_memory_clock_mhz >= 0);
  driver_value(s, "gpu_power_w",
               {"power", fmt::format("{:.0f} W", s.gpu_power_w), "of the whole board, " + by, over},
               s.gpu_power_w >= 0);
}

// Draws the utilisation of the device; if a GPU has no driver library to query, a line says so.
void draw_busy(std::span<const engine::Sampled> samples, const std::string& over) {
  const engine::Sampled& now = samples.back();
  const bool gpu = engine::of_gpu(now);
  const char* of_cpu = "processor time of this program / (period x threads)";
  const char* of_driver =
      "time in which a kernel of any program ran, as reported by the GPU's driver";
  percent_row({now.device + " busy", percent_words(now.busy_percent),
               now.busy_percent < 0 ? now.reason
               : gpu                ? of_driver
                                    : of_cpu,
               over},
              recent(samples, [](const engine::Sampled& s) { return s.busy_percent; }),
              theme().good);
  if (now.busy_percent >= 0 || now.reason.empty()) return;
  ImGui::PushTextWrapPos(0);
  words(now.reason, theme().dim);
  ImGui::PopTextWrapPos();
}

// Draws how much of the limit the details of steps of the document shown take.
void payload_gauge(const engine::Timeline& timeline) {
  const auto used = static_cast<double>(timeline.payload_bytes());
  const auto limit = static_cast<double>(timeline.payload_budget());
  constexpr double kMb = 1 << 20;
  label_value({"details of steps", fmt::format("{:.1f} of {:.0f} MB", used / kMb, limit / kMb),
               "memory of probabilities, states of blocks and n-grams; when the limit of Settings "
               "is reached, the oldest steps lose them",
               fmt::format("{:.0f} of {:.0f} bytes", used, limit)});
  share_bar(static_cast<float>(limit > 0 ? std::min(1.0, used / limit) : 1),
            {ImGui::GetContentRegionAvail().x, px(5)}, handle_on(theme()));
}

void draw_machine(Context& context) {
  const auto samples = context.timeline.samples();
  const engine::Sampled& now = samples.back();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  const std::string over = fmt::format("over {}", short_time(static_cast<double>(now.period)));
  draw_busy(samples, over);
  if (now.engine_busy_percent >= 0)
    percent_row({"decoding", percent_words(now.engine_busy_percent),
                 "own compute of all lanes / period", over},
                recent(samples, [](const engine::Sampled& s) { return s.engine_busy_percent; }),
                handle_on(theme()));
  if (now.memory_bytes >= 0)
    label_value("peak memory",
                fmt::format("{:.0f} MB", static_cast<double>(now.memory_bytes) / 1e6));
  payload_gauge(context.timeline);
  threads(samples);
  const bool has_driver = engine::of_gpu(now) && (now.busy_percent >= 0 || !now.absent.empty());
  if (has_driver) gpu_figures(now, over);
  ImGui::PopStyleVar();
}

}  // namespace

const Panel kMachinePanel{.id = "machine",
                          .title = "Machine",
                          .empty = why_no_machine,
                          .draw = draw_machine,
                          .sketch = Sketch::Curve,
                          .live = Dock::RightFoot};

}  // namespace ui

// How busy the device was, and how much memory the program held, as the engine sampled it.
#include "ui/panels/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ui/draw.h"

namespace ui {
namespace {

constexpr std::size_t kRecent = 80;

std::string why_empty(const Context& context) {
  return context.timeline.samples().empty() ? "No samples yet. A run brings one every 100 ms." : "";
}

// The newest samples of one quantity; those that were not available are left out.
template <class Of>
std::vector<float> recent(std::span<const engine::Sampled> samples, Of of) {
  std::vector<float> values;
  for (const engine::Sampled& s : samples.last(std::min(samples.size(), kRecent)))
    if (of(s) >= 0) values.push_back(static_cast<float>(of(s)));
  return values;
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
}

}  // namespace

const Panel kMachinePanel{"machine", "Machine", why_empty, draw, nullptr};

}  // namespace ui

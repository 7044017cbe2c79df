#include "ui/prepare/responding.h"

#include <fmt/format.h>

namespace ui {
namespace {

// What of a run the device is at work on; empty: nothing, it is between two steps or held.
std::string at_work_on(const engine::RunRecord& run, bool held) {
  if (!run.steps.empty()) {
    const engine::StepRecord& last = run.steps.back();
    return last.complete ? "" : fmt::format("step {}", last.begun.step);
  }
  const bool decodes = !run.phases.empty() && run.phases.back().name == "decode";
  return decodes || held ? "" : "prompt";
}

}  // namespace

bool is_gpu(const std::string& device) {
  return device.starts_with("cuda:");
}

std::optional<Unanswered> unanswered(const engine::Timeline& live,
                                     double since_event,
                                     const StepDeadlines& deadlines) {
  if (since_event < deadlines.told_s) return std::nullopt;
  for (const engine::RunRecord& run : live.runs()) {
    if (run.over()) continue;
    const engine::ModelLoaded* model = live.model(run.started.model);
    if (!model || !is_gpu(model->device)) continue;
    if (model->device == "cuda:emulated" && !deadlines.emulated) continue;
    if (std::string what = at_work_on(run, live.held()); !what.empty())
      return Unanswered{model->device, std::move(what), since_event,
                        since_event >= deadlines.way_out_s};
  }
  return std::nullopt;
}

std::string words_of(const Unanswered& late) {
  return fmt::format("GPU not responding, {}, {:.0f} s", late.what, late.seconds);
}

}  // namespace ui

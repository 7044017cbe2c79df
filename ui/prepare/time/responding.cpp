#include "ui/prepare/time/responding.h"

#include <variant>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"

namespace ui {
namespace {

// Returns true if the run waits in a queue for a model.
bool is_queued(const engine::RunRecord& run) {
  return !run.queueing.empty() && std::holds_alternative<engine::Queued>(run.queueing.back());
}

// Returns true if the engine has been paused since the last event of the run; the run then makes no progress.
bool is_paused(const engine::Timeline& live, const engine::RunRecord& run) {
  return live.held() && !live.holds().empty() && live.holds().back().t >= run.last_event;
}

// Returns the part of a run that the device is computing; empty if the run is between two steps or paused.
std::string at_work_on(const engine::RunRecord& run, bool held) {
  if (is_queued(run)) return "";
  // A draft model may read the prompt between two steps.
  const engine::Phase* const phase = run.phases.empty() ? nullptr : &run.phases.back();
  if (phase && phase->name == "draft prefill" && phase->done < phase->total) return "prompt";
  if (!run.steps.empty()) {
    const engine::StepRecord& last = run.steps.back();
    return last.complete ? "" : fmt::format("step {}", last.begun.step);
  }
  const bool decodes = phase && phase->name == "decode";
  return decodes || held ? "" : "prompt";
}

}  // namespace

bool is_gpu(const std::string& device) {
  return device.starts_with("cuda:");
}

std::optional<Unanswered> unanswered(const engine::Timeline& live,
                                     double since_event,
                                     const StepDeadlines& deadlines) {
  if (since_event < deadlines.report_s) return std::nullopt;
  for (const engine::RunRecord& run : live.runs()) {
    if (run.over() || is_paused(live, run)) continue;
    const engine::ModelLoaded* model = live.model(run.started.model);
    if (!model || !is_gpu(model->device)) continue;
    if (model->device == "cuda:emulated" && !deadlines.emulated) continue;
    if (std::string what = at_work_on(run, live.held()); !what.empty())
      return Unanswered{.device = model->device,
                        .what = std::move(what),
                        .late_s = since_event,
                        .way_out = since_event >= deadlines.way_out_s};
  }
  return std::nullopt;
}

std::string words_of(const Unanswered& late) {
  return fmt::format("GPU not responding, {}, {:.0f} s", late.what, late.late_s);
}

}  // namespace ui

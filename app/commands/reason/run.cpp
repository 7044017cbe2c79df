#include "app/commands/reason/run.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "app/commands/generation.h"
#include "app/commands/report.h"
#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/registry.h"
#include "engine/run/run.h"
#include "kernels/error.h"

namespace app {

engine::OptionValues checked_reason_options(const ReasonOptions& options) {
  engine::OptionValues set = options_for(options.decoder, {options.decoder}, options.set);
  check_options(options.decoder, set);
  check_draft_resources(draft_resources_of(options.model), {options.decoder});
  check_pool(options.pool, {options.decoder});
  check_outputs(options.record, options.trace);
  return set;
}

ReasonRun::ReasonRun(const ReasonOptions& options, const engine::OptionValues& set)
    : decoder_(options.decoder),
      options_(engine::complete_options(engine::decoder_named(options.decoder), set)),
      batch_(options.batch),
      store_(assets_dir(), options.model.n_threads),
      models_(load_scheduled(store_,
                             model_request(options.model),
                             draft_resources_of(options.model),
                             options.decoder,
                             set)),
      outputs_(options.record, options.trace) {
  models_.texts =
      std::make_shared<engine::EarlierTexts>(read_pool(options.pool, *models_.target.model));
  outputs_.announce(models_);
  scheduler_ = engine::make_scheduler(models_, options.decoder, set, options.batch);
  print_once(scheduler_->notices());
}

engine::SchedulerWatch ReasonRun::watch() {
  engine::SchedulerWatch watch;
  watch.events = outputs_.sink();
  watch.stop = interrupted;
  return watch;
}

int ReasonRun::finish(const std::string& text) {
  outputs_.print_notes(store_);
  print_and_close(text, outputs_);
  return interrupted() ? static_cast<int>(engine::ErrorCode::Cancelled) : 0;
}

void ReasonRun::add_run_info(nlohmann::json& document) const {
  document.update(models_json(models_, decoder_));
  document["options"] = options_;
  document["batch"] = batch_;
  nlohmann::json schedule = nlohmann::json::object();
  for (const auto& [name, value] : scheduler_->figures()) schedule[name] = number_json(value);
  document["target_busy"] = schedule.value("target_busy", nlohmann::json(nullptr));
  document["schedule"] = std::move(schedule);
}

std::string schedule_text(const std::map<std::string, double>& figures) {
  const auto figure = [&](const char* name) {
    const auto found = figures.find(name);
    return found == figures.end() ? -1 : found->second;
  };
  std::string text;
  if (figure("target_busy") >= 0)
    text = fmt::format("target busy: {:.1f} % of the time", 100 * figure("target_busy"));
  if (figure("wait_for_target_ms") >= 0)
    text += fmt::format("; branches waited {:.2f} s for the target, {:.2f} s for the draft",
                        figure("wait_for_target_ms") * 1e-3, figure("wait_for_draft_ms") * 1e-3);
  if (figure("overlap_chosen") >= 0)
    text += fmt::format(
        "; {} chosen: a sequence's round took {:.2f} ms in turn",
        figure("overlap_chosen") > 0 ? "drafting during verification" : "drafting in turn",
        figure("in_turn_round_ms"));
  if (figure("overlapped_round_ms") >= 0)
    text += fmt::format(", {:.2f} ms at once", figure("overlapped_round_ms"));
  return text.empty() ? text : text + "\n";
}

}  // namespace app

// Models, scheduler and outputs of a `reason` command.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/cli/commands.h"
#include "app/commands/outputs.h"
#include "engine/run/scheduler.h"
#include "engine/store/model_store.h"

namespace app {

/// Validates the decoder, its options, the draft model and the output files before models are
/// loaded.
/// @return  the decoder's options that were given
/// @throws Error(Usage, Resources)
engine::OptionValues checked_reason_options(const ReasonOptions& options);

/// The models, scheduler and outputs of a command.
class ReasonRun {
 public:
  /// Loads the models, with a progress line.
  /// @param set  the result of checked_reason_options()
  /// @throws Error(BadInput, Resources)
  ReasonRun(const ReasonOptions& options, const engine::OptionValues& set);

  /// The target model.
  engine::Model& target() const { return *models_.target.model; }
  /// Settings of the target's generation_config.json.
  const engine::GenerationDefaults& defaults() const { return models_.target.files.generation; }
  /// Runs the completions.
  engine::Scheduler& scheduler() { return *scheduler_; }
  /// The scheduler's callbacks: events go to the outputs, and Ctrl+C ends the runs.
  engine::SchedulerWatch watch();
  /// Adds to a report all settings needed to repeat the run (decoder, options, models, scale,
  /// device, dtype, batch) and the scheduler's figures, as "schedule" and "target_busy".
  void add_run_info(nlohmann::json& document) const;
  /// Prints the results and closes the outputs.
  /// @return  the exit code: 0, or Cancelled after Ctrl+C
  int finish(const std::string& text);

 private:
  std::string decoder_;
  engine::OptionValues options_;  // all of them
  int batch_;
  engine::ModelStore store_;
  engine::RunModels models_;
  Outputs outputs_;
  std::unique_ptr<engine::Scheduler> scheduler_;
};

/// One line from the scheduler's figures: how busy the target was, and what branches waited for.
std::string schedule_text(const std::map<std::string, double>& figures);

}  // namespace app

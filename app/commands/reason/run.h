// What a command of `reason` runs on: its models, the scheduler that completes for it, and where
// the events go.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/cli/commands.h"
#include "app/commands/outputs.h"
#include "engine/store/model_store.h"
#include "engine/run/scheduler.h"

namespace app {

/// Refuses what is wrong with the decoder, its options, the draft and the files to write, before
/// anything is loaded.
/// @return  the decoder's options, as they were given
/// @throws Error(Usage, Resources)
engine::OptionValues checked_reason_options(const ReasonOptions& options);

class ReasonRun {
 public:
  /// Loads the models, with a progress line.
  /// @param set  what checked_reason_options() returned
  /// @throws Error(BadInput, Resources)
  ReasonRun(const ReasonOptions& options, const engine::OptionValues& set);

  const engine::Model& target() const { return *models_.target.model; }
  /// Settings of the target's generation_config.json.
  const engine::GenerationDefaults& defaults() const { return models_.target.files.generation; }
  engine::Scheduler& scheduler() { return *scheduler_; }
  /// Events to the outputs, ended by Ctrl+C.
  engine::SchedulerWatch watch();
  /// Adds what it ran on to a report, so that it can be repeated: the decoder with all its options,
  /// models, scale, device, dtype and batch; and what the scheduler tells, as "schedule", of which
  /// "target_busy" stands beside it, too.
  void tell(nlohmann::json& document) const;
  /// Prints the results and closes the outputs.
  /// @return  the exit status: 0, or Cancelled after Ctrl+C
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

/// One line: how busy the target was, and where branches waited, as far as the scheduler tells.
std::string schedule_text(const std::map<std::string, double>& figures);

}  // namespace app

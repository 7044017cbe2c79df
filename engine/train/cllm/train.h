// The command `train cllm`: trains a consistency model from a recipe and a target, in four stages.
//   collect  out/trajectories.bin     Jacobi trajectories of the target's answers (trajectories.h)
//   measure  out/stages.json          speed and accuracy of the target, and the time of each stage
//   train    out/checkpoint.bin, out/training.jsonl; every probe appends the trajectory of one
//            unseen prompt to out/probe_trajectories.jsonl
//   write    a Hugging Face directory in bf16 with a model card, README.md
// Every stage can be resumed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/data/mixture.h"
#include "engine/train/cllm/speed_score.h"
#include "engine/train/cllm/trainer.h"
#include "engine/train/cllm/trajectory_file.h"
#include "kernels/device.h"

namespace engine {

/// Input and output of a consistency training.
struct CllmRequest {
  std::string recipe;  // path of the recipe's JSON file
  std::string target;  // NAME or directory instead of the recipe's; empty: the recipe's
  std::string assets;  // where NAMEs are looked up
  std::string out;     // directory to write
  std::string data;    // folder of the open texts; empty if the mixture needs none
  bool resume = false;
  int n_threads = 0;
  std::string device = {};  // for every stage, as TrainOptions::device
  FileLimits limits;
};

/// Progress of collecting trajectories.
struct CollectProgress {
  std::int64_t done = 0, total = 0;  // answers
  std::int64_t kept = 0, points = 0;
  double seconds = 0, seconds_left = 0;
};

/// Callbacks of a consistency training.
struct CllmRunCallbacks {
  std::function<void(const CollectProgress&)> collecting;  // after every answer; may be empty
  std::function<void(const CllmProgress&)> training;       // after every step; may be empty
  // receives a message for the user; may be empty
  std::function<void(const std::string&)> notice;
  const std::atomic<bool>* stop = nullptr;  // set by Ctrl+C: save and return
};

/// Result of a consistency training.
struct CllmOutcome {
  bool finished = false;
  std::vector<TrainingStream::Share> requests;  // shares of the parts of a recipe with `chat`
  CollectCounts collected;
  double collect_seconds = 0;
  CllmResult training;                    // parameters are empty
  std::vector<SpeedScore> before, after;  // empty: not measured
};

/// Runs all stages.
/// @param device  the opened request.device; null: opens it
/// @throws Error(Usage)      if the directory holds a run and request.resume is false
/// @throws Error(BadInput)   for a bad recipe or target, or bad files of an earlier run
/// @throws Error(Resources)  if the directory cannot be written
/// @throws Error(Device)     as train()
CllmOutcome train_cllm(const CllmRequest& request,
                       const CllmRunCallbacks& callbacks,
                       std::unique_ptr<kernels::Device> device = nullptr);

/// The model card of the result, as markdown.
std::string cllm_card(const CllmRecipe& recipe,
                      const ModelConfig& model,
                      const CllmOutcome& outcome,
                      const std::string& target_name,
                      const std::string& target_card);

}  // namespace engine

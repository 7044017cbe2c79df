// The commands `train medusa` and `train chimera`: train draft heads from a recipe and a target.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/checkpoint/opened_model.h"
#include "engine/train/heads/trainer.h"

namespace engine {

/// Input and output of a training of heads.
struct HeadsRequest {
  std::string recipe;  // path of the recipe's JSON file
  HeadsKind kind = HeadsKind::Medusa;
  std::string out;  // directory to write
  std::string
      texts;         // file of the target's own texts; empty: out/own_outputs.jsonl, made if absent
  std::string data;  // folder of the open texts; empty if the mixture needs none
  bool resume = false;
  int n_threads = 0;   // 0: as many as the process may use
  std::string device;  // to train on, as TrainOptions::device
};

/// The recipe's target, loaded.
struct HeadsTarget {
  Model& model;
  const ModelFiles& files;
  std::string weights_hash;
};

/// Callbacks of a training of heads.
struct HeadsCallbacks {
  TrainCallbacks training;
  // called while the target writes texts; may be empty
  std::function<void(const OutputsProgress&)> writing;
};

/// Runs three stages, each saved continuously and resumable: the target writes texts for prompts of
/// the split train (own_outputs.jsonl), then for unseen prompts (probe_outputs.jsonl); then the heads
/// are trained (checkpoint.bin, training.jsonl). A finished run also writes the heads in bf16,
/// accuracies.json and a model card, README.md.
/// @param device  the opened request.device; null: opens it
/// @throws Error  as write_own_outputs() and train()
HeadsTraining make_heads(const HeadsRequest& request,
                         const HeadsTarget& target,
                         const HeadsCallbacks& callbacks,
                         std::unique_ptr<kernels::Device> device = nullptr);

/// The accuracies as JSON: {"heads": [[share of rank 1, of rank 2, ..], ..], "prompts": .., "measured_on": ".."}. "after_right" has the same
/// shares among the places where the heads before were right, "free_running" those of Chimera's heads after their own guesses.
std::string accuracies_json(const HeadsResult& result,
                            int n_prompts,
                            const std::string& measured_on);

/// Returns the mixture without its open texts, because the held-out splits of open texts are
/// reserved for evaluation.
std::string generated_part(const std::string& mixture);

/// The path of a run's file of texts that the target wrote.
std::string own_texts_path(const std::string& directory);

/// The target writes the texts that a file does not have yet. Reports to callbacks.training.notice.
/// @param resume  false: the file must not exist
/// @return        true if the file has all texts; false if stopped
/// @throws Error(Usage)  if the file exists and `resume` is false
bool make_own_texts(const NamedTarget& target,
                    const OutputsPlan& plan,
                    const std::string& path,
                    const std::string& data,
                    bool resume,
                    const HeadsCallbacks& callbacks);

}  // namespace engine

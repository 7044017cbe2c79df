// Draft heads as a person asks for them: a recipe and a target in, a directory out.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/checkpoint/model_files.h"
#include "engine/train/heads/trainer.h"

namespace engine {

struct HeadsRequest {
  std::string recipe;  // path of the recipe's JSON file
  HeadsKind kind = HeadsKind::Medusa;
  std::string out;  // directory to write
  std::string
      texts;         // file of the target's own texts; empty: out/own_outputs.jsonl, made if absent
  std::string data;  // folder of the open texts; empty if the mixture needs none
  bool resume = false;
  int n_threads = 0;   // 0: as many as the process may use
  std::string device;  // that heads are trained on, as TrainOptions has it
};

/// The target the recipe names, in memory.
struct HeadsTarget {
  Model& model;
  const ModelFiles& files;
  std::string weights_hash;
};

struct HeadsCallbacks {
  TrainCallbacks training;
  std::function<void(const OutputsProgress&)> writing;  // while the target writes; may be empty
};

struct HeadsTraining {
  HeadsRecipe recipe;
  HeadsConfig config;
  HeadsResult result;
  int n_prompts = 0;  // unseen ones that accuracies were measured on
};

/// Stages, each saved as it goes and gone on with after --resume: the target's own texts on prompts
/// of the split train (own_outputs.jsonl), on prompts that no training reads (probe_outputs.jsonl),
/// the training (checkpoint.bin, training.jsonl). When it is finished out/ also holds the heads in
/// bf16, accuracies.json and a model card, README.md.
/// @param device  request.device, opened before; null: it is opened here
/// @throws Error  as write_own_outputs() and train()
HeadsTraining make_heads(const HeadsRequest& request,
                         const HeadsTarget& target,
                         const HeadsCallbacks& callbacks,
                         std::unique_ptr<kernels::Device> device = nullptr);

/// {"heads": [[share of rank 1, of rank 2, ..], ..], "prompts": .., "measured_on": ".."}
std::string accuracies_json(const HeadsRanks& ranks, int n_prompts, const std::string& measured_on);

/// A mixture without its open texts, whose evaluation splits are for evaluation.
std::string generated_part(const std::string& mixture);

/// The path of the file that own texts are written to in a run's directory.
std::string own_texts_path(const std::string& directory);

/// Completes the target's texts in a file. Words for a person go to `notice`.
/// @param resume  false: there must be no such file yet
/// @return        whether all are there; false: stopped
/// @throws Error(Usage)  if there is one
bool make_own_texts(const OwnTarget& target,
                    const OutputsPlan& plan,
                    const std::string& path,
                    const std::string& data,
                    bool resume,
                    const HeadsCallbacks& callbacks);

}  // namespace engine

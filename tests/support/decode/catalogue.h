// Models of the shared test catalogue (docs/testing.md): a toy, a tiny random transformer and
// the bundled model, the latter two in every dtype; and the decoders' settings it goes through.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/heads_files.h"
#include "engine/model/draft_heads.h"
#include "engine/model/model.h"
#include "tests/support/decode/run_decoder.h"

namespace engine::test {

struct Subject {
  enum class Kind { Toy, Tiny, Bundled } kind = Kind::Toy;
  kernels::DType dtype = kernels::DType::F32;
};
std::string name_of(const Subject& subject);  // "bundled_bf16"
std::vector<Subject> all_subjects();

/// Random heads for a model, as `model random --heads` makes them.
HeadsFiles random_heads_for(const ModelConfig& config, HeadsKind kind);

/// A model to decode with, and texts for it to go on with.
class Loaded {
 public:
  /// @param max_seq_len  its context; 0: its own
  /// @param scale        of a transformer
  /// @param device       it computes on; null: a CPU of two threads
  explicit Loaded(const Subject& subject,
                  int max_seq_len = 0,
                  const ModelScale& scale = {},
                  std::unique_ptr<kernels::Device> device = nullptr);
  LanguageModel& model() { return *model_; }
  LanguageModel& draft() { return *draft_; }  // for it, unscaled
  /// Draft heads for it; null for decoders without. The bundled model's are the trained ones, the
  /// tiny transformer's guess at random, the toy's are sometimes right.
  DraftHeads* heads(const std::string& decoder);
  /// The file of the tree beside them; empty where there is none.
  std::string heads_tree(const std::string& decoder) const;
  /// Further ranks, each the same model on a device of its own, for jobs that ask for some.
  std::vector<OtherRank> ranks(const Job& job);
  const Model* transformer() const { return transformer_; }  // null for the toy
  /// Any i >= 0; the bundled model's are its bundled prompts in turn.
  std::vector<TokenId> prompt(int i) const;
  TokenId last_id() const { return model_->vocab_size() - 1; }
  /// Tokens worth generating here: fewer where a forward costs more.
  int n_tokens() const;

 private:
  /// A rank of its own and who waits for it.
  struct Rank {
    std::unique_ptr<kernels::Device> device;
    std::unique_ptr<LanguageModel> model;
    std::mutex at_work = {};
  };
  std::unique_ptr<Model> transformer_on(kernels::Device& device) const;

  Subject subject_;
  int max_seq_len_;
  ModelScale scale_;
  std::unique_ptr<kernels::Device> device_;
  std::unique_ptr<LanguageModel> model_, draft_;
  std::unique_ptr<DraftHeads> medusa_, chimera_;
  const Model* transformer_ = nullptr;
  std::vector<std::unique_ptr<Rank>> ranks_;  // made when asked for
  std::vector<std::vector<TokenId>> prompts_;
};
/// Loaded once a process.
Loaded& loaded(const Subject& subject);

/// Every decoder with the option values that make it behave differently, extremes among them.
std::vector<Job> all_settings();
/// One of each decoder and form, as they come.
std::vector<Job> plain_settings();
/// Most tokens a step of these settings can emit.
int most_tokens(const Job& job);

}  // namespace engine::test

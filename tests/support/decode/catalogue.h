// Models of the shared test catalogue (docs/testing.md): a toy, a tiny random transformer and the
// bundled model, the last two in every dtype; and the decoder settings that the catalogue runs.
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

/// Random heads for a model, equal to those of `model random --heads`.
/// @param target  given: they end in its output matrix and rank every second token
HeadsFiles random_heads_for(const ModelConfig& config,
                            HeadsKind kind,
                            const ModelFiles* target = nullptr);

/// A target model with its draft, heads, ranks and prompts.
class Loaded {
 public:
  /// @param max_seq_len  context length; 0: the model's own
  /// @param scale        of a transformer
  /// @param device       the device to compute on; null: a CPU device with two threads
  explicit Loaded(const Subject& subject,
                  int max_seq_len = 0,
                  const ModelScale& scale = {},
                  std::unique_ptr<kernels::Device> device = nullptr);
  LanguageModel& model() { return *model_; }
  LanguageModel& draft() { return *draft_; }  // its draft model, unscaled
  /// Draft heads for the model; null for decoders that need none. The bundled model has trained
  /// heads, the tiny transformer random ones on its output matrix, and the toy's heads are sometimes right.
  DraftHeads* heads(const std::string& decoder);
  /// Path of the tree file beside the heads; empty if there is none.
  std::string heads_tree(const std::string& decoder) const;
  /// Further ranks for jobs that use several: the same model, each on its own device.
  std::vector<OtherRank> ranks(const Job& job);
  const Model* transformer() const { return transformer_; }  // null for the toy
  /// A prompt for any i >= 0; for the bundled model, the bundled prompts in turn.
  std::vector<TokenId> prompt(int i) const;
  TokenId last_id() const { return model_->vocab_size() - 1; }
  /// Number of tokens to generate: fewer for models with slower forwards.
  int n_tokens() const;

 private:
  /// A further rank with its own device and mutex.
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
  std::vector<std::unique_ptr<Rank>> ranks_;  // made on demand
  std::vector<std::vector<TokenId>> prompts_;
};
/// Returns the subject's models, loaded once per process.
Loaded& loaded(const Subject& subject);

/// Every decoder with the option values that change its behaviour, including extreme ones.
std::vector<Job> all_settings();
/// One job for each decoder and form, with default options.
std::vector<Job> plain_settings();
/// Upper bound on the tokens that one step can emit with these settings.
int most_tokens(const Job& job);

}  // namespace engine::test

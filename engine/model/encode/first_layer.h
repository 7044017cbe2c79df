// The first transformer layer of a model, frozen, as an encoder of tokens: one way in which
// Chimera's heads read the text and their drafts (HeadsConfig::by_first_layer).
//   paper    Zeng et al. 2024 (arXiv:2402.15758), Table 6, first row
//   differs  an encoding is divided by its root mean square, as hidden states are by the model's
//            final norm
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/model/model.h"

namespace engine {

/// The shape of the embedding and the first layer of a model.
ModelConfig first_layer_of(ModelConfig config);
/// Loads the embedding and the first layer of a model. Its hidden states are the encodings of the
/// rows.
/// @param options  as for the whole model, but its progress is not reported
/// @throws Error  as Model::load()
std::unique_ptr<Model> load_first_layer(kernels::Device& device,
                                        const ModelFiles& files,
                                        const LoadOptions& options);

/// The encodings of one text and of the drafts after it.
class EncodedText {
 public:
  /// @param layer  the result of load_first_layer(); outlives this
  explicit EncodedText(Model& layer) : layer_(layer), cache_(layer.make_cache()) {}
  /// Adds tokens to the text. @return  [n, dim]
  std::vector<float> append(std::span<const TokenId> tokens);
  /// Removes the tokens from `length` on.
  void truncate(int length);
  /// Starts a new draft after the text.
  void begin_draft() { draft_.clear(); }
  /// Adds rows to the draft. The earlier rows are computed again, because a forward keeps no rows
  /// that are not committed.
  /// @param parent  [n] indices of earlier rows of this draft; -1: the text
  /// @return  [n, dim]
  std::vector<float> draft(std::span<const int> parent, std::span<const TokenId> tokens);

 private:
  std::vector<float> forward(const TokenTree& rows) const;

  Model& layer_;
  std::unique_ptr<SequenceCache> cache_;
  std::vector<TokenId> tokens_;
  TokenTree draft_;
};

/// Encodes whole token trees, for training. Any thread may call it.
class FirstLayer {
 public:
  /// @param layer  the result of load_first_layer(). Its device belongs to this object while
  ///               encode() runs
  explicit FirstLayer(std::unique_ptr<Model> layer) : layer_(std::move(layer)) {}
  /// @param trees  texts from their first token on, each with any branches
  /// @return  [trees] the encodings of a tree's rows, [n_rows, dim]
  std::vector<std::vector<float>> encode(std::span<const TokenTree> trees);

 private:
  std::mutex mutex_;
  std::unique_ptr<Model> layer_;
};

}  // namespace engine

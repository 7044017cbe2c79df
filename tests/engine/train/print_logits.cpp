// Prints, as JSON, the token ids of a prompt and the logits after each of them, computed in f32 by
// the forward pass of decoding. For compare_logits.py.
#include <cstdio>
#include <exception>

#include <nlohmann/json.hpp>

#include "engine/store/model_store.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: print_logits MODEL_DIRECTORY PROMPT\n");
    return 2;
  }
  try {
    engine::ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 0);
    engine::Model& model = *store.get({.model = argv[1], .dtype = "f32"}).model;
    const std::vector<engine::TokenId> tokens = model.tokenizer()->encode(argv[2]);
    engine::TokenTree tree;  // a chain: every token attends to those before it
    for (std::size_t i = 0; i < tokens.size(); i++)
      tree.add(tokens[i], static_cast<int>(i) - 1, {});
    const auto cache = model.make_cache();
    const engine::BatchItem item{.cache = cache.get(), .tree = &tree, .prefix = {}};
    const auto out = model.forward(std::span(&item, 1), {.logits = true, .hidden = false});
    auto logits = nlohmann::json::array();
    for (int row = 0; row < tree.n_rows(); row++) {
      const auto of_row = out[0].logits_of(row);
      logits.push_back(std::vector<float>(of_row.begin(), of_row.end()));
    }
    std::printf("%s\n", nlohmann::json{{"tokens", tokens}, {"logits", logits}}.dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "print_logits: %s\n", error.what());
    return 1;
  }
  return 0;
}

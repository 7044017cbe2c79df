#include "app/window/models.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/commands/generation.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/model/language_model.h"
#include "ui/shell/catalog.h"

namespace app {
namespace {

namespace fs = std::filesystem;

// Returns a hash (FNV-1a) of the tokens in their order.
std::uint64_t vocabulary_hash(const engine::Tokenizer& tokenizer, int n_tokens) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x0000'0100'0000'01B3; };
  for (engine::TokenId id = 0; id < n_tokens; id++) {
    for (const char c : tokenizer.piece(id)) add(static_cast<unsigned char>(c));
    add(0xFF);  // marks the end of a piece, because 0xFF is no byte of UTF-8
  }
  return hash;
}

ui::CatalogModel catalog_model(const fs::path& folder, const ModelOptions& options) {
  ui::CatalogModel model{.name = folder.filename().string(), .path = folder.string()};
  try {
    const engine::ModelFiles files =
        engine::open_model(folder.string(), {.allow_external_shards = options.allow_external_shards,
                                             .needs_tokenizer = false,
                                             .limits = options.limits});
    model.n_params = files.config.n_params();
    model.has_tokenizer = files.tokenizer != nullptr;
    model.summary =
        fmt::format("{:.1f} M parameters, {}", static_cast<double>(model.n_params) * 1e-6,
                    kernels::name_of(files.stored_dtype));
    if (!model.has_tokenizer) model.unavailable = "it has no tokenizer";
    model.draft = files.draft_name;
    model.context = files.config.max_seq_len;
    const engine::Sampling own = sampling_by_model(files.generation);
    model.sampling = {.temperature = own.temperature,
                      .top_p = own.top_p,
                      .min_p = own.min_p,
                      .repetition_penalty = own.repetition_penalty,
                      .top_k = own.top_k,
                      .max_tokens = files.generation.max_new_tokens.value_or(0)};
    model.before = engine::name_before_training(folder.string(), options.limits);
    model.vocab_size = files.config.vocab_size;
    if (files.tokenizer) {
      model.vocab_size = std::min(model.vocab_size, files.tokenizer->vocab_size());
      model.vocabulary = vocabulary_hash(*files.tokenizer, model.vocab_size);
    }
  } catch (const kernels::Error& error) {
    model.unavailable = error.what();
  }
  return model;
}

// Returns true if a folder contains draft heads instead of a model.
bool holds_heads(const fs::path& folder) {
  try {
    return engine::heads_kind(folder.string()).has_value();
  } catch (const kernels::Error&) {
    return false;  // the folder is then listed as a model, with the error
  }
}

}  // namespace

std::vector<ui::CatalogModel> catalog_models(const std::filesystem::path& folder,
                                             const ModelOptions& options) {
  const std::string& named = options.model;
  std::vector<ui::CatalogModel> list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory() && !holds_heads(entry.path()))
      list.push_back(catalog_model(entry.path(), options));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    const bool a_target = a.name == "demo-target", b_target = b.name == "demo-target";
    return a_target != b_target ? a_target : a.name < b.name;
  });
  const bool listed =
      std::any_of(list.begin(), list.end(), [&](const auto& m) { return m.name == named; });
  if (!listed && fs::is_directory(named, error)) {
    list.insert(list.begin(), catalog_model(named, options));
    list.front().name = named;
  }
  return list;
}

}  // namespace app

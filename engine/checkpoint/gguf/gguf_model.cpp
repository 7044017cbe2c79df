#include "engine/checkpoint/gguf/gguf_model.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/gguf/gguf_config.h"
#include "engine/checkpoint/gguf/gguf_shards.h"
#include "engine/checkpoint/gguf/gguf_tensors.h"
#include "engine/tokenizer/gguf_tokenizer.h"

namespace engine {
namespace {

// Start of the names of tensors that the configuration uses: rope_freqs.weight, rope_factors_long.weight
// and rope_factors_short.weight.
constexpr const char* kRopeFactors = "rope_f";

void note_unused_tensors(const GgufTensors& tensors, ModelFiles& files) {
  std::vector<std::string> unused = tensors.unused();
  std::erase_if(unused, [](const std::string& name) { return name.starts_with(kRopeFactors); });
  if (unused.empty()) return;
  files.notices.push_back(fmt::format(
      "{}: {} tensors are ignored because this kind of model does not use them, e.g. {}",
      escaped(files.path), unused.size(), in_quotes(unused.front())));
}

constexpr const char* kFileType = "general.file_type";

// Quantised weights are decoded to bf16 by default, which has the range of f32 in half the bytes.
void set_types(const GgmlTypeInfo& type, ModelFiles& files) {
  files.stored_type = type.name;
  files.quantised = type.block_size > 1;
  if (files.quantised) files.packed_type = packed_format(static_cast<GgmlType>(type.number));
  std::string lower = type.name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  files.stored_dtype = kernels::dtype_named(lower).value_or(kernels::DType::BF16);
}

void set_tokenizer(const OpenOptions& options, ModelFiles& files) {
  if (!files.gguf->has("tokenizer.ggml.model")) {
    if (options.needs_tokenizer)
      refuse(files.path, "key \"tokenizer.ggml.model\"", "none", "a tokenizer");
    return;
  }
  files.tokenizer = open_gguf_tokenizer(*files.gguf, options.limits, files.notices);
}

}  // namespace

ModelFiles open_gguf_model(const std::string& path, const OpenOptions& options) {
  const auto parts = open_gguf_files(path, options.limits);
  ConfigFile config = read_gguf_config(*parts[0], parts, options.limits, options.context);
  ModelFiles files;
  files.path = path;
  files.name = gguf_model_name(path);
  files.gguf = parts[0];
  files.notices = std::move(config.notices);
  files.config = std::move(config.config);
  files.chat_template = parts[0]->string("tokenizer.chat_template").value_or("");
  const auto tensors = std::make_shared<GgufTensors>(parts, files.config);
  files.tensors = tensors;
  set_types(tensors->main_type(), files);
  if (const GgufEntry* entry = parts[0]->find(kFileType); entry && entry->type == GgufType::U32)
    files.file_type = file_type_name(*parts[0]->integer(kFileType));
  note_unused_tensors(*tensors, files);
  set_tokenizer(options, files);
  if (files.config.eos_ids.empty())
    files.notices.push_back(
        escaped(path) +
        ": no tokenizer.ggml.eos_token_id: generation ends at tokens with known names or at the "
        "length limit");
  return files;
}

}  // namespace engine

// Writes model directories: each file under a temporary name, then renamed.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/mapped_file.h"
#include "engine/base/output_file.h"
#include "engine/base/refuse.h"
#include "engine/base/text.h"
#include "engine/checkpoint/adapter/lora_adapter.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/draft/sharing_draft.h"
#include "engine/checkpoint/families/write_family.h"
#include "engine/checkpoint/gguf/gguf_shards.h"
#include "engine/checkpoint/gguf/tokenizer_from_gguf.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/shared/target_output.h"
#include "engine/checkpoint/tensor_source.h"
#include "engine/checkpoint/weights_output.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

const char* stored_name(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::F32:
      return "F32";
    case kernels::DType::F16:
      return "F16";
    case kernels::DType::BF16:
      return "BF16";
    default:
      break;
  }
  return "?";
}

// A tensor of the output and its dtype, or a list of token ids.
struct Written {
  const TensorSpec* spec;
  kernels::DType dtype;
  const std::vector<TokenId>* ids = nullptr;
};

std::int64_t n_bytes_of(const Written& written) {
  std::int64_t n = written.ids ? sizeof(TokenId) : kernels::bytes_of(written.dtype);
  for (const std::int64_t dim : written.spec->shape) n *= dim;
  return n;
}

std::string header_of(const std::vector<Written>& all) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::int64_t begin = 0;
  for (const Written& written : all) {
    const std::int64_t end = begin + n_bytes_of(written);
    header += fmt::format(R"(,{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                          json_quoted(written.spec->name),
                          written.ids ? "I32" : stored_name(written.dtype),
                          shown_shape(written.spec->shape), begin, end);
    begin = end;
  }
  header += "}";
  while (header.size() % 8 != 0) header += ' ';  // aligns the tensors
  return header;
}

// A dtype that can represent every value of a tensor: `main` if possible.
kernels::DType exact_dtype(const TensorSource& tensors,
                           const TensorSpec& spec,
                           kernels::DType main) {
  const bool is_vector = spec.shape.size() < 2;
  if (!is_vector) {  // not read, because reading may decode it
    std::string type = tensors.stored(spec.name).type;
    std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
    return kernels::dtype_named(type).value_or(kernels::DType::F32);
  }
  const Tensor tensor = tensors.read(spec.name);
  if (tensor.dtype != kernels::DType::F32) return tensor.dtype;
  const std::int64_t n = tensor.n_elements();
  std::vector<std::uint32_t> narrow(static_cast<std::size_t>(n));
  convert_elements(tensor, 0, n, main, narrow.data());
  const std::vector<float> back = f32_of({main, tensor.shape, narrow.data(), nullptr});
  return std::ranges::equal(back, f32_of(tensor)) ? main : kernels::DType::F32;
}

std::vector<Written> all_as(const std::vector<TensorSpec>& specs, kernels::DType dtype) {
  std::vector<Written> all;
  for (const TensorSpec& spec : specs) all.push_back({&spec, dtype, nullptr});
  return all;
}

// Converts a tensor in parts.
void write_tensor(const Tensor& tensor, kernels::DType dtype, WeightsOutput& file) {
  constexpr std::int64_t kPiece = 1 << 20;  // elements
  const std::int64_t n = tensor.n_elements();
  std::string converted;
  for (std::int64_t first = 0; first < n; first += kPiece) {
    const std::int64_t count = std::min(kPiece, n - first);
    converted.resize(static_cast<std::size_t>(count * kernels::bytes_of(dtype)));
    convert_elements(tensor, first, count, dtype, converted.data());
    file.write(converted);
  }
}

// Keeps one tensor in memory at a time.
void write_tensors(const std::string& path,
                   const std::vector<Written>& all,
                   const TensorSource& tensors,
                   const WriteProgress& progress = {}) {
  std::int64_t total = 0;
  for (const Written& written : all) total += n_bytes_of(written);
  WeightsOutput file(path, total, progress);
  const std::string header = header_of(all);
  std::string length(8, '\0');
  for (int i = 0; i < 8; i++)
    length[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (8 * i));
  file.write_uncounted(length + header);
  for (const Written& written : all) {
    if (written.ids) {
      file.write({reinterpret_cast<const char*>(written.ids->data()),
                  static_cast<std::size_t>(n_bytes_of(written))});
      continue;
    }
    const Tensor tensor = tensors.read(written.spec->name);
    if (tensor.shape != written.spec->shape) {
      refuse(tensors.path(), "tensor " + in_quotes(written.spec->name), shown_shape(tensor.shape),
             shown_shape(written.spec->shape));
    }
    write_tensor(tensor, written.dtype, file);
  }
  tensors.check();
  file.finish();
}

void make_directory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    throw Error(ErrorCode::Resources,
                escaped(directory) + ": cannot create the directory: " + error.message());
  }
}

std::string heads_json(const HeadsConfig& c, kernels::DType dtype) {
  std::string text = fmt::format(
      "{{\n  \"model_type\": \"{}\",\n  \"base_model_name_or_path\": {},\n"
      "  \"{}_num_heads\": {},\n",
      name_of(c.kind), json_quoted(c.base), name_of(c.kind), c.n_heads);
  if (c.kind == HeadsKind::Medusa) {
    text += fmt::format("  \"medusa_num_layers\": {},\n", c.n_layers);
  } else {
    text += fmt::format(
        "  \"gram\": {},\n  \"residual\": {},\n  \"first_layer\": \"{}\",\n"
        "  \"sees_committed_grams\": {},\n"
        "  \"intermediate_size\": {},\n  \"num_attention_heads\": {},\n"
        "  \"rms_norm_eps\": {},\n  \"rope_theta\": {:.1f},\n",
        c.gram, c.residual, c.own_embedding ? "finetuned" : "frozen", c.sees_committed_grams,
        c.hidden_dim, c.n_attention_heads, c.norm_eps, c.rope_theta);
    if (c.by_first_layer) text += "  \"token_encoder\": \"first_layer\",\n";
    if (c.target_output)
      text += fmt::format("  \"head_intermediate_size\": {},\n", c.head_hidden_dim);
  }
  if (c.target_output) text += "  \"output\": \"target\",\n";
  return text +
         fmt::format(
             "  \"hidden_size\": {},\n  \"vocab_size\": {},\n  \"torch_dtype\": \"{}\"\n}}\n",
             c.dim, c.vocab_size, torch_name(dtype));
}

std::string adapter_json(const LoraAdapter& adapter) {
  std::set<std::string> targets;
  std::int64_t rank = 0;
  for (const auto& [name, update] : adapter.updates) {
    const std::string module = name.substr(0, name.rfind('.'));
    targets.insert(json_quoted(module.substr(module.rfind('.') + 1)));
    rank = update.a.shape[0];
    ensure(update.scale == 1, "an adapter is written with scale 1");
  }
  return fmt::format(
      "{{\n  \"peft_type\": \"LORA\",\n  \"task_type\": \"CAUSAL_LM\",\n"
      "  \"base_model_name_or_path\": {},\n  \"r\": {},\n  \"lora_alpha\": {},\n"
      "  \"lora_dropout\": 0.0,\n  \"target_modules\": [{}],\n  \"bias\": \"none\",\n"
      "  \"fan_in_fan_out\": false,\n  \"use_rslora\": false,\n  \"use_dora\": false,\n"
      "  \"modules_to_save\": null,\n  \"inference_mode\": true\n}}\n",
      json_quoted(adapter.base), rank, rank, fmt::join(targets, ", "));
}

}  // namespace

void copy_tokenizer(const std::string& from, const std::string& to) {
  if (is_gguf_path(from)) {
    std::vector<std::string> ignored;  // the tokenizer was opened, so it can be written
    return tokenizer_from_gguf(*GgufFile::open(from), to, ignored);
  }
  // Opening the tokenizer has checked their sizes.
  constexpr std::size_t kMaxBytes = std::size_t{1} << 32;
  const auto copy = [&](const std::string& name) {
    write_whole_file(to + "/" + name, read_text_file(from + "/" + name, kMaxBytes));
  };
  for (const char* name :
       {"tokenizer.model", "tokenizer.json", "tokenizer_config.json", "tekken.json",
        "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"})
    if (fs::exists(from + "/" + name)) copy(name);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(from, error))
    if (entry.path().extension() == ".tiktoken") copy(entry.path().filename().string());
}

void write_model(const std::string& directory,
                 const ModelConfig& config,
                 const TensorSource& tensors,
                 kernels::DType dtype,
                 const std::string& tokenizer_from) {
  write_weights(directory, config, tensors, dtype, dtype, {});
  if (!tokenizer_from.empty()) copy_tokenizer(tokenizer_from, directory);
}

void write_weights(const std::string& directory,
                   const ModelConfig& config,
                   const TensorSource& tensors,
                   std::optional<kernels::DType> dtype,
                   kernels::DType main,
                   const WriteProgress& progress) {
  check_describable(config);
  make_directory(directory);
  const std::vector<TensorSpec> specs = tensors_of(config);
  std::vector<Written> all = all_as(specs, dtype.value_or(main));
  if (!dtype)
    for (Written& written : all) written.dtype = exact_dtype(tensors, *written.spec, main);
  write_tensors(directory + "/model.safetensors", all, tensors, progress);
  write_whole_file(directory + "/config.json", config_json(config, dtype.value_or(main)));
  write_whole_file(directory + "/generation_config.json", generation_config_json(config));
}

void write_sharing_draft(const std::string& directory,
                         const ModelConfig& config,
                         const TensorSource& tensors,
                         const std::vector<TokenId>& output_tokens,
                         kernels::DType dtype) {
  make_directory(directory);
  const std::vector<TensorSpec> specs = own_tensors_of(config);
  const TensorSpec tokens{kOutputTokens, {std::ssize(output_tokens)}};
  std::vector<Written> all = all_as(specs, dtype);
  if (!output_tokens.empty()) all.push_back({&tokens, dtype, &output_tokens});
  write_tensors(directory + "/model.safetensors", all, tensors);
  write_whole_file(directory + "/config.json", config_json(config, dtype));
  write_whole_file(directory + "/generation_config.json", generation_config_json(config));
}

void write_heads(const std::string& directory,
                 const HeadsConfig& config,
                 const TensorSource& tensors,
                 kernels::DType dtype) {
  make_directory(directory);
  const std::vector<TensorSpec> specs = tensors_of(config);
  std::vector<Written> all = all_as(specs, dtype);
  const TensorSpec ids{kOutputTokens, {config.n_outputs()}};
  if (!config.output_tokens.empty()) all.push_back({&ids, dtype, &config.output_tokens});
  write_tensors(directory + "/model.safetensors", all, tensors);
  write_whole_file(directory + "/config.json", heads_json(config, dtype));
}

void write_adapter(const std::string& directory, const LoraAdapter& adapter, kernels::DType dtype) {
  make_directory(directory);
  std::vector<TensorSpec> specs;
  for (const std::string& name : adapter.tensors->names())
    specs.push_back({name, adapter.tensors->read(name).shape});
  write_tensors(directory + "/adapter_model.safetensors", all_as(specs, dtype), *adapter.tensors);
  write_whole_file(directory + "/adapter_config.json", adapter_json(adapter));
}

}  // namespace engine

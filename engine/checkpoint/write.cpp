// Writes model directories: each file under a temporary name, then renamed.
#include <filesystem>

#include <fmt/format.h>

#include "engine/base/mapped_file.h"
#include "engine/base/output_file.h"
#include "engine/base/refuse.h"
#include "engine/base/text.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/families/write_family.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/tensor_source.h"

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
  }
  return "?";
}

std::string header_of(const std::vector<TensorSpec>& specs, kernels::DType dtype) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::int64_t begin = 0;
  for (const TensorSpec& spec : specs) {
    std::int64_t n = 1;
    for (const std::int64_t dim : spec.shape) n *= dim;
    const std::int64_t end = begin + n * kernels::bytes_of(dtype);
    header += fmt::format(R"(,{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                          json_quoted(spec.name), stored_name(dtype), shown_shape(spec.shape),
                          begin, end);
    begin = end;
  }
  header += "}";
  while (header.size() % 8 != 0) header += ' ';  // aligns the tensors
  return header;
}

// Keeps one tensor in memory at a time and converts it in parts.
void write_tensors(const std::string& path,
                   const std::vector<TensorSpec>& specs,
                   const TensorSource& tensors,
                   kernels::DType dtype) {
  const std::string header = header_of(specs, dtype);
  OutputFile file(path);
  std::string length(8, '\0');
  for (int i = 0; i < 8; i++)
    length[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (8 * i));
  file.write(length);
  file.write(header);
  std::string converted;
  for (const TensorSpec& spec : specs) {
    const Tensor tensor = tensors.read(spec.name);
    if (tensor.shape != spec.shape) {
      refuse(tensors.path(), "tensor " + in_quotes(spec.name), shown_shape(tensor.shape),
             shown_shape(spec.shape));
    }
    constexpr std::int64_t kPiece = 1 << 20;
    const std::int64_t n = tensor.n_elements();
    for (std::int64_t first = 0; first < n; first += kPiece) {
      const std::int64_t count = std::min(kPiece, n - first);
      converted.resize(static_cast<std::size_t>(count * kernels::bytes_of(dtype)));
      convert_elements(tensor, first, count, dtype, converted.data());
      file.write(converted);
    }
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
  }
  return text +
         fmt::format(
             "  \"hidden_size\": {},\n  \"vocab_size\": {},\n  \"torch_dtype\": \"{}\"\n}}\n",
             c.dim, c.vocab_size, torch_name(dtype));
}

// Copies the directory's tokenizer_config.json; without one, writes the tokenizer's settings.
void copy_tokenizer(const std::string& from, const std::string& to) {
  // Opening the tokenizer has checked their sizes.
  constexpr std::size_t kMaxBytes = std::size_t{1} << 32;
  write_whole_file(to + "/tokenizer.model", read_text_file(from + "/tokenizer.model", kMaxBytes));
  for (const char* name :
       {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}) {
    const std::string path = from + "/" + name;
    if (fs::exists(path)) write_whole_file(to + "/" + name, read_text_file(path, kMaxBytes));
  }
}

}  // namespace

void write_model(const std::string& directory,
                 const ModelConfig& config,
                 const TensorSource& tensors,
                 kernels::DType dtype,
                 const std::string& tokenizer_from) {
  check_describable(config);
  make_directory(directory);
  write_tensors(directory + "/model.safetensors", tensors_of(config), tensors, dtype);
  write_whole_file(directory + "/config.json", config_json(config, dtype));
  write_whole_file(directory + "/generation_config.json", generation_config_json(config));
  if (!tokenizer_from.empty()) copy_tokenizer(tokenizer_from, directory);
}

void write_heads(const std::string& directory,
                 const HeadsConfig& config,
                 const TensorSource& tensors,
                 kernels::DType dtype) {
  make_directory(directory);
  write_tensors(directory + "/model.safetensors", tensors_of(config), tensors, dtype);
  write_whole_file(directory + "/config.json", heads_json(config, dtype));
}

}  // namespace engine

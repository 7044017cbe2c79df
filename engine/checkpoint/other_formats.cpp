#include "engine/checkpoint/other_formats.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/file_kind.h"
#include "engine/base/refuse.h"
#include "engine/base/types.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConvert =
    "convert it where transformers is: `python3 -c \"from transformers import "
    "AutoModelForCausalLM as M; M.from_pretrained('IN').save_pretrained('OUT')\"`, and copy the "
    "tokenizer's files to OUT";
constexpr const char* kOriginal =
    "take the config.json, tokenizer files and model*.safetensors of the same release, in Hugging "
    "Face's layout";

std::string first_bytes(const std::string& path) {
  constexpr std::size_t kEnoughToRecognise = 512;
  std::string bytes(kEnoughToRecognise, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

/// True if a text may be the name of an organisation or model of a hub.
bool is_hub_word(std::string_view word) {
  const auto is_letter = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !word.empty() && word.size() <= 96 && word.front() != '.' &&
         std::ranges::all_of(word, is_letter);
}

/// Removes the site and a page such as "/tree/main" from a hub's URL; returns other text unchanged.
std::string_view without_site(std::string_view text) {
  for (const std::string_view site : {"https://huggingface.co/", "https://hf.co/", "hf://"}) {
    if (!text.starts_with(site)) continue;
    text.remove_prefix(site.size());
    for (const std::string_view page : {"/tree/", "/blob/", "/resolve/"})
      text = text.substr(0, text.find(page));
  }
  return text;
}

/// The id "org/name" from an id or URL; empty if it is neither.
std::string hub_id(std::string_view text) {
  text = without_site(text);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return "";
  const std::string_view org = text.substr(0, slash);
  const std::string_view name = text.substr(slash + 1, text.find('/', slash + 1) - slash - 1);
  const bool whole = text.size() <= org.size() + 1 + name.size() + 1;
  const bool fits = is_hub_word(org) && is_hub_word(name) && whole;
  return fits ? fmt::format("{}/{}", org, name) : std::string();
}

OtherFormat not_there(const std::string& path) {
  const std::string id = hub_id(path);
  std::error_code ignored;
  if (id.empty() || fs::exists(id.substr(0, id.find('/')), ignored)) return {};
  const std::string name = id.substr(id.find('/') + 1);
  return {
      "no folder with this name; it looks like an id of a model hub, and this program downloads "
      "nothing",
      fmt::format("download it with `hf download {} --local-dir {}` and name that folder", id,
                  name)};
}

/// Recognises a file given in place of a directory.
OtherFormat file_for_directory(const fs::path& path) {
  const std::string name = path.filename().string(), kind = path.extension().string();
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::string bytes = first_bytes(path.string());
  if (kind == ".gguf" || bytes.starts_with("GGUF"))
    return {"a GGUF file", "`decoscope model convert` makes a directory of it"};
  if (kind == ".safetensors" || name == "config.json" || name.starts_with("tokenizer"))
    return {"a file of a model", "name the directory that holds it: " + escaped(folder)};
  if (kind == ".pdrun") return {"a recording", "`decoscope --open FILE` shows it"};
  if (kind == ".onnx") return {"an ONNX file", "use the original model"};
  if (kind == ".bin" || kind == ".pt" || kind == ".pth" || kind == ".ckpt")
    return {"PyTorch weights, which may contain code and are not supported", kConvert};
  const std::string recognised = recognised_as(bytes);
  if (recognised.find("archive") != std::string::npos)
    return {recognised, "unpack it, and name the directory that holds config.json"};
  return {recognised.empty() ? "a file" : recognised, "name the directory that holds config.json"};
}

/// The names in a directory, sorted; only some thousands of them if the directory is very large.
std::vector<std::string> names_in(const std::string& directory) {
  constexpr std::size_t kMost = 4096;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
    if (names.size() == kMost) break;
  }
  std::ranges::sort(names);
  return names;
}

/// The first name with this prefix and suffix.
std::optional<std::string> find_name(const std::vector<std::string>& names,
                                     std::string_view begin,
                                     std::string_view end) {
  const auto found = std::ranges::find_if(names, [&](const std::string& name) {
    return name.size() >= begin.size() + end.size() && name.starts_with(begin) &&
           name.ends_with(end);
  });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

std::optional<OtherFormat> weights_of_pytorch(const std::vector<std::string>& names) {
  for (const auto& [begin, end] :
       {std::pair("pytorch_model", ".bin"), std::pair("model", ".bin"), std::pair("", ".pt"),
        std::pair("consolidated.", ".pth"), std::pair("", ".pth"), std::pair("", ".ckpt")}) {
    const auto name = find_name(names, begin, end);
    if (!name) continue;
    const bool is_original = name->starts_with("consolidated.");
    return OtherFormat{
        fmt::format("{}, PyTorch weights, which may contain code and are not supported",
                    escaped(*name)),
        is_original ? kOriginal : kConvert};
  }
  return std::nullopt;
}

std::optional<OtherFormat> safetensors_of_other_names(const std::vector<std::string>& names) {
  if (find_name(names, "consolidated.safetensors", ""))
    return OtherFormat{"consolidated.safetensors, weights with other tensor names", kOriginal};
  if (find_name(names, "medusa_lm_head.safetensors", ""))
    return OtherFormat{
        "medusa_lm_head.safetensors, Medusa's draft heads",
        "name the model with --model, and these heads with --decoder medusa --heads"};
  if (const auto shard = find_name(names, "model-0", ".safetensors")) {
    const bool alone = shard->ends_with("-of-00001.safetensors");
    return OtherFormat{
        fmt::format("{}, a shard without model.safetensors.index.json", escaped(*shard)),
        alone ? "rename it to model.safetensors, as it is the only one"
              : "download that index and every shard that it names"};
  }
  if (const auto other = find_name(names, "", ".safetensors"))
    return OtherFormat{escaped(*other) + ", weights under another name",
                       "if these are all of the model's weights, rename the file to "
                       "model.safetensors"};
  return std::nullopt;
}

std::optional<OtherFormat> model_below(const std::string& directory,
                                       const std::vector<std::string>& names) {
  std::error_code ignored;
  for (const std::string& name : names) {
    const fs::path below = fs::path(directory) / name;
    if (fs::exists(below / "config.json", ignored))
      return OtherFormat{"a model in its folder " + escaped(name),
                         "name that folder: " + escaped(below.string())};
    if (name != "snapshots") continue;
    for (const std::string& revision : names_in(below.string())) {
      const fs::path snapshot = below / revision;
      if (fs::exists(snapshot / "config.json", ignored))
        return OtherFormat{"a model hub's cache",
                           "name the snapshot in it: " + escaped(snapshot.string())};
    }
  }
  return std::nullopt;
}

}  // namespace

OtherFormat recognise_path(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return not_there(path);
  if (fs::is_directory(status)) return {};
  if (!fs::is_regular_file(status)) return {"a pipe or a device", "name a directory"};
  return file_for_directory(path);
}

OtherFormat recognise_directory(const std::string& directory) {
  const std::vector<std::string> names = names_in(directory);
  if (names.empty()) return {"an empty directory", "finish the download"};
  if (find_name(names, "adapter_config.json", ""))
    return {"a LoRA adapter (adapter_config.json)",
            "name it with its base model: MODEL+" + escaped(directory)};
  if (const auto gguf = find_name(names, "", ".gguf"))
    return {escaped(*gguf) + ", a GGUF file",
            "name that file: " + escaped((fs::path(directory) / *gguf).string())};
  if (auto safetensors = safetensors_of_other_names(names)) return *safetensors;
  if (auto pytorch = weights_of_pytorch(names)) return *pytorch;
  if (find_name(names, "pytorch_model.bin.index.json", ""))
    return {"pytorch_model.bin.index.json, an index of PyTorch weights, which are not supported",
            "use the model*.safetensors of the same model"};
  for (const char* end : {".onnx", "onnx", ".h5", ".msgpack", ".mlmodel", ".mlpackage", ".engine"})
    if (const auto other = find_name(names, "", end))
      return {escaped(*other) + ", weights for another program", kConvert};
  if (auto below = model_below(directory, names)) return *below;
  return {};
}

OtherFormat recognise_heads_config(const Json& config) {
  const auto has = [&](const char* key) { return config.find(key) != nullptr; };
  const auto has_name = [&](const char* key, std::string_view word) {
    const Json* value = config.find(key);
    if (value && value->is(JsonReader::Kind::Array) && !value->items.empty())
      value = &value->items.front();
    std::string text = value ? value->text : std::string();
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.find(word) != std::string::npos;
  };
  const std::string way =
      "use a model with a published Medusa head, or train heads: `decoscope train medusa`";
  if (has("hydra_num_heads") || has_name("model_type", "hydra"))
    return {
        "heads of Hydra, each of which reads the guess of the head before, and which are not "
        "supported",
        way};
  if (has_name("architectures", "eagle") || has_name("model_type", "eagle") ||
      has("draft_vocab_size"))
    return {"a draft of EAGLE, which reads the target's hidden states and is not supported", way};
  if (has_name("model_type", "mlp_speculator") || has_name("architectures", "speculator"))
    return {"an MLP speculator, which is not supported", way};
  if (has("hidden_size") && has("num_hidden_layers") && has("num_attention_heads"))
    return {"a model instead of heads (or a draft of EAGLE, which is not supported)",
            "use a draft model with --draft and --decoder speculative"};
  return {};
}

std::string prefix_of_wrapper(const std::vector<std::string>& names, const std::string& name) {
  for (const std::string& one : names)
    if (one.size() > name.size() && one.ends_with("." + name))
      return one.substr(0, one.size() - name.size());
  return "";
}

}  // namespace engine

#include "engine/checkpoint/shards.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// Provides the tensors of an index, each from its shard.
class ShardedTensors : public TensorSource {
 public:
  ShardedTensors(std::string path, std::vector<std::shared_ptr<const SafetensorsFile>> files)
      : path_(std::move(path)), files_(std::move(files)) {}

  void add(const std::string& name, std::size_t file) { file_of_.emplace(name, file); }
  bool has(const std::string& name) const override { return file_of_.contains(name); }
  Tensor read(const std::string& name) const override {
    const auto at = file_of_.find(name);
    if (at == file_of_.end()) refuse(path_, "tensor " + in_quotes(name), "none", "the tensor");
    return files_[at->second]->read(name);
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, file] : file_of_) names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string path() const override { return path_; }
  void check() const override {
    for (const auto& file : files_) file->check();
  }

 private:
  std::string path_;
  std::vector<std::shared_ptr<const SafetensorsFile>> files_;
  std::unordered_map<std::string, std::size_t> file_of_;
};

// Reads the index: the tensors of each shard, in file order.
struct Index {
  std::map<std::string, std::vector<std::string>> tensors_of;
  const Json* total_size = nullptr;
};

void check_shard_name(const std::string& index,
                      const std::string& tensor,
                      const std::string& name) {
  const bool is_plain = !name.empty() && name != "." && name != ".." &&
                        name.find_first_of(std::string_view("/\\:\0", 4)) == std::string::npos;
  if (is_plain) return;
  refuse(index, "weight_map." + escaped(tensor), in_quotes(name),
         "a file name in the same directory");
}

Index read_index(const Json& json, const std::string& path, const FileLimits& limits) {
  const Fields fields(json, path);
  const Json* map = fields.find("weight_map");
  if (!map || !map->is(JsonReader::Kind::Object)) {
    const Json* any = json.find("weight_map");
    fields.fail("weight_map", any ? any->shown() : "none", "an object of file names");
  }
  if (static_cast<std::int64_t>(map->members.size()) > limits.n_tensors) {
    fields.fail("weight_map", fmt::format("{} entries", map->members.size()),
                fmt::format("at most {}", limits.n_tensors));
  }
  Index index;
  for (const auto& [tensor, shard] : map->members) {
    if (!shard.is(JsonReader::Kind::String)) {
      refuse(path, "weight_map." + escaped(tensor), shard.shown(), "a file name");
    }
    check_shard_name(path, tensor, shard.text);
    index.tensors_of[shard.text].push_back(tensor);
  }
  if (index.tensors_of.empty()) fields.fail("weight_map", "no entries", "the model's tensors");
  if (const Json* metadata = fields.find("metadata"))
    index.total_size = metadata->find("total_size");
  return index;
}

// Refuses a link to a file outside the directory. In the Hugging Face cache, files of
// models--X/snapshots/REV may be links into models--X/blobs.
void check_inside(const std::string& directory, const std::string& file, bool allow_external) {
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  if (error || allow_external) return;  // opening reports a missing file
  fs::path root = fs::canonical(directory, error);
  if (root.parent_path().filename() == "snapshots") root = root.parent_path().parent_path();
  const auto [end, ignored] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  if (end == root.end()) return;
  refuse(file, "link", "a target outside the directory, " + escaped(real.string()),
         "a file inside it, or --allow-external-shards");
}

void check_total_size(const Index& index,
                      const std::string& path,
                      const WeightFiles& weights,
                      std::vector<std::string>& notices) {
  if (!index.total_size) return;
  std::int64_t total = 0;
  for (const auto& file : weights.files) {
    for (const TensorEntry& entry : file->entries()) total += entry.end - entry.begin;
  }
  const bool is_number = index.total_size->is(JsonReader::Kind::Number);
  if (is_number && index.total_size->number().integer() == total) return;
  notices.push_back(fmt::format(
      "{}: metadata.total_size is {}, but the shards have {} bytes: the former is ignored",
      escaped(path), index.total_size->shown(), total));
}

WeightFiles open_sharded(const std::string& directory,
                         bool allow_external,
                         const FileLimits& limits,
                         std::vector<std::string>& notices) {
  const std::string path = directory + "/" + kIndex;
  const Json json = read_json_file(path, limits);
  const Index index = read_index(json, path, limits);

  WeightFiles weights;
  std::unordered_map<std::string, std::string> shard_of;  // every tensor of every shard
  for (const auto& [shard, tensors] : index.tensors_of) {
    const std::string file = directory + "/" + shard;
    if (!fs::exists(file)) {
      refuse(path, "weight_map", "no file " + in_quotes(shard),
             "that shard, which holds " + in_quotes(tensors[0]));
    }
    check_inside(directory, file, allow_external);
    weights.files.push_back(SafetensorsFile::open(file, limits));
    for (const std::string& tensor : tensors) {
      if (weights.files.back()->has(tensor)) continue;
      refuse(file, "tensor " + in_quotes(tensor), "none",
             "the tensor that " + std::string(kIndex) + " places in this shard");
    }
    for (const TensorEntry& entry : weights.files.back()->entries()) {
      const auto [at, is_new] = shard_of.emplace(entry.name, shard);
      if (is_new) continue;
      refuse(file, "tensor " + in_quotes(entry.name), "it in " + in_quotes(at->second) + " too",
             "every tensor in one shard");
    }
  }

  auto tensors = std::make_shared<ShardedTensors>(path, weights.files);
  std::size_t n_named = 0, file = 0;
  for (const auto& [shard, names] : index.tensors_of) {
    for (const std::string& name : names) tensors->add(name, file);
    n_named += names.size();
    file++;
  }
  if (shard_of.size() > n_named) {
    notices.push_back(fmt::format("{}: {} tensors of the shards are not in the index: ignored",
                                  escaped(path), shard_of.size() - n_named));
  }
  weights.tensors = tensors;
  check_total_size(index, path, weights, notices);
  return weights;
}

class FullNames : public TensorSource {
 public:
  FullNames(std::shared_ptr<const TensorSource> from, std::map<std::string, std::string> bare)
      : from_(std::move(from)), bare_(std::move(bare)) {}

  bool has(const std::string& name) const override { return from_->has(name_in_file(name)); }
  Tensor read(const std::string& name) const override { return from_->read(name_in_file(name)); }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const std::string& name : from_->names()) {
      const std::string full = full_name(name);
      if (full == name || bare_.contains(full)) names.push_back(full);
    }
    return names;
  }
  std::string path() const override { return from_->path(); }
  void check() const override { from_->check(); }

 private:
  const std::string& name_in_file(const std::string& name) const {
    const auto at = bare_.find(name);
    return at == bare_.end() ? name : at->second;
  }

  std::shared_ptr<const TensorSource> from_;
  std::map<std::string, std::string> bare_;  // full name -> name in the file
};

}  // namespace

WeightFiles open_weights(const std::string& directory,
                         bool allow_external,
                         const FileLimits& limits,
                         std::vector<std::string>& notices) {
  const std::string path = directory + "/" + kSingle, index = directory + "/" + kIndex;
  const bool has_index = fs::exists(index);
  if (!fs::exists(path) && has_index)
    return open_sharded(directory, allow_external, limits, notices);
  if (has_index)
    notices.push_back(
        fmt::format("{}: ignored with its shards, because {} exists; transformers does the same",
                    escaped(index), kSingle));
  return open_weight_file(directory, kSingle, allow_external, limits);
}

WeightFiles open_weight_file(const std::string& directory,
                             const std::string& name,
                             bool allow_external,
                             const FileLimits& limits) {
  const std::string path = directory + "/" + name;
  check_inside(directory, path, allow_external);
  const std::shared_ptr<const SafetensorsFile> file = SafetensorsFile::open(path, limits);
  return {file, {file}};
}

std::string full_name(const std::string& name) {
  const bool is_bare =
      name.starts_with("layers.") || name.starts_with("embed_tokens.") || name == "norm.weight";
  return is_bare ? "model." + name : name;
}

std::shared_ptr<const TensorSource> with_full_names(std::shared_ptr<const TensorSource> tensors,
                                                    std::vector<std::string>& notices) {
  std::map<std::string, std::string> bare;
  std::size_t n_twice = 0;
  for (const std::string& name : tensors->names()) {
    const std::string full = full_name(name);
    if (full == name) continue;
    if (tensors->has(full)) {
      if (n_twice++ > 0) continue;
      notices.push_back(fmt::format("{}: tensor {}: {} exists too and is used",
                                    escaped(tensors->path()), in_quotes(name), in_quotes(full)));
    } else {
      bare.emplace(full, name);
    }
  }
  if (n_twice > 1) {
    notices.back() += fmt::format("; likewise for {} more", n_twice - 1);
  }
  if (bare.empty()) return tensors;
  notices.push_back(fmt::format("{}: {} tensors without the prefix \"model.\", e.g. {}: read as {}",
                                escaped(tensors->path()), bare.size(),
                                in_quotes(bare.begin()->second), in_quotes(bare.begin()->first)));
  return std::make_shared<FullNames>(std::move(tensors), std::move(bare));
}

}  // namespace engine

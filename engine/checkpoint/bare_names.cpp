#include "engine/checkpoint/bare_names.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/refuse.h"

namespace engine {
namespace {

class FullNames : public TensorSource {
 public:
  FullNames(std::shared_ptr<const TensorSource> from, std::map<std::string, std::string> bare)
      : from_(std::move(from)), bare_(std::move(bare)) {}

  bool has(const std::string& name) const override { return from_->has(stored(name)); }
  Tensor read(const std::string& name) const override { return from_->read(stored(name)); }
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
  const std::string& stored(const std::string& name) const {
    const auto at = bare_.find(name);
    return at == bare_.end() ? name : at->second;
  }

  std::shared_ptr<const TensorSource> from_;
  std::map<std::string, std::string> bare_;  // full name -> name in the file
};

}  // namespace

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
      notices.push_back(fmt::format("{}: tensor {}: there is {} too: that one is used",
                                    escaped(tensors->path()), in_quotes(name), in_quotes(full)));
    } else {
      bare.emplace(full, name);
    }
  }
  if (n_twice > 1) {
    notices.back() += fmt::format("; likewise for {} more", n_twice - 1);
  }
  if (bare.empty()) return tensors;
  notices.push_back(fmt::format("{}: {} tensors without \"model.\" in front, e.g. {}: read as {}",
                                escaped(tensors->path()), bare.size(),
                                in_quotes(bare.begin()->second), in_quotes(bare.begin()->first)));
  return std::make_shared<FullNames>(std::move(tensors), std::move(bare));
}

}  // namespace engine

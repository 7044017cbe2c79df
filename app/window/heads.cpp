#include "app/window/heads.h"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/commands/generation.h"
#include "engine/checkpoint/found/found_heads.h"
#include "engine/checkpoint/found/found_models.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/decode/draft/option_trees.h"
#include "ui/shell/catalog.h"

namespace app {
namespace {

namespace fs = std::filesystem;

constexpr engine::HeadsKind kKinds[] = {engine::HeadsKind::Medusa, engine::HeadsKind::Chimera};

// Adds the heads in a directory, if it contains any.
void add_one(ui::Catalog& catalog,
             const std::string& name,
             const std::string& path,
             const engine::FileLimits& limits) {
  const auto same = [&](const ui::CatalogHeads& known) { return known.path == path; };
  if (std::ranges::any_of(catalog.heads, same)) return;
  try {
    const auto kind = engine::heads_kind(path, limits);
    if (!kind) return;
    catalog.heads.push_back({.name = name,
                             .path = path,
                             .kind = engine::name_of(*kind),
                             .summary = {},
                             .unavailable = {},
                             .unfit = {}});
  } catch (const kernels::Error&) {
    return;  // the folder is listed as a model, with the error
  }
  ui::CatalogHeads& heads = catalog.heads.back();
  try {
    const engine::HeadsConfig config = engine::open_heads(path, nullptr, limits).config;
    heads.summary = fmt::format("{} heads{}, {:.1f} M parameters", config.n_heads,
                                config.base.empty() ? "" : " for " + config.base,
                                static_cast<double>(config.n_params()) * 1e-6);
  } catch (const kernels::Error& error) {
    heads.unavailable = error.what();
  }
}

ui::TreeNote noted(const std::string& decoder,
                   const engine::OptionInfo& option,
                   const std::string& value) {
  ui::TreeNote note;
  try {
    const auto shape =
        engine::tree_shape(engine::decoder_named(decoder), option, value, trees_dir());
    const bool is_sized = option.type == engine::OptionInfo::Type::Counts;
    note.words = shape      ? engine::words_of(*shape)
                 : is_sized ? "chosen at every step: at most 28 tokens, 29 rows per step"
                            : "tree.json beside the heads, else rows16";
  } catch (const kernels::Error& error) {
    note.refusal = error.what();
  }
  return note;
}

// Caches descriptions of trees. The description of a file is computed again when the file changes.
class TreeNotes {
 public:
  const ui::TreeNote& of(const std::string& decoder,
                         const engine::OptionInfo& option,
                         const std::string& value) {
    std::error_code none;
    const auto changed = fs::last_write_time(value, none);
    if (kept_.size() > kMost) kept_.clear();
    Kept& kept = kept_[decoder + " " + option.name + " " + value];
    if (!kept.is_made || kept.changed != changed)
      kept = {.is_made = true, .changed = changed, .note = noted(decoder, option, value)};
    return kept.note;
  }

 private:
  static constexpr std::size_t kMost = 100;  // while a path is typed, every prefix is described
  struct Kept {
    bool is_made = false;
    fs::file_time_type changed{};
    ui::TreeNote note;
  };
  std::map<std::string, Kept> kept_;
};

}  // namespace

std::string name_of_directory(const fs::path& directory) {
  const bool is_bundled = directory.parent_path() == fs::path(assets_dir()) / "models";
  return is_bundled ? directory.filename().string() : directory.string();
}

std::map<std::string, std::string> compare_with_heads(ui::CatalogModel& model,
                                                      const std::vector<ui::CatalogHeads>& all,
                                                      const ModelOptions& options) {
  std::map<std::string, std::string> unfit;
  try {
    const engine::ModelFiles files =
        engine::open_model(model.path, {.allow_external_shards = options.allow_external_shards,
                                        .needs_tokenizer = false,
                                        .limits = options.limits});
    for (const ui::CatalogHeads& heads : all) {
      if (!heads.unavailable.empty()) continue;
      try {
        engine::open_heads(heads.path, &files, options.limits);
      } catch (const kernels::Error& error) {
        unfit[heads.name] = error.what();
      }
    }
    for (const engine::HeadsKind kind : kKinds) {
      const std::string named = engine::heads_of_card(model.path, kind, options.limits);
      const std::string name =
          named.empty()
              ? name_of_directory(engine::find_heads(
                    files.name, kind, engine::heads_folders(assets_dir()), options.limits))
              : named;
      if (!name.empty()) model.heads[engine::name_of(kind)] = name;
    }
  } catch (const kernels::Error&) {
    return unfit;  // a broken card is reported when its heads are loaded
  }
  return unfit;
}

void note_unfit(ui::Catalog& catalog,
                const std::string& model,
                const std::map<std::string, std::string>& unfit) {
  for (ui::CatalogHeads& heads : catalog.heads)
    if (const auto why = unfit.find(heads.name); why != unfit.end())
      heads.unfit[model] = why->second;
}

void add_tree_notes(ui::Catalog& catalog) {
  catalog.tree = [notes = std::make_shared<TreeNotes>()](
                     const std::string& decoder, const ui::CatalogOption& option,
                     const std::string& value) { return notes->of(decoder, option, value); };
}

void add_heads(ui::Catalog& catalog, const fs::path& folder, const ModelOptions& options) {
  for (const std::string& given : options.heads)
    add_one(catalog, given, engine::find_model(given, assets_dir()), options.limits);
  for (const fs::path& place : {folder, fs::path(engine::models_data_folder())}) {
    std::error_code error;
    std::vector<fs::path> directories;
    for (const auto& entry : fs::directory_iterator(place, error))
      if (entry.is_directory()) directories.push_back(entry.path());
    std::ranges::sort(directories);
    for (const fs::path& directory : directories)
      add_one(catalog, place == folder ? directory.filename().string() : directory.string(),
              directory.string(), options.limits);
  }
  for (ui::CatalogModel& model : catalog.models)
    if (model.unavailable.empty())
      note_unfit(catalog, model.name, compare_with_heads(model, catalog.heads, options));
}

}  // namespace app

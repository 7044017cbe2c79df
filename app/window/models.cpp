#include "app/window/models.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/commands/generation.h"
#include "app/commands/models/list.h"
#include "app/window/chat.h"
#include "app/window/heads.h"
#include "engine/base/text.h"
#include "engine/checkpoint/draft/sharing_draft.h"
#include "engine/checkpoint/found/found_heads.h"
#include "engine/checkpoint/found/found_models.h"
#include "engine/checkpoint/model_files.h"
#include "engine/model/language_model.h"
#include "engine/store/memory_plan.h"
#include "ui/shell/catalog.h"

namespace app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBundled = "bundled";

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

std::string summary_of(const ListedModel& model) {
  return fmt::format("{:.1f} M parameters, {}, {}, context {}, {}{}{}",
                     static_cast<double>(model.n_params) * 1e-6, model.type, model.architecture,
                     model.context, engine::size_words(static_cast<double>(model.bytes)),
                     model.licence.empty() ? "" : ", ", model.licence);
}

void add_tokenizer(ui::CatalogModel& model, const engine::ModelFiles& files) {
  model.vocab_size = files.config.vocab_size;
  model.has_tokenizer = files.tokenizer != nullptr;
  if (!model.has_tokenizer) {
    model.unavailable = "it has no tokenizer";
    return;
  }
  model.vocab_size = std::min(model.vocab_size, files.tokenizer->vocab_size());
  model.vocabulary = vocabulary_hash(*files.tokenizer, model.vocab_size);
}

/// Describes a draft that shares its target's embedding. @return  false if the model is none
bool describe_sharing_draft(ui::CatalogModel& model, const ModelOptions& options) {
  const auto target = engine::named_target(model.path, options.limits);
  if (!target) return false;
  model.shares_with = *target;
  const std::string name = engine::escaped(*target);
  model.unavailable =
      "a draft of " + name + ": choose " + name + " as the model and this as its draft";
  model.summary = "shares the embedding of " + name;
  model.is_read = true;
  return true;
}

/// @param model  name, path and source; receives the rest
void describe(ui::CatalogModel& model, const ModelOptions& options) {
  if (describe_sharing_draft(model, options)) return;
  ListedModel listed{.name = model.name, .path = model.path, .source = model.source};
  const std::optional<engine::ModelFiles> files =
      describe_model(listed, {.allow_external_shards = options.allow_external_shards,
                              .needs_tokenizer = false,
                              .limits = options.limits});
  model.unavailable = listed.unavailable;
  model.is_read = true;
  if (!files) return;
  model.summary = summary_of(listed);
  model.n_params = listed.n_params;
  model.draft = files->draft_name.empty()
                    ? name_of_directory(engine::find_draft(
                          files->name, engine::heads_folders(assets_dir()), options.limits))
                    : files->draft_name;
  model.context = listed.context;
  const engine::Sampling own = sampling_by_model(files->generation);
  model.sampling = {.temperature = own.temperature,
                    .top_p = own.top_p,
                    .min_p = own.min_p,
                    .repetition_penalty = own.repetition_penalty,
                    .top_k = own.top_k,
                    .max_tokens = files->generation.max_new_tokens.value_or(0)};
  std::error_code error;
  if (fs::is_directory(model.path, error))
    model.before = engine::name_before_training(model.path, options.limits);
  model.chat = chat_preview(*files);
  add_tokenizer(model, *files);
}

ui::CatalogModel catalog_model(const std::string& name,
                               const fs::path& path,
                               const std::string& source,
                               const ModelOptions& options) {
  ui::CatalogModel model{.name = name, .path = path.string(), .source = source};
  try {
    describe(model, options);
  } catch (const std::exception& error) {  // an unreadable decoscope.json, or no memory
    model.unavailable = error.what();
  }
  return model;
}

/// True if two paths name the same file or folder.
bool is_same_place(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return a == b || fs::equivalent(a, b, error);
}

/// The model at a place; null if there is none.
auto* model_at(auto& models, const std::string& path) {
  const auto at = std::ranges::find_if(
      models, [&](const ui::CatalogModel& model) { return is_same_place(model.path, path); });
  return at == models.end() ? nullptr : &*at;
}

/// The path of a model: the file in a folder with one GGUF file; an adapter with its base model. A path that is refused
/// stays; its description is the refusal.
std::string path_of(const std::string& given) {
  try {
    return engine::find_model(given, assets_dir());
  } catch (const engine::Error&) {
    return given;
  }
}

/// Adds the model of the command line, with its name in the list of found models if it is there.
void add_named(std::vector<ui::CatalogModel>& list,
               const std::string& named,
               const ModelOptions& options) {
  const std::string path = engine::find_model(named, assets_dir());
  if (model_at(list, path)) return;
  for (const engine::FoundModel& found : engine::found_models(engine::model_places()))
    if (is_same_place(found.path, path)) {
      list.insert(list.begin(), catalog_model(found.name, found.path, found.source, options));
      return;
    }
  list.insert(list.begin(), catalog_model(named, path, "command line", options));
}

}  // namespace

std::vector<ui::CatalogModel> catalog_models(const std::filesystem::path& folder,
                                             const ModelOptions& options) {
  const std::string& named = options.model;
  std::vector<ui::CatalogModel> list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory() && !holds_heads(entry.path()))
      list.push_back(
          catalog_model(entry.path().filename().string(), entry.path(), kBundled, options));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    const bool a_target = a.name == "demo-target", b_target = b.name == "demo-target";
    return a_target != b_target ? a_target : a.name < b.name;
  });
  const bool is_listed = std::ranges::any_of(list, [&](const auto& m) { return m.name == named; });
  if (!is_listed && !named.empty()) add_named(list, named, options);
  return list;
}

std::string name_in_catalog(const ui::Catalog& catalog, const std::string& given) {
  if (catalog.model(given)) return given;
  const std::string path = engine::find_model(given, assets_dir());
  const ui::CatalogModel* known = model_at(catalog.models, path);
  return known ? known->name : given;
}

WindowModels::WindowModels(ui::Catalog& catalog, const ModelOptions& options)
    : catalog_(catalog), heads_(catalog.heads) {
  catalog.add_model = [this](const std::string& given) {
    const std::string path = path_of(given);
    if (const ui::CatalogModel* known = model_at(catalog_.models, path)) return known->name;
    add({.name = path, .path = path, .source = "opened here", .is_read = false});
    return path;
  };
  for (engine::FoundModel& found : engine::found_models(engine::model_places()))
    if (!model_at(catalog.models, found.path))
      add({.name = found.name, .path = found.path, .source = found.source, .is_read = false});
  count_models();
  reader_ = std::thread([this, options] { read(options); });
}

WindowModels::~WindowModels() {
  catalog_.add_model = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

void WindowModels::add(ui::CatalogModel model) {
  catalog_.models.push_back(model);
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(model));
  }
  changed_.notify_all();
}

void WindowModels::read(const ModelOptions& options) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    const ui::CatalogModel model = std::move(waiting_.front());
    waiting_.pop_front();
    reads_ = true;
    lock.unlock();
    Description read{catalog_model(model.name, model.path, model.source, options), {}};
    if (read.model.unavailable.empty())
      read.unfit = compare_with_heads(read.model, heads_, options);
    lock.lock();
    reads_ = false;
    ready_.push_back(std::move(read));
    changed_.notify_all();
  }
}

bool WindowModels::take() {
  std::vector<Description> ready;
  {
    const std::scoped_lock lock(mutex_);
    ready.swap(ready_);
  }
  for (Description& read : ready) {
    note_unfit(catalog_, read.model.name, read.unfit);
    if (ui::CatalogModel* known = model_at(catalog_.models, read.model.path))
      *known = std::move(read.model);
  }
  if (!ready.empty()) count_models();
  return !ready.empty();
}

void WindowModels::wait_and_take() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.empty() && !reads_; });
  }
  take();
}

/// Writes the number of models to the list of this machine's parts.
void WindowModels::count_models() {
  const auto n_unread = std::ranges::count(catalog_.models, false, &ui::CatalogModel::is_read);
  const auto n_ready = std::ranges::count_if(
      catalog_.models, [](const auto& m) { return m.is_read && m.unavailable.empty(); });
  const auto line = std::ranges::find(catalog_.health, "models", &ui::HealthLine::name);
  if (line == catalog_.health.end()) return;
  line->ok = n_ready > 0;
  line->value = fmt::format("{} ready to run", n_ready);
  if (n_unread > 0) line->value += fmt::format(", {} more being read", n_unread);
}

}  // namespace app

#include "ui/prepare/recorded_setup.h"

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/stop_rules.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/option_labels.h"
#include "ui/prepare/status.h"

namespace ui {
namespace {

std::string title_of(const Catalog& catalog, const std::string& decoder) {
  const CatalogDecoder* known = catalog.decoder(decoder);
  return known ? known->title : short_name(decoder);
}

// Returns the options of a run by their labels: "window columns 3, n-gram length 3"; "no options".
std::string options_words(const engine::RunStarted& s, const Catalog& catalog) {
  std::string text;
  for (const auto& [name, value] : s.options)
    text += (text.empty() ? "" : ", ") + option_label(s.decoder, name) + " " +
            value_words(catalog, s.decoder, name, value);
  return text.empty() ? "no options" : text;
}

// Returns the same by their names, one a line: "ngram_size = 3\nwindow = 3"; empty without options.
std::string options_by_name(const engine::RunStarted& s) {
  std::string text;
  for (const auto& [name, value] : s.options)
    text += (text.empty() ? "" : "\n") + name + " = " + value;
  return text;
}

void add_decoders(std::vector<RecordedRow>& rows,
                  const std::vector<const engine::RunRecord*>& runs,
                  const Catalog& catalog) {
  if (runs.size() == 1) {
    const engine::RunStarted& s = runs.front()->started;
    rows.push_back({"decoder", title_of(catalog, s.decoder)});
    for (const auto& [name, value] : s.options)
      rows.push_back({.label = option_label(s.decoder, name),
                      .value = value_words(catalog, s.decoder, name, value),
                      .name = name,
                      .help = name + " = " + value});
    return;
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const engine::RunStarted& s = runs[i]->started;
    const char letter = static_cast<char>('A' + i % 26);
    rows.push_back({.label = fmt::format("{}  {}", letter, title_of(catalog, s.decoder)),
                    .value = options_words(s, catalog),
                    .help = options_by_name(s)});
  }
}

void add_reading(std::vector<RecordedRow>& rows,
                 const std::vector<const engine::RunRecord*>& runs) {
  const auto words = [](engine::ReadAs how) {
    return how == engine::ReadAs::Chat ? "chat" : "raw";
  };
  const engine::ReadAs first = runs.front()->started.read_as;
  if (first != engine::ReadAs::Unknown) rows.push_back({"read as", words(first)});
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const engine::ReadAs own = runs[i]->started.read_as;
    if (own != engine::ReadAs::Unknown && own != first)
      rows.push_back({fmt::format("{} read as", static_cast<char>('A' + i % 26)), words(own)});
  }
  for (const engine::RunRecord* run : runs) {
    if (run->started.system.empty()) continue;
    rows.push_back({"system", engine::printable(run->started.system, engine::LineBreaks::Kept)});
    break;  // of the first run, because runs that are shown together share it
  }
}

void add_pool(std::vector<RecordedRow>& rows, const std::vector<const engine::RunRecord*>& runs) {
  for (const engine::RunRecord* run : runs) {
    if (run->started.pool.empty()) continue;
    rows.push_back({"file to copy from", engine::printable(run->started.pool)});
    break;
  }
}

void add_sampling(std::vector<RecordedRow>& rows, const engine::RunStarted& s) {
  rows.push_back(
      {"temperature", s.temperature == 0 ? "0 (greedy)" : fmt::format("{:g}", s.temperature)});
  if (s.temperature > 0) {
    rows.push_back({"top k", s.top_k == 0 ? "0 (all)" : fmt::format("{}", s.top_k)});
    rows.push_back({"top p", fmt::format("{:g}", s.top_p)});
    rows.push_back({"min p", fmt::format("{:g}", s.min_p)});
    rows.push_back({"sampling", s.sampling});
  }
  rows.push_back({"repetition penalty", fmt::format("{:g}", s.repetition_penalty)});
  rows.push_back({"seed", fmt::format("{}", s.seed)});
  rows.push_back({"max tokens", fmt::format("{}", s.max_tokens)});
  rows.push_back({"ignore end-of-text", s.ignore_eos ? "yes" : "no"});
  for (const std::string& text : s.stop_texts)
    rows.push_back({"stop string", engine::lines_of_stop_texts({text})});
  if (!s.stop_ids.empty()) rows.push_back({"stop ids", engine::text_of_stop_ids(s.stop_ids)});
}

void add_model(std::vector<RecordedRow>& rows, const engine::ModelLoaded& model) {
  rows.push_back({"model", model.name});
  rows.push_back({"scale", model.scale.empty() ? "1x1" : model.scale});
  rows.push_back({"dtype", model.dtype});
  if (!model.cache_type.empty()) rows.push_back({"KV cache", model.cache_type});
  rows.push_back({"device", fmt::format("{}, {} threads", model.device, model.n_threads)});
}

}  // namespace

std::string value_words(const CatalogOption& option, const std::string& value) {
  return value.starts_with('-') && !option.below_zero.empty() ? option.below_zero : value;
}

std::string value_words(const Catalog& catalog,
                        const std::string& decoder,
                        const std::string& name,
                        const std::string& value) {
  if (const CatalogDecoder* known = catalog.decoder(decoder))
    for (const CatalogOption& option : known->options)
      if (option.name == name) return value_words(option, value);
  return value;
}

RecordedSetup recorded_setup(const engine::Timeline& timeline,
                             const std::vector<const engine::RunRecord*>& runs,
                             const Catalog& catalog) {
  const engine::RunStarted& first = runs.front()->started;
  RecordedSetup setup{.prompt = first.prompt, .rows = {}};
  add_decoders(setup.rows, runs, catalog);
  add_reading(setup.rows, runs);
  add_pool(setup.rows, runs);
  add_sampling(setup.rows, first);
  if (const engine::ModelLoaded* model = timeline.model(first.model)) add_model(setup.rows, *model);
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const engine::ModelLoaded* own = timeline.model(runs[i]->started.model);
    if (own && runs[i]->started.model != first.model)
      setup.rows.push_back(
          {fmt::format("model of {}", static_cast<char>('A' + i % 26)), own->name});
  }
  for (const engine::RunRecord* run : runs) {
    const engine::ModelLoaded* draft = timeline.model(run->started.draft);
    if (!draft) continue;
    setup.rows.push_back({"draft", draft->name});
    const engine::ModelLoaded* model = timeline.model(run->started.model);
    if (model && draft->scale != model->scale)
      setup.rows.push_back({"draft's scale", draft->scale.empty() ? "1x1" : draft->scale});
    break;  // the draft of the first run, because runs that are shown together share it
  }
  return setup;
}

}  // namespace ui

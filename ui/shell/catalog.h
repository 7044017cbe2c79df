// What can be chosen in the window: plain data the program fills in before the window opens. What
// is unavailable stays in the list with its reason, so it can be shown greyed and explained.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/event/option_info.h"
#include "engine/event/timeline/simulated_schedule.h"

namespace ui {

using CatalogOption = engine::OptionInfo;

/// What an option's value that is a tree comes to.
struct TreeNote {
  std::string words;    // "10 tokens, 3 deep: 11 rows a step"; empty: nothing is known of it
  std::string refusal;  // why it cannot be run; empty: it can
};
/// Whether an option's values are trees.
inline bool is_tree(const CatalogOption& option) {
  return option.type == CatalogOption::Type::Tree || option.type == CatalogOption::Type::Counts;
}

struct CatalogDecoder {
  std::string name;       // "lookahead", as commands take it
  std::string title;      // "Lookahead"
  std::string summary;    // one sentence
  std::string reference;  // the paper
  bool lossless = true;
  bool supports_rejection = false;
  std::string unavailable;  // why it cannot be chosen here; empty: it can
  std::vector<CatalogOption> options;
  bool needs_draft = false;
  bool needs_heads = false;  // draft heads of the kind of its name
  /// Options that have nothing to do in the window, each with why: shown, and greyed.
  std::map<std::string, std::string> idle_options;
  /// Why these options, complete, cannot be run from the window; empty: they can. Or no function.
  std::function<std::string(const std::map<std::string, std::string>&)> refusal;
  /// The same of questions asked by chain of thought.
  std::function<std::string(const std::map<std::string, std::string>&)> refusal_in_chain;
  /// The same of a tree of thoughts.
  std::function<std::string(const std::map<std::string, std::string>&)> refusal_in_tree;
};

/// Sampling settings of a model's generation_config.json.
struct CatalogSampling {
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  int max_tokens = 0;  // 0: it says nothing of it
  bool operator==(const CatalogSampling&) const = default;
};

struct CatalogModel {
  std::string name;  // as commands take it
  std::string path;
  std::string summary;        // "3.4 M parameters, bf16"
  std::int64_t n_params = 0;  // 0: unknown
  bool has_tokenizer = true;
  std::string unavailable;  // why it cannot be loaded; empty: it can
  std::string draft;        // the model its card names to draft for it; empty: none
  int vocab_size = 0;       // tokens it may choose; 0: unknown
  int context = 0;          // positions a sequence may fill; 0: unknown
  CatalogSampling sampling = {};
  std::uint64_t vocabulary = 0;  // a hash of their texts: equal where the tokens are the same
  std::string before = {};       // the model it was before consistency training; empty: none
  std::map<std::string, std::string> heads = {};  // by kind, the draft heads its card names
};

/// Draft heads that can be chosen for a model they were trained for.
struct CatalogHeads {
  std::string name;  // as commands take it
  std::string path;
  std::string kind;                          // "medusa", "chimera"
  std::string summary;                       // "4 heads for demo-target, 3.2 M parameters"
  std::string unavailable;                   // why they cannot be loaded at all; empty: they can
  std::map<std::string, std::string> unfit;  // models of the catalog that they do not fit, each why
};

struct CatalogPrompt {
  std::string id;  // "G3-007"
  std::string title;
  std::string text;
};

/// Questions that reasoning can ask.
struct CatalogTask {
  std::string name;          // "arith", as commands take it
  std::string summary;       // "word problems of small sums, generated"
  std::string unavailable;   // why it cannot be asked here; empty: it can
  bool has_levels = false;   // from 1 to 3: it is generated
  int level = 1;             // asked at first
  int depth = 1;             // likewise, of a tree's levels
  bool has_actions = false;  // its answers are plans, of so many actions
};

struct CatalogDevice {
  std::string name;         // "cpu", "cuda"
  std::string title;        // "CPU, 2 threads, AVX-512"
  std::string unavailable;  // "no driver found"; empty: it can be used
};

/// One line of the Welcome page's health list.
struct HealthLine {
  std::string name, value;
  bool ok = true;
  std::string fix;     // what to do, or what it means, when it is not
  bool needed = true;  // else its absence is no fault
};

struct Catalog {
  std::string app_version;
  std::vector<CatalogDecoder> decoders;
  std::vector<CatalogModel> models;
  std::vector<CatalogHeads> heads;
  std::vector<CatalogPrompt> prompts;
  std::vector<CatalogTask> chain_tasks, tree_tasks;
  std::vector<CatalogDevice> devices;
  std::vector<HealthLine> health;
  std::int64_t memory_bytes = 0;  // that the program may take, as it began; 0: unknown
  std::string race_recording;     // a bundled .pdrun to watch; empty: none
  /// Of a decoder's option whose value is a tree; asked every frame.
  /// None: nothing is said of trees.
  std::function<TreeNote(const std::string& decoder, const CatalogOption&, const std::string&)>
      tree;
  engine::ScheduleSimulator simulate;  // runs a recorded schedule again; none: that is not offered

  const CatalogDecoder* decoder(const std::string& name) const {
    for (const CatalogDecoder& d : decoders)
      if (d.name == name) return &d;
    return nullptr;
  }
  const CatalogModel* model(const std::string& name) const {
    for (const CatalogModel& m : models)
      if (m.name == name) return &m;
    return nullptr;
  }
};

}  // namespace ui

// The choices that Setup offers: plain data that the program fills in before the window opens. Unavailable entries stay in the lists with
// the reason, so that the window can show them disabled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/event/option_info.h"

namespace engine {
struct Schedule;
struct SimulatedSchedule;
struct SimulatedStages;
}  // namespace engine

namespace ui {

struct CatalogPromptFile;  // ui/files/prompt_file.h

/// An option of a decoder.
using CatalogOption = engine::OptionInfo;

/// A description of a tree that is the value of an option.
struct TreeNote {
  std::string words;    // "10 tokens, 3 deep: 11 rows a step"; empty: unknown
  std::string refusal;  // why it cannot be used; empty if it can
};
/// Returns true if the values of an option are trees.
inline bool is_tree(const CatalogOption& option) {
  return option.type == CatalogOption::Type::Tree || option.type == CatalogOption::Type::Counts;
}

/// A decoder.
struct CatalogDecoder {
  std::string name;       // "lookahead", as commands take it
  std::string title;      // the title in lists: "Lookahead"
  std::string summary;    // a description in one sentence
  std::string reference;  // the paper that describes it
  bool lossless = true;
  bool supports_rejection = false;
  std::string unavailable;  // why it cannot be chosen; empty if it can
  std::vector<CatalogOption> options;
  bool needs_draft = false;
  bool needs_heads = false;  // needs draft heads; their kind is the decoder's name
  bool reads_pool = false;   // copies from a file of text
  /// Options without an effect in the window, with the reason; they are shown disabled.
  std::map<std::string, std::string> idle_options;
  /// Returns why the window cannot run a complete set of options; empty if it can. May be empty itself.
  std::function<std::string(const std::map<std::string, std::string>&)> refusal;
  /// The same for the options of a chain of thought.
  std::function<std::string(const std::map<std::string, std::string>&)> refusal_in_chain;
  /// The same for the options of a tree of thoughts.
  std::function<std::string(const std::map<std::string, std::string>&)> refusal_in_tree;
};

/// Sampling settings from a model's generation_config.json.
struct CatalogSampling {
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  int top_k = 0;
  int max_tokens = 0;  // 0: the file does not give it
  bool operator==(const CatalogSampling&) const = default;
};

/// A stretch of a prompt as a chat template renders it.
struct ChatStretch {
  std::string text;
  bool special = false;  // the name of a special token
};
/// A prompt as the model reads it.
struct ChatPreview {
  std::vector<ChatStretch> stretches;
  std::string note;  // why there is none: the template refuses it, or the prompt is read as it is
};

/// A model.
struct CatalogModel {
  std::string name;  // as commands take it
  std::string path;
  std::string summary;        // "3.4 M parameters, bf16"
  std::int64_t n_params = 0;  // 0: unknown
  bool has_tokenizer = true;
  std::string unavailable;  // why it cannot be loaded; empty if it can
  std::string draft;        // the draft model that its card names; empty: none
  int vocab_size = 0;       // number of tokens that the model can choose; 0: unknown
  int context = 0;          // maximum number of positions; 0: unknown
  CatalogSampling sampling = {};
  std::uint64_t vocabulary =
      0;                    // a hash of the tokens' texts; equal hashes mean equal vocabularies
  std::string before = {};  // the model that consistency training started from; empty: none
  std::map<std::string, std::string> heads = {};  // the draft heads that its card names, by kind
  std::string source = {};  // where it was found: "bundled", "Hugging Face cache"
  bool is_read =
      true;  // false: its files are still being read; only name, path and source are known
  /// Renders a prompt in the model's chat template, which may take a second. No function: it has no template.
  /// @param always  true: also a prompt that names special tokens, which is read as it is otherwise
  std::function<ChatPreview(const std::string& prompt, const std::string& system, bool always)>
      chat = {};
  /// The target that this draft needs, because it has no embedding of its own; empty: it is a whole model. `unavailable` then says so.
  std::string shares_with = {};

  /// Returns true if the model's files are read and have no chat template.
  bool has_no_template() const { return is_read && !chat; }
};

/// Draft heads.
struct CatalogHeads {
  std::string name;  // as commands take it
  std::string path;
  std::string kind;         // the kind of heads: "medusa", "chimera"
  std::string summary;      // in one line: "4 heads for demo-target, 3.2 M parameters"
  std::string unavailable;  // why they cannot be loaded; empty if they can
  std::map<std::string, std::string>
      unfit;  // the models of the catalog that the heads do not fit, with the reason
};

/// A bundled prompt.
struct CatalogPrompt {
  std::string id;  // "G3-007"
  std::string title;
  std::string text;
  bool is_message = false;  // a message to an assistant; false: a text to be continued
};

/// A task with questions for a chain or a tree of thoughts.
struct CatalogTask {
  std::string name;          // "arith", as commands take it
  std::string summary;       // "word problems of small sums, generated"
  std::string unavailable;   // why it cannot be chosen; empty if it can
  bool has_levels = false;   // the questions are generated, with levels 1 to 3
  int level = 1;             // initial level
  int depth = 1;             // initial depth of a tree
  bool has_actions = false;  // the answers are plans with a number of actions
};

/// A device.
struct CatalogDevice {
  std::string name;         // the device's name: "cpu", "cuda"
  std::string title;        // the title in lists: "CPU, 2 threads, AVX-512"
  std::string unavailable;  // why it cannot be used: "no driver found"; empty if it can
};

/// A line of the list This machine on the first page.
struct HealthLine {
  std::string name, value;
  bool ok = true;
  std::string fix;           // a remedy or a consequence, if it is not ok
  bool needed = true;        // false: the program works without it
  std::string details = {};  // a driver's message, if `value` is its meaning in plain words
};

/// A lesson.
struct CatalogLesson {
  std::string path;  // of its .json file
  std::string title, summary;
  int minutes = 0;
};

/// All choices.
struct Catalog {
  std::string app_version;
  std::vector<CatalogDecoder> decoders;
  std::vector<CatalogModel> models;
  std::vector<CatalogHeads> heads;
  std::vector<CatalogPrompt> prompts;
  std::vector<CatalogTask> chain_tasks, tree_tasks;
  std::vector<CatalogDevice> devices;
  std::vector<HealthLine> health;
  std::int64_t memory_bytes = 0;  // memory that was available when the program started; 0: unknown
  std::string race_recording;     // a bundled recording; empty: none
  std::vector<CatalogLesson> lessons;  // in the order of the list
  /// Adds the model at a path (a directory or a file) if the catalog does not have it; its description follows.
  /// @return  its name in the catalog. May have no function
  std::function<std::string(const std::string& path)> add_model;
  /// Describes a tree that is the value of a decoder's option; called every frame. May be empty.
  std::function<TreeNote(const std::string& decoder, const CatalogOption&, const std::string&)>
      tree;
  /// Reads a prompt file. May be empty.
  std::function<CatalogPromptFile(const std::string& path)> read_prompts;
  /// Simulates a recorded schedule. May be empty.
  std::function<engine::SimulatedSchedule(const engine::Schedule&, const engine::SimulatedStages&)>
      simulate;

  /// Returns the decoder with this name, or nullptr.
  const CatalogDecoder* decoder(const std::string& name) const {
    for (const CatalogDecoder& d : decoders)
      if (d.name == name) return &d;
    return nullptr;
  }
  /// Returns the model with this name, or nullptr.
  const CatalogModel* model(const std::string& name) const {
    for (const CatalogModel& m : models)
      if (m.name == name) return &m;
    return nullptr;
  }
};

}  // namespace ui

// A decoder's options: text on the command line, in commands and in recordings; a typed struct
// inside the engine.
//   schema   each decoder derives a struct from DecoderOptions in its own header. Its bind() names
//            every member once, with range and help; the members' initialisers are the defaults.
//            Help texts, the Setup panel and the parser all use this one function
//   parsing  parse_options() (registry.h) checks the given text and sets the members. Nothing else
//            reads option text
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/option_info.h"

namespace engine {

class Decoder;          // engine/decode/decoder.h
struct DecoderContext;  // engine/decode/decoder.h
struct Sampling;        // engine/model/language_model.h

/// Option values as text, by option name: either as given (`--set name=value`) or complete (every
/// option, in canonical form).
using OptionValues = std::map<std::string, std::string>;

/// Children of every node of a draft tree, level by level: {2, 2, 1} has 2 + 4 + 4 tokens (MCSD's k
/// configuration).
using LevelCounts = std::vector<int>;

/// Describes a decoder for help texts, the Setup panel and the registry.
struct DecoderInfo {
  std::string name;                 // "lookahead"
  std::string title;                // "Lookahead"
  std::string summary;              // one sentence
  std::string reference;            // the paper
  bool lossless = true;             // with default options; for other options call is_lossless()
  bool supports_rejection = false;  // --sampling rejection
  bool needs_draft = false;         // a draft model
  bool needs_heads = false;         // draft heads of the kind that has the decoder's name
  bool reads_pool = false;          // reads a file of text (--pool)
  bool reads_prompt_state = false;  // starts from the hidden state that prefill(with_state) keeps
  std::vector<OptionInfo> options;
  /// The option values of each preset (a value of the option "preset"). They replace defaults;
  /// options given by name take precedence.
  std::map<std::string, OptionValues> presets;
  /// Options of earlier versions: recordings and settings may have them. They have no effect.
  std::vector<std::string> retired;
};

/// Size of the tree that one step drafts.
struct TreeShape {
  int n_tokens = 0;
  int depth = 0;  // 0: nothing is drafted
};

/// Tokens and depth of a tree with these level counts.
TreeShape shape_of(const LevelCounts& counts);

/// Binds the members of an options struct to option names. It lists them with their defaults, or
/// sets them from text.
class OptionBinder {
 public:
  /// Only lists the options; every member keeps its value.
  OptionBinder() = default;
  /// Lists the options and sets the members that `given` names.
  /// @param decoder  name, for messages; both arguments outlive the binder
  OptionBinder(const std::string& decoder, const OptionValues& given)
      : decoder_(&decoder), given_(&given) {}

  // Each of these declares one option, whose default is the member's value. All throw Error(Usage)
  // if the given text does not fit: the message names decoder, option, the text, the allowed values
  // and the default.
  /// A whole number in [min, max].
  /// @param below_zero  meaning of a value below 0, "the target's"; empty: no special meaning
  void whole(const char* name,
             int& value,
             int min,
             int max,
             const char* help,
             const char* below_zero = "");
  /// The same, or "auto", which is nullopt.
  void whole_or_auto(
      const char* name, std::optional<int>& value, int min, int max, const char* help);
  /// The same, or `word`, which is nullopt.
  void whole_or(const char* word,
                const char* name,
                std::optional<int>& value,
                int min,
                int max,
                const char* help);
  /// A finite number in [min, max].
  void real(const char* name,
            double& value,
            double min,
            double max,
            const char* help,
            const char* below_zero = "");
  /// true or false; 1/0, on/off and yes/no are accepted too.
  void flag(const char* name, bool& value, const char* help);
  /// One of several names, each of which is a value of E. The first is listed first; the member's
  /// value is the default.
  template <class E>
  void choice(const char* name,
              E& value,
              std::initializer_list<std::pair<const char*, E>> choices,
              const char* help) {
    std::vector<std::string> names;
    std::size_t chosen = 0;
    for (const auto& [word, meaning] : choices) {
      if (meaning == value) chosen = names.size();
      names.emplace_back(word);
    }
    value = (choices.begin() + choice_of(name, std::move(names), chosen, help))->second;
  }
  /// The name of a tree: one of `choices`, or a .json file.
  void tree(const char* name,
            std::string& value,
            std::vector<std::string> choices,
            const char* help);
  /// Level counts, each in [min, max], with commas between.
  void counts(const char* name, LevelCounts& value, int min, int max, const char* help);
  /// The same, or "auto", which is nullopt.
  void counts_or_auto(
      const char* name, std::optional<LevelCounts>& value, int min, int max, const char* help);

  /// The options declared until now, in order.
  const std::vector<OptionInfo>& infos() const { return infos_; }
  /// Their values in canonical form, defaults included.
  const OptionValues& values() const { return values_; }

 private:
  std::size_t choice_of(const char* name,
                        std::vector<std::string> names,
                        std::size_t chosen,
                        const char* help);
  const std::string* declare(OptionInfo info);
  std::optional<LevelCounts> parsed_counts(const OptionInfo& info, const std::string& text) const;
  [[noreturn]] void refuse(const OptionInfo& info,
                           const std::string& text,
                           const std::string& expected) const;

  const std::string* decoder_ = nullptr;
  const OptionValues* given_ = nullptr;
  std::vector<OptionInfo> infos_;
  OptionValues values_;
};

/// A decoder's parsed options. The derived structs add their members; other code uses only this
/// interface.
class DecoderOptions {
 public:
  virtual ~DecoderOptions() = default;

  /// Declares every option once; `binder` sets the members.
  virtual void bind(OptionBinder& binder) = 0;
  /// Checks combinations of values.
  /// @throws Error(Usage)  naming the two values that exclude each other, or a tree with too many
  ///                       tokens
  virtual void check() const {}
  /// Makes the decoder. The context has the draft model or heads that DecoderInfo says it needs.
  virtual std::unique_ptr<Decoder> make(const DecoderContext& context) const = 0;

  /// False if, with these values and this sampling, the output no longer has the target's
  /// distribution (typical acceptance, for example).
  virtual bool keeps_distribution(const Sampling& /*sampling*/) const { return true; }
  /// Why no run can use rejection sampling with these values; nullopt: it can.
  virtual std::optional<std::string> why_no_rejection() const;
  /// The largest tree that one step may draft; nullopt if it is chosen step by step or depends on
  /// the heads.
  virtual std::optional<TreeShape> draft_shape() const { return TreeShape{}; }
  /// Devices of this process that share the rows of every step (Lookahead parallelism).
  virtual int n_ranks() const { return 1; }
  /// True if the processes that mpirun started share them (mpi_exchange.h).
  virtual bool shares_over_mpi() const { return false; }
  /// True if the decoder chooses sizes by measured times (engine/decode/control).
  virtual bool chooses_sizes() const { return false; }
  /// Tokens of finished runs that later runs may copy from (earlier_texts.h); 0: the texts of these
  /// runs are not kept.
  virtual int n_kept_tokens() const { return 0; }
  /// The value of the option `stop` if it can end a run early ("bound", "probe"), else empty.
  virtual std::string early_stop() const { return {}; }
  /// The repetition penalty of the chosen preset; unset: it has none. Reasoning applies it unless another is given.
  virtual std::optional<float> preset_penalty() const { return {}; }

  /// The decoder that these options belong to.
  const DecoderInfo& info() const { return *info_; }
  /// Every option as canonical text, for events and reports.
  const OptionValues& values() const { return values_; }

 private:
  friend std::shared_ptr<const DecoderOptions> parsed(const DecoderInfo& info,
                                                      std::unique_ptr<DecoderOptions> defaults,
                                                      const OptionValues& given);
  const DecoderInfo* info_ = nullptr;  // in the registry's table
  OptionValues values_;
};

/// Checked options, shared by all objects of one run.
using ParsedOptions = std::shared_ptr<const DecoderOptions>;

/// Sets the members of `defaults` from `given`: applies the preset first, then checks each value,
/// then checks combinations of values.
/// @param info      outlives the result
/// @param defaults  the options struct of `info`, with its default values
/// @throws Error(Usage)  as bind() and check(), and for an unknown name with the nearest known one
ParsedOptions parsed(const DecoderInfo& info,
                     std::unique_ptr<DecoderOptions> defaults,
                     const OptionValues& given);

/// "did you mean 'window'?", or all names if none is near.
std::string name_hint(const std::string& name, const std::vector<std::string>& known);

}  // namespace engine

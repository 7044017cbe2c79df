// Every decoder by name, with what a person may set. The command line's help, the Setup panel and
// the checks of values all read this one list.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/event/option_info.h"

namespace engine {

struct DecoderInfo {
  std::string name;                 // "lookahead"
  std::string title;                // "Lookahead"
  std::string summary;              // one sentence
  std::string reference;            // the paper
  bool lossless = true;             // unless options and sampling say otherwise: is_lossless()
  bool supports_rejection = false;  // --sampling rejection
  bool needs_draft = false;
  bool needs_heads = false;         // draft heads of the kind of its name
  bool reads_prompt_state = false;  // begins with the state that prefill(with_state) brings
  std::vector<OptionInfo> options;
  /// Values of option "preset" that stand for others: these become the defaults, options given by
  /// name still count.
  std::map<std::string, OptionValues> presets;
};

std::span<const DecoderInfo> decoders();
/// @throws Error(Usage)  naming the closest decoder, if there is none of that name
const DecoderInfo& decoder_named(const std::string& name);
/// Fills in defaults and checks every value.
/// @throws Error(Usage)  naming option, value and what is allowed, with a suggestion for a misspelt
/// name
OptionValues complete_options(const DecoderInfo& info, const OptionValues& given);
/// Whether what it writes has the distribution of plain decoding with these options and this sampling.
/// @param options  complete
bool is_lossless(const DecoderInfo& info, const OptionValues& options, const Sampling& sampling);
/// Why this decoder cannot run with these settings whatever the model, or nullopt. Refusals are by
/// name and reason; nothing ever runs another decoder instead.
/// @param options  complete; or empty: whatever they are
std::optional<std::string> refusal(const DecoderInfo& info,
                                   const Sampling& sampling,
                                   const OptionValues& options = {});
/// The same once models are there, and what depends on them.
std::optional<std::string> refusal(const DecoderInfo& info,
                                   const Sampling& sampling,
                                   const LanguageModel& target,
                                   const LanguageModel* draft_model,
                                   const DraftHeads* heads = nullptr);
/// @throws Error(Usage)  with the refusal, if there is one
std::unique_ptr<Decoder> make_decoder(const std::string& name, DecoderContext context);

}  // namespace engine

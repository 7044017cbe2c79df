// All decoders by name, with their options. The command line's help, the Setup panel and the option
// parser use this one table.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/decode/decoder.h"
#include "engine/decode/options.h"

namespace engine {

/// Every decoder, in the order of help texts and panels.
std::span<const DecoderInfo> decoders();
/// The decoder with this name.
/// @throws Error(Usage)  naming the closest decoder, if there is none
const DecoderInfo& decoder_named(const std::string& name);
/// Parses a decoder's options: checks every value, fills in presets and defaults.
/// @param decoder  its name
/// @param given    option values by name; they may already be complete
/// @throws Error(Usage)  naming the decoder, the option, the value and the allowed values, with a
///                       suggestion for a misspelt name
ParsedOptions parse_options(const std::string& decoder, const OptionValues& given);
/// The same options as complete, canonical text: parse_options(...)->values().
/// @throws Error(Usage)  as parse_options()
OptionValues complete_options(const DecoderInfo& info, const OptionValues& given);
/// True if the decoder's output has the distribution of plain decoding with these options and this
/// sampling.
bool is_lossless(const DecoderOptions& options, const Sampling& sampling);
/// The same for options given as text.
/// @throws Error(Usage)  as parse_options()
bool is_lossless(const DecoderInfo& info, const OptionValues& given, const Sampling& sampling);
/// The reason why this decoder cannot run with these settings, whatever the model; nullopt if it
/// can. The program never runs another decoder in its place.
std::optional<std::string> refusal(const DecoderOptions& options, const Sampling& sampling);
/// The same for options given as text; by default no option is given.
/// @throws Error(Usage)  as parse_options()
std::optional<std::string> refusal(const DecoderInfo& info,
                                   const Sampling& sampling,
                                   const OptionValues& given = {});
/// The same for default options and given models. The draft model and the heads must exist if the
/// decoder needs them, and must have the target's vocabulary.
std::optional<std::string> refusal(const DecoderInfo& info,
                                   const Sampling& sampling,
                                   const LanguageModel& target,
                                   const LanguageModel* draft_model,
                                   const DraftHeads* heads = nullptr);
/// Makes a decoder.
/// @throws Error(Usage)  with the refusal, if there is one
std::unique_ptr<Decoder> make_decoder(const DecoderOptions& options, const DecoderContext& context);
/// The same for options given as text.
/// @throws Error(Usage)  as parse_options() too
std::unique_ptr<Decoder> make_decoder(const std::string& decoder,
                                      const DecoderContext& context,
                                      const OptionValues& given = {});

}  // namespace engine

#include "engine/decode/registry.h"

#include <vector>

#include "engine/decode/ar.h"
#include "engine/decode/chimera.h"
#include "engine/decode/fastcot.h"
#include "engine/decode/jacobi.h"
#include "engine/decode/lookahead.h"
#include "engine/decode/mcsd.h"
#include "engine/decode/medusa.h"
#include "engine/decode/prompt_lookup.h"
#include "engine/decode/recycling.h"
#include "engine/decode/seed.h"
#include "engine/decode/speculative.h"
#include "engine/decode/suffix.h"
#include "engine/decode/verify/sampling.h"
#include "engine/model/draft_heads.h"

namespace engine {
namespace {

/// One decoder: its description, and a function that makes its options with their defaults.
struct Entry {
  DecoderInfo info;
  std::unique_ptr<DecoderOptions> (*make_defaults)();
};

template <class Options>
Entry entry() {
  Entry made{.info = Options::describe(), .make_defaults = [] {
               return std::unique_ptr<DecoderOptions>(std::make_unique<Options>());
             }};
  OptionBinder binder;
  made.make_defaults()->bind(binder);
  made.info.options = binder.infos();
  return made;
}

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries{
      entry<ArOptions>(),           entry<JacobiOptions>(),      entry<LookaheadOptions>(),
      entry<PromptLookupOptions>(), entry<SuffixOptions>(),      entry<RecyclingOptions>(),
      entry<FastCotOptions>(),      entry<SpeculativeOptions>(), entry<McsdOptions>(),
      entry<MedusaOptions>(),       entry<ChimeraOptions>(),     entry<SeedOptions>(),
  };
  return entries;
}

const std::vector<DecoderInfo>& all() {
  static const std::vector<DecoderInfo> infos = [] {
    std::vector<DecoderInfo> found;
    for (const Entry& entry : table()) found.push_back(entry.info);
    return found;
  }();
  return infos;
}

}  // namespace

std::span<const DecoderInfo> decoders() {
  return all();
}

const DecoderInfo& decoder_named(const std::string& name) {
  std::vector<std::string> known;
  for (const DecoderInfo& info : all()) {
    if (info.name == name) return info;
    known.push_back(info.name);
  }
  throw Error(ErrorCode::Usage, "decoder: found '" + name + "'; " + name_hint(name, known));
}

ParsedOptions parse_options(const std::string& decoder, const OptionValues& given) {
  const DecoderInfo& info = decoder_named(decoder);
  const auto index = static_cast<std::size_t>(&info - all().data());
  return parsed(info, table()[index].make_defaults(), given);
}

OptionValues complete_options(const DecoderInfo& info, const OptionValues& given) {
  return parse_options(info.name, given)->values();
}

bool is_lossless(const DecoderOptions& options, const Sampling& sampling) {
  return options.info().lossless && options.keeps_distribution(sampling);
}

bool is_lossless(const DecoderInfo& info, const OptionValues& given, const Sampling& sampling) {
  return is_lossless(*parse_options(info.name, given), sampling);
}

std::optional<std::string> refusal(const DecoderOptions& options, const Sampling& sampling) {
  const DecoderInfo& info = options.info();
  if (rejects(sampling))
    if (const auto why = options.why_no_rejection()) return why;
  if (rejects(sampling) && (options.n_ranks() > 1 || options.shares_over_mpi())) {
    return info.name +
           " cannot run with sampling=rejection and ranks=" + options.values().at("ranks") +
           ": the verification of a guess depends on the guesses rejected before it, which another "
           "rank may have verified; use sampling=coupled or ranks=1";
  }
  return std::nullopt;
}

std::optional<std::string> refusal(const DecoderInfo& info,
                                   const Sampling& sampling,
                                   const OptionValues& given) {
  return refusal(*parse_options(info.name, given), sampling);
}

namespace {

/// The reason why these models do not suit the decoder; nullopt if they do.
std::optional<std::string> refusal_of_models(const DecoderInfo& info,
                                             const LanguageModel& target,
                                             const LanguageModel* draft_model,
                                             const DraftHeads* heads) {
  if (info.needs_draft && !draft_model) {
    return info.name +
           " needs a draft model and there is none; name one (--draft NAME|DIR), or choose a "
           "decoder "
           "that needs none";
  }
  if (info.needs_heads && !heads) {
    return info.name +
           " needs draft heads trained on this model and there are none; name some (--heads "
           "NAME|DIR), or choose a decoder that needs none";
  }
  if (heads && info.needs_heads && heads->vocab_size() != target.vocab_size()) {
    return info.name + " needs heads with the model's vocabulary: the heads have " +
           std::to_string(heads->vocab_size()) + " tokens, the model " +
           std::to_string(target.vocab_size());
  }
  if (draft_model && info.needs_draft && draft_model->vocab_size() != target.vocab_size()) {
    return info.name + " needs a draft model with the target's vocabulary: the draft has " +
           std::to_string(draft_model->vocab_size()) + " tokens, the target " +
           std::to_string(target.vocab_size());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> refusal(const DecoderInfo& info,
                                   const Sampling& sampling,
                                   const LanguageModel& target,
                                   const LanguageModel* draft_model,
                                   const DraftHeads* heads) {
  if (auto reason = refusal(info, sampling)) return reason;
  return refusal_of_models(info, target, draft_model, heads);
}

std::unique_ptr<Decoder> make_decoder(const DecoderOptions& options,
                                      const DecoderContext& context) {
  auto reason = refusal(options, context.sampling);
  if (!reason)
    reason = refusal_of_models(options.info(), context.target, context.draft_model, context.heads);
  if (reason) throw Error(ErrorCode::Usage, *reason);
  return options.make(context);
}

std::unique_ptr<Decoder> make_decoder(const std::string& decoder,
                                      const DecoderContext& context,
                                      const OptionValues& given) {
  return make_decoder(*parse_options(decoder, given), context);
}

}  // namespace engine

// From what a person asked to a lane that runs, and from a finished lane to what is reported. The
// command line and the engine thread both come through here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/decode/step/prompt_caches.h"
#include "engine/decode/registry.h"
#include "engine/decode/step/stepper.h"
#include "engine/store/model_store.h"

namespace engine {

/// One generation, as asked for.
struct RunRequest {
  std::string prompt_id;
  std::string prompt;
  std::vector<TokenId> prompt_tokens;  // of `prompt`; given by itself where there is no tokenizer
  std::string decoder = "ar";
  OptionValues options;  // as given; completed by the registry
  Sampling sampling;
  int max_tokens = 256;
  bool ignore_eos = false;
  ProbeSettings probe;     // of fastcot's stop=probe
  std::uint32_t race = 0;  // runs on one prompt that are shown side by side share it; 0: alone
  int lane = 0;            // from 0 in its race
  int first_approximate = 0, n_approximate = 0;  // of prompt_tokens, as of RunStarted
  /// The text ends before the first of these (engine/decode/stop_texts.h); none of them empty.
  std::vector<std::string> stop_texts = {};
  std::vector<TokenId> stop_ids = {};  // each ends the text, also with ignore_eos
  bool no_special = false;  // prompt_tokens were read with names of control symbols as text
};

/// Where a run first differs from plain decoding, and by how much each choice there led the second
/// best one: a lead near nothing is rounding, a large one a fault. Unset: that text had ended.
struct Difference {
  int at = 0;  // index among generated tokens
  std::optional<float> margin, margin_of_ar;
};

/// One generation, done. Times count own compute only.
struct RunResult {
  RunRequest request;
  std::vector<TokenId> tokens;    // also those of a stop string, and a stop id
  std::vector<float> margins;     // as of Lane
  std::vector<TokenFacts> facts;  // [tokens]
  std::string text;               // without the stop string or the stop id that ended it
  std::vector<TokenId>
      approximate;  // guesses behind `tokens` that a run which wished to end leaves
  std::string approximate_text;
  std::string stop_reason;
  std::string stop_string;  // the one that ended the text; empty: none did
  int n_steps = 0;
  std::int64_t n_rows = 0;
  double prefill_ms = 0;
  double decode_ms = 0;
  std::map<std::string, double> metrics;
  std::map<std::string, std::int64_t> counts;  // those of the metrics that add up over runs
  std::optional<bool> identical_to_ar;         // unset: not compared
  std::optional<Difference> difference;        // where it is not identical
  std::optional<double> speedup;               // unset: no AR run to compare with

  /// Ended by its text or its limits: two such runs must agree to the end.
  bool whole() const {
    return stop_reason == "eos" || stop_reason == "length" || stop_reason == "context" ||
           stop_reason == "stop_string" || stop_reason == "stop_id";
  }
  double tokens_per_step() const {
    return n_steps ? static_cast<double>(tokens.size()) / n_steps : 0;
  }
  double tokens_per_second() const {
    return decode_ms > 0 ? static_cast<double>(tokens.size()) / decode_ms * 1e3 : 0;
  }
};

/// Tokens of a prompt.
/// @param symbols  the names of control symbols in it ("<s>") are their ids
/// @throws Error(Usage)     if it has none
/// @throws Error(BadInput)  if it does not leave room for one token in the model's context
std::vector<TokenId> tokenize_prompt(const Model& model,
                                     const std::string& prompt,
                                     bool symbols = true);

/// Refuses stop ids that the model has no token for, and stop strings where it has no tokenizer.
/// @throws Error(Usage)
void check_stops(const Model& model,
                 std::span<const std::string> stop_texts,
                 std::span<const TokenId> stop_ids);

/// Has a lane that has not begun end where its text holds one of `stops`.
/// @param reason  what that is reported as
void stop_at(Lane& lane,
             const Tokenizer& tokenizer,
             std::vector<std::string> stops,
             StopReason reason);

/// A lane ready for its first step: prompt prefilled, decoder begun.
/// @param shared  a sequence with the same prompt, prefilled; forked instead of a prefill. Or null
/// @throws Error(Usage)  if the decoder refuses these settings, or lacks its draft model
Lane make_lane(const RunModels& models,
               const RunRequest& request,
               RunId run,
               const Sequence* shared,
               const std::function<bool(int, int)>& progress = {});
/// A lane over a prompt that is prefilled, whose decoder has not begun: lane.decoder->begin() is
/// the caller's, on the thread that drafts.
/// @param prompts  that the draft model has read, or null
/// @throws Error(Usage)  as make_lane
Lane lane_over(const RunModels& models,
               const RunRequest& request,
               RunId run,
               Sequence prompt,
               PromptCaches* prompts = nullptr);
/// A prompt's sequence, prefilled.
/// @param with_state  as of prefill(): for decoders that read it (DecoderInfo)
Sequence prefilled(Model& model,
                   const std::vector<TokenId>& prompt,
                   const std::function<bool(int, int)>& progress = {},
                   bool with_state = false);

/// The same; what was read before is shared.
/// @param known  as of PromptCaches::read()
Sequence prefilled(PromptCaches& prompts,
                   const Model& model,
                   const std::vector<TokenId>& prompt,
                   const Sequence* known,
                   const std::function<bool(int, int)>& progress = {},
                   bool with_state = false);

/// What a lane came to. `stop_reason` is "stopped" when it did not finish by itself.
RunResult result_of(const Lane& lane,
                    const RunRequest& request,
                    const Tokenizer* tokenizer,
                    double prefill_ms);
/// The events that open and close a run.
RunStarted started_event(const RunRequest& request, const RunModels& models, RunId run);
RunFinished finished_event(const RunResult& result, RunId run);

/// Runs one request to its end. A failure is told as the run's, and thrown on, a device's with the
/// step in which it failed.
/// @param models  a draft for decoders that need one; others leave it alone
/// @param stop  asked before each step; true ends the run where it stands. Or empty
/// @param step  called after each step with the lane. Or empty
RunResult run_to_end(const RunModels& models,
                     const RunRequest& request,
                     RunId run,
                     EventSink* events,
                     const std::function<bool()>& stop = {},
                     const std::function<void(const Lane&)>& step = {});

/// Index of the first token that differs, -1 if none does. A text that ends early differs where it
/// ends.
int first_difference(std::span<const TokenId> found, std::span<const TokenId> expected);

}  // namespace engine

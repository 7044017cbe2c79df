// From a request to a lane that can step, and from a finished lane to its result. The command line
// and the engine thread both use this.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/registry.h"
#include "engine/decode/step/prompt_caches.h"
#include "engine/decode/step/stepper.h"
#include "engine/store/model_store.h"

namespace engine {

/// One generation as requested.
struct RunRequest {
  std::string prompt_id;
  std::string prompt;
  std::vector<TokenId> prompt_tokens;  // of `prompt`; given alone if there is no tokenizer
  std::string decoder = "ar";
  OptionValues options;  // as given; parse_options() checks them
  Sampling sampling;
  int max_tokens = 256;
  bool ignore_eos = false;
  ProbeSettings probe;     // of fastcot's stop=probe
  std::uint32_t race = 0;  // the same for runs on one prompt that are shown side by side; 0: alone
  int lane = 0;            // from 0 in its race
  int first_approximate = 0, n_approximate = 0;  // of prompt_tokens, as in RunStarted
  /// The text ends before the first of these (engine/decode/stop_texts.h). None of them is empty.
  std::vector<std::string> stop_texts = {};
  std::vector<TokenId> stop_ids = {};  // each ends the text, also with ignore_eos
  bool no_special = false;  // prompt_tokens were read with names of control symbols as text
};

/// The first difference between a run and plain decoding, and the margin of each choice there over the
/// second best one. A tiny margin means rounding, a large one a fault. Unset: that run had ended.
struct Difference {
  int at = 0;  // index among generated tokens
  std::optional<float> margin, margin_of_ar;
};

/// One finished generation. Times are the run's own compute.
struct RunResult {
  RunRequest request;
  std::vector<TokenId> tokens;    // including those of a stop string, and a stop id
  std::vector<float> margins;     // as in Lane
  std::vector<TokenFacts> facts;  // [tokens]
  std::string text;               // without the stop string or the stop id that ended it
  // guesses after `tokens`, if the decoder ended the run early
  std::vector<TokenId> approximate;
  std::string approximate_text;
  std::string stop_reason;
  std::string stop_string;  // the stop string that ended the text; empty: none did
  int n_steps = 0;
  std::int64_t n_rows = 0;
  double prefill_ms = 0;
  double decode_ms = 0;
  std::map<std::string, double> metrics;
  std::map<std::string, std::int64_t> counts;  // the metrics that add up over runs
  std::optional<bool> identical_to_ar;         // unset: not compared
  std::optional<Difference> difference;        // if not identical
  std::optional<double> speedup;               // unset: there is no AR run to compare with

  /// True if an end token, a stop string or id, or a limit ended the run. Lossless runs that end so
  /// must agree in every token.
  bool whole() const {
    return stop_reason == "eos" || stop_reason == "length" || stop_reason == "context" ||
           stop_reason == "stop_string" || stop_reason == "stop_id";
  }
  /// Generated tokens per step; 0 without a step.
  double tokens_per_step() const {
    return n_steps ? static_cast<double>(tokens.size()) / n_steps : 0;
  }
  /// Generated tokens per second of decode_ms; 0 if no time was measured.
  double tokens_per_second() const {
    return decode_ms > 0 ? static_cast<double>(tokens.size()) / decode_ms * 1e3 : 0;
  }
};

/// Tokenizes a prompt.
/// @param symbols  names of control symbols in the prompt ("<s>") become their ids
/// @throws Error(Usage)     if the model has no tokenizer or the prompt has no tokens
/// @throws Error(BadInput)  if no room for a token is left in the model's context
std::vector<TokenId> tokenize_prompt(const Model& model,
                                     const std::string& prompt,
                                     bool symbols = true);

/// Checks stop strings and stop ids against the model.
/// @throws Error(Usage)  for stop strings without a tokenizer, or an id outside the vocabulary
void check_stops(const Model& model,
                 std::span<const std::string> stop_texts,
                 std::span<const TokenId> stop_ids);

/// Makes a lane that has not begun end where its text contains one of `stops`.
/// @param reason  the stop reason to report then
void stop_at(Lane& lane,
             const Tokenizer& tokenizer,
             std::vector<std::string> stops,
             StopReason reason);

/// Makes a lane that is ready for its first step: its prompt is prefilled and its decoder has
/// begun.
/// @param shared    a prefilled sequence with the same prompt, which is forked instead of a
///                  prefill; or null
/// @param progress  as of prefill()
/// @throws Error(Usage)  if the decoder refuses these settings or lacks its draft model or heads
Lane make_lane(const RunModels& models,
               const RunRequest& request,
               RunId run,
               const Sequence* shared,
               const std::function<bool(int, int)>& progress = {});
/// Makes a lane over a prefilled prompt. The caller calls lane.decoder->begin() on the thread that
/// drafts.
/// @param prompts  prompts that the draft model has read, or null
/// @throws Error(Usage)  as make_lane
Lane lane_over(const RunModels& models,
               const RunRequest& request,
               RunId run,
               Sequence prompt,
               PromptCaches* prompts = nullptr);
/// Prefills a prompt.
/// @param with_state  as of prefill(): for decoders with DecoderInfo::reads_prompt_state
/// @throws Error(BadInput)  if the prompt does not fit the context
Sequence prefilled(Model& model,
                   const std::vector<TokenId>& prompt,
                   const std::function<bool(int, int)>& progress = {},
                   bool with_state = false);

/// The same, sharing the keys and values of earlier prompts.
/// @param known  as of PromptCaches::read()
Sequence prefilled(PromptCaches& prompts,
                   const Model& model,
                   const std::vector<TokenId>& prompt,
                   const Sequence* known,
                   const std::function<bool(int, int)>& progress = {},
                   bool with_state = false);

/// The result of a lane. The stop reason is "stopped" if the run did not end by itself.
/// @param tokenizer  null: the result has no text
RunResult result_of(const Lane& lane,
                    const RunRequest& request,
                    const Tokenizer* tokenizer,
                    double prefill_ms);
/// The event that opens a run, with its complete options.
RunStarted started_event(const RunRequest& request, const RunModels& models, RunId run);
/// The event that closes a run.
RunFinished finished_event(const RunResult& result, RunId run);

/// Runs one request to its end. A failure is reported as the run's end and thrown to the caller; a
/// device's failure names its step.
/// @param models  with a draft model or heads if the decoder needs them
/// @param events  or null
/// @param stop    called before each step; true ends the run there. May be empty
/// @param step    called after each step with the lane. May be empty
RunResult run_to_end(const RunModels& models,
                     const RunRequest& request,
                     RunId run,
                     EventSink* events,
                     const std::function<bool()>& stop = {},
                     const std::function<void(const Lane&)>& step = {});

/// Index of the first token that differs, -1 if none does. A shorter sequence differs at its end.
int first_difference(std::span<const TokenId> found, std::span<const TokenId> expected);

}  // namespace engine

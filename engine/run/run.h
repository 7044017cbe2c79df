// Makes a lane that can step from a request, and a result from a finished lane. The command line
// and the engine thread both use these functions.
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
  // tokens of `prompt`; without a tokenizer `prompt` is empty and only these are set
  std::vector<TokenId> prompt_tokens;
  std::string decoder = "ar";
  OptionValues options;  // as given; parse_options() checks them
  Sampling sampling;
  int max_tokens = 256;
  bool ignore_eos = false;
  ProbeSettings probe;  // of fastcot's stop=probe
  // equal for runs of one prompt that are shown side by side; 0: the run is shown alone
  std::uint32_t race = 0;
  int lane = 0;           // number of the lane in its race, from 0
  PlaceInSet place = {};  // of the race
  // the approximate tokens in prompt_tokens, as in RunStarted
  int first_approximate = 0, n_approximate = 0;
  /// The text ends before the first of these stop strings (engine/decode/stop_texts.h). None is
  /// empty.
  std::vector<std::string> stop_texts = {};
  std::vector<TokenId> stop_ids = {};  // each ends the text, even with ignore_eos
  // when prompt_tokens were made, names of control symbols were read as plain text
  bool no_special = false;
  // what the chat template made of the prompt; empty: the prompt was read as it is
  std::string rendered_prompt = {};
  std::string system = {};  // the system message in rendered_prompt; empty: none
  /// The choices of a recorded run, in order, which this run repeats (engine/run/recorded/repeat.h).
  std::vector<std::int32_t> choices = {};
};

/// The first difference between a run and plain decoding. A margin is the score of the token that
/// the run chose at this place minus the second best score: a tiny margin means rounding, a large
/// one a fault. A margin is unset if that run had ended before this place.
struct Difference {
  int at = 0;  // index among generated tokens
  std::optional<float> margin, margin_of_ar;
};

/// One finished generation. Times count only compute of this run.
struct RunResult {
  RunRequest request;
  // generated tokens, including those of a stop string and a stop id
  std::vector<TokenId> tokens;
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
  double prefill_ms = 0;  // of the target and the draft model
  double decode_ms = 0;
  StepTimes times;  // the parts of decode_ms
  std::map<std::string, double> metrics;
  std::map<std::string, std::int64_t> counts;  // the metrics that add up over runs
  std::vector<std::string> notices;            // texts of the decoder's notices, each once
  std::optional<bool> identical_to_ar;         // unset: not compared
  std::optional<Difference> difference;        // set if the tokens are not identical
  std::optional<double> speedup;               // unset: no AR run to compare with
  /// Comparison with a recorded run.
  struct Repetition {
    bool same_tokens = false, same_steps = false;
  };
  std::optional<Repetition> repetition;  // unset: no recorded run was repeated

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

/// Checks the number of a prompt's tokens.
/// @throws Error(Usage)     for none
/// @throws Error(BadInput)  if no room for a token is left in the model's context
void check_prompt_length(const Model& model, std::size_t n_tokens);

/// Tokenizes a prompt that is taken as it is; the begin token that a tokenizer adds is not doubled.
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

/// Sets stop strings of a lane that has not begun: it ends when its text contains one of `stops`.
/// @param reason  the stop reason to report if that happens
void stop_at(Lane& lane,
             const Tokenizer& tokenizer,
             std::vector<std::string> stops,
             StopReason reason);

/// Measures the times of the target's steps, if the decoder chooses sizes by them and they are not known yet
/// (engine/store/calibration.h). make_lane() and lane_over() do it too; called before, it is not a part of their time.
/// @throws Error(Usage)  if the decoder refuses the request's options
void prepare_costs(const RunModels& models, const RunRequest& request);
/// Makes a lane that is ready for its first step: its prompt is prefilled and its decoder has
/// begun.
/// @param shared    a prefilled sequence with the same prompt, which is forked instead of a
///                  prefill; or null
/// @param progress  as of prefill()
/// @param draft_prompts  as `prompts` of lane_over()
/// @throws Error(Usage)  if the decoder refuses these settings or lacks its draft model or heads
Lane make_lane(const RunModels& models,
               const RunRequest& request,
               RunId run,
               const Sequence* shared,
               const std::function<bool(int, int)>& progress = {},
               PromptCaches* draft_prompts = nullptr);
/// Makes a lane over a prefilled prompt. The caller calls lane.decoder->begin().
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

/// The same, but shares the keys and values of earlier prompts.
/// @param known  as of PromptCaches::read()
Sequence prefilled(PromptCaches& prompts,
                   const Model& model,
                   const std::vector<TokenId>& prompt,
                   const Sequence* known,
                   const std::function<bool(int, int)>& progress = {},
                   bool with_state = false);

/// After a run: keeps its text for later runs, if its decoder copies from earlier texts.
/// @param texts  of the run's model; null: nothing is kept
void keep_text(EarlierTexts* texts,
               const Sequence& sequence,
               const DecoderOptions& options,
               RunId run);

/// The result of a lane. The stop reason is "stopped" if the run did not end by itself.
/// @param tokenizer  null: the result has no text
RunResult result_of(const Lane& lane,
                    const RunRequest& request,
                    const Tokenizer* tokenizer,
                    double prefill_ms);
/// The event that opens a run, with its complete options.
RunStarted started_event(const RunRequest& request, const RunModels& models, RunId run);
/// A notice for a run whose tokens depend on measured times: under rejection sampling with chosen
/// sizes the same seed may give another text. nullopt for other runs.
std::optional<Notice> notice_of_sizes(const RunRequest& request);
/// The event that closes a run.
RunFinished finished_event(const RunResult& result, RunId run);

/// Runs one request to its end. A failure is both reported in an event that ends the run and thrown
/// to the caller; the message of a device's failure names the step.
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

/// Index of the first token that differs, -1 if none does. If one sequence is a prefix of the
/// other, they differ at the end of the shorter one.
int first_difference(std::span<const TokenId> found, std::span<const TokenId> expected);

}  // namespace engine

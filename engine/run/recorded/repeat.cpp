#include "engine/run/recorded/repeat.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/decode/verify/sampling.h"
#include "engine/decode/verify/sampling_mode.h"
#include "engine/event/recording/recording.h"
#include "engine/event/timeline/recorded_choices.h"
#include "engine/event/timeline/timeline.h"

namespace engine {
namespace {

/// @param option  that selects another one
void check_model(const char* what,
                 const char* option,
                 const ModelLoaded& recorded,
                 const ModelLoaded& loaded) {
  const auto differs = [&](const char* of, const std::string& expected, const std::string& found) {
    if (expected == found) return;
    throw Error(ErrorCode::Usage,
                fmt::format("the run was recorded with {} {}, {} {}; found {}, {} {}; choose {} {}",
                            what, recorded.name, of, expected, loaded.name, of, found, of, option));
  };
  if (!recorded.weights_hash.empty())
    differs("weights", recorded.weights_hash, loaded.weights_hash);
  differs("dtype", recorded.dtype, loaded.dtype);
  if (!recorded.cache_type.empty()) differs("KV cache", recorded.cache_type, loaded.cache_type);
  differs("scale", recorded.scale, loaded.scale);
}

}  // namespace

RecordedRun recorded_run(const Timeline& timeline, RunId run) {
  if (timeline.runs().empty()) throw Error(ErrorCode::BadInput, "the recording has no run");
  const RunRecord* const found = run == 0 ? &timeline.runs().front() : timeline.run(run);
  if (!found)
    throw Error(ErrorCode::BadInput,
                fmt::format("the recording has no run {}; it has {} runs, {} "
                            "to {}",
                            run, timeline.runs().size(), timeline.runs().front().id(),
                            timeline.runs().back().id()));
  const ModelLoaded* const model = timeline.model(found->started.model);
  if (!model) throw Error(ErrorCode::BadInput, "the recording does not name the run's model");
  RecordedRun recorded{.started = found->started, .model = *model};
  if (const ModelLoaded* const draft = timeline.model(found->started.draft);
      draft && found->started.draft != 0)
    recorded.draft = *draft;
  if (rejects(sampling_from(found->started)) && lacks_choices(*found))
    throw Error(ErrorCode::BadInput,
                fmt::format("run {} used rejection sampling, and the recording has no choices of "
                            "{} to repeat it with",
                            found->id(), found->started.decoder));
  recorded.choices = choices_of(*found);
  for (const TokenRecord& token : found->tokens) recorded.tokens.push_back(token.id);
  recorded.n_steps = static_cast<int>(found->steps.size());
  return recorded;
}

RecordedRun read_recorded_run(const std::string& path,
                              RunId run,
                              std::vector<std::string>& notices) {
  Timeline timeline;
  notices = load_recording(path, timeline).notices();
  return recorded_run(timeline, run);
}

void check_models(const RecordedRun& recorded, const RunModels& models) {
  check_model("the model", "with --model, --dtype, --cache-type and --scale", recorded.model,
              describe(models.target));
  if (recorded.draft && models.draft && decoder_named(recorded.started.decoder).needs_draft)
    check_model("the draft model", "with --draft and --draft-scale", *recorded.draft,
                describe(*models.draft));
}

RunRequest request_of(const RecordedRun& recorded, const Model& model) {
  const RunStarted& started = recorded.started;
  RunRequest request;
  request.prompt_id = started.prompt_id;
  request.prompt = started.prompt;
  request.prompt_tokens = started.prompt_tokens;
  request.decoder = started.decoder;
  request.options = started.options;
  request.sampling = sampling_from(started);
  request.max_tokens = started.max_tokens;
  request.ignore_eos = started.ignore_eos;
  request.first_approximate = started.first_approximate;
  request.n_approximate = started.n_approximate;
  request.stop_texts = started.stop_texts;
  request.stop_ids = started.stop_ids;
  request.no_special = started.no_special;
  if (started.read_as == ReadAs::Chat && model.tokenizer())
    request.rendered_prompt = model.tokenizer()->decode(started.prompt_tokens);
  request.system = started.system;
  request.choices = recorded.choices;
  return request;
}

RunResult::Repetition compared(const RecordedRun& recorded, const RunResult& result) {
  return {result.tokens == recorded.tokens, result.n_steps == recorded.n_steps};
}

}  // namespace engine

#include "engine/run/reasoning.h"

#include <algorithm>
#include <utility>

#include "engine/decode/verify/sampling_mode.h"

namespace engine {

void RunTracker::push(Event event) {
  if (const auto* started = std::get_if<RunStarted>(&event)) runs_[started->run].started = *started;
  if (const auto* committed = std::get_if<Committed>(&event)) {
    std::vector<TokenId>& tokens = runs_[committed->run].tokens;
    tokens.insert(tokens.end(), committed->tokens.begin(), committed->tokens.end());
  }
  if (const auto* finished = std::get_if<RunFinished>(&event))
    runs_[finished->run].stop_reason = finished->stop_reason;
  if (const auto* failed = std::get_if<RunFailed>(&event)) runs_[failed->run].failed = true;
  if (const auto* begun = std::get_if<SearchBegun>(&event))
    last_search_ = std::max(last_search_, begun->search);
  stepped_ |= std::holds_alternative<StepEnded>(event);
  to_.push(std::move(event));
}

bool RunTracker::stepped() {
  return std::exchange(stepped_, false);
}

RunRequest request_of(const RunStarted& started) {
  RunRequest request{.prompt_id = started.prompt_id,
                     .prompt = started.prompt,
                     .prompt_tokens = started.prompt_tokens,
                     .decoder = started.decoder,
                     .options = started.options,
                     .max_tokens = started.max_tokens,
                     .ignore_eos = started.ignore_eos,
                     .first_approximate = started.first_approximate,
                     .n_approximate = started.n_approximate,
                     .stop_texts = started.stop_texts,
                     .stop_ids = started.stop_ids};
  request.sampling = sampling_from(started);
  return request;
}

}  // namespace engine

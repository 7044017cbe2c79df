#include "tests/ui/support/set_stream.h"

#include <algorithm>

#include "tests/ui/support/streams.h"

namespace streams {
namespace {

using namespace engine;

Nanoseconds times(Nanoseconds t, double factor) {
  return static_cast<Nanoseconds>(static_cast<double>(t) * factor);
}

// Makes the steps longer.
void stretch(Event& event, double factor) {
  if (auto* begun = std::get_if<StepBegun>(&event)) begun->compute = times(begun->compute, factor);
  if (auto* finished = std::get_if<RunFinished>(&event))
    finished->decode = times(finished->decode, factor);
  if (auto* ended = std::get_if<StepEnded>(&event))
    for (Nanoseconds* part : {&ended->propose, &ended->forward, &ended->verify, &ended->commit})
      *part = times(*part, factor);
}

}  // namespace

std::vector<Event> set_of_races(const SetShape& shape) {
  std::vector<Event> all;
  const int n_all = shape.n_prompts * shape.n_repeats;
  const int n_races = shape.n_races < 0 ? n_all : shape.n_races;
  Nanoseconds offset = 0;
  for (int i = 0; i < n_races; ++i) {
    const int prompt = i / shape.n_repeats, repeat = i % shape.n_repeats;
    const auto first_run = static_cast<RunId>(i * static_cast<int>(shape.decoders.size()) + 1);
    const std::uint32_t race_id = shape.decoders.size() > 1 ? static_cast<std::uint32_t>(i + 1) : 0;
    for (Event& event : race(shape.decoders, shape.n_tokens, first_run, race_id)) {
      if (i > 0 && std::holds_alternative<ModelLoaded>(event)) continue;
      stretch(event, 1 + 0.1 * repeat);
      std::visit([&](auto& e) { e.t += offset; }, event);
      if (auto* started = std::get_if<RunStarted>(&event)) {
        started->prompt_id = "p" + std::to_string(prompt);
        started->prompt += " " + started->prompt_id;
        started->place = {.set = 1,
                          .prompt = prompt,
                          .n_prompts = shape.n_prompts,
                          .repeat = repeat,
                          .n_repeats = shape.n_repeats,
                          .task = prompt % 2 ? "odd" : "even"};
      }
      all.push_back(std::move(event));
    }
    offset = time_of(all.back()) + 1'000'000;
    all.push_back(Sampled{.t = offset,
                          .period = 20'000'000,
                          .device = "cpu",
                          .busy_percent = 90,
                          .stolen_percent = 0.5,
                          .load_average = 1.5});
    all.push_back(Phase{.t = offset, .name = "set", .done = i + 1, .total = n_all});
  }
  return all;
}

}  // namespace streams

// Artificial event streams in the format of the decoders: a known answer, guesses that are right or
// wrong in a fixed pattern, and step costs that grow with the number of rows. For tests and pictures.
#pragma once

#include <string>
#include <vector>

#include "engine/event/command.h"
#include "engine/event/event.h"
#include "ui/shell/catalog.h"

namespace streams {

struct Story {
  engine::ModelLoaded model;
  std::string prompt;
  std::vector<engine::TokenId> prompt_tokens, answer;
};
/// Returns a story with a short programming answer, repeated until it has at least `n_tokens`.
Story story(int n_tokens = 96);

struct Step {
  std::vector<engine::Event> events;  // StepBegun ... StepEnded, times unset
  engine::Nanoseconds cost = 0;
};
/// Returns the steps of a decoder ("ar", "jacobi", "lookahead", "prompt-lookup", "suffix", "recycling", "speculative", "mcsd",
/// "fastcot") over the story's answer.
std::vector<Step> steps_of(const Story& story, const std::string& decoder, engine::RunId run);

/// Returns a session: the model is loaded, then a run of one decoder.
std::vector<engine::Event> one_run(const std::string& decoder,
                                   int n_tokens = 96,
                                   engine::RunId run = 1);
/// Returns a race of decoders under the race clock; agreement is reported at the end.
std::vector<engine::Event> race(const std::vector<std::string>& decoders,
                                int n_tokens = 96,
                                engine::RunId first_run = 1,
                                std::uint32_t id = 1);
/// Returns a run that fails after a few steps.
std::vector<engine::Event> failed_run();
/// Returns a run whose stream ends in the middle of a step.
std::vector<engine::Event> cut_mid_step();

/// Returns a catalog with one unavailable decoder and one unavailable device.
ui::Catalog catalog();

}  // namespace streams

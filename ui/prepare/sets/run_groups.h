// The entries of the panel Runs: lanes that were started together are below one entry, repeats of a race and prompts of a set too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

struct Catalog;

/// An entry: a run, or a heading with the entries below it.
struct RunEntry {
  /// Prompts: all races of a set of several prompts. Race: the races of one prompt: a race, or its repeats. Repeat: one of the repeats.
  enum class Kind : std::uint8_t { Run, Prompts, Race, Repeat } kind = Kind::Run;
  int depth = 0;           // number of headings above it
  engine::RunId run = 0;   // the run, or the first run below the heading
  std::size_t n_runs = 1;  // runs below it, or the run itself
  std::size_t end = 0;     // index after the last entry below it
};

/// Returns the entries in the order of the runs, those of a set by prompt, repeat and lane. A run that was started alone has no heading.
std::vector<RunEntry> run_entries(std::span<const engine::RunRecord> runs);

/// Returns the entries below a heading.
/// @param heading  its index
std::span<const RunEntry> below(std::span<const RunEntry> entries, std::size_t heading);

/// Returns the words of a heading: the model, then the prompt or the number of prompts, or the place of the repeat.
/// @param heading  its index
std::string heading_of(const engine::Timeline& timeline,
                       std::span<const RunEntry> entries,
                       std::size_t heading);

/// Returns the settings of a lane that differ from those of other lanes, beside its decoder: "window 5, demo-cllm". Options are compared with
/// those of other lanes with the same decoder.
std::string differing_settings(const engine::Timeline& timeline,
                               const Catalog& catalog,
                               const engine::RunRecord& lane,
                               const std::vector<const engine::RunRecord*>& lanes);

}  // namespace ui

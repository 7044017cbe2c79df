// The current activity in a few words; it lets the user distinguish a slow engine from a stuck one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace engine {
class Timeline;
struct PlaceInSet;
struct RunRecord;
}  // namespace engine

namespace ui {

/// The activity that the window shows.
struct Status {
  /// The importance, shown by a colour.
  enum class Level { Quiet, Good, Amber, Bad } level = Level::Quiet;
  std::string text;
  double share = -1;                      // progress of a phase with a known end, 0 to 1; else -1
  bool working = false;                   // the engine is working, so the activity will change
  std::vector<std::string> shorter = {};  // shorter forms of `text`, longest first
};
/// Returns the forms of a state, longest first: `text`, then `shorter`. The place in a set precedes
/// them ("repeat 3 of 10: decoding"); the last form omits it.
std::vector<std::string> forms_of(const Status& status, const std::string& place);

/// Returns the activity of a run or of the engine.
/// @param run          the run shown, or nullptr
/// @param since_event  seconds since the last event, not counting samples of the machine
/// @param recorded     true: a recording is shown, so no events will follow
Status status_of(const engine::Timeline& timeline,
                 const engine::RunRecord* run,
                 double since_event,
                 bool recorded);
/// The progress of loading a model.
struct Loading {
  std::string name;
  double done = 0, total = 0;  // bytes
  double per_second = 0;       // mean bytes per second so far; 0: not known yet
  /// Returns the remaining time, s; -1 if it is not known yet.
  double seconds_left() const {
    return per_second > 0 ? std::max(0.0, total - done) / per_second : -1;
  }
};
/// Returns the model that is being loaded, if any.
std::optional<Loading> loading_of(const engine::Timeline& timeline);
/// Returns "0.09 of 0.18 GB, 1.20 GB/s, 3 s left"; without speed and time while they are not known.
std::string loading_facts(const Loading& loading);
/// Returns a sentence about the model that is being loaded: "Loading demo-target: 0.09 of ..."; empty if there is none.
std::string loading_words(const engine::Timeline& timeline);
/// Like loading_words(), with a sentence also for the time before and after loading, in which the engine
/// reports no progress.
/// @param waiting  seconds since a model or a run was requested; -1: no request is pending
std::string awaited_words(const engine::Timeline& timeline, double waiting);
/// The progress of a chain of thought or of a tree of thoughts.
struct Reasoning {
  std::string words;  // the progress: "question 1 of 3, level 2 of 4, values 2 of 3"
  double share = 0;
};
/// Returns the chain of thought or tree of thoughts that is running, if any.
std::optional<Reasoning> reasoning_of(const engine::Timeline& timeline);
/// Returns true if the engine is busy. During a chain of thought or a tree of thoughts this
/// includes the time between two of its runs.
bool is_going(const engine::Timeline& timeline);

/// The number of races of the last set that have begun, of those requested.
struct SetProgress {
  std::int64_t n_begun = 0, n_races = 0;
};
/// Returns the progress of the last set; nullopt if there is none or all its races have begun or were dropped.
std::optional<SetProgress> set_of(const engine::Timeline& timeline);
/// Returns the place of a run in its set: "repeat 3 of 10", "prompt 2/5, repeat 3/10"; empty if it is in none.
std::string set_words(const engine::PlaceInSet& place);
/// Returns the name of a run: "C lookahead" for a lane of a race, else "lookahead".
std::string name_of(const engine::RunRecord& run);
/// Returns a decoder's name in lanes, lists and heads: "AR" for plain decoding, else the name that commands take, "prompt-lookup".
std::string short_name(const std::string& decoder);
/// Returns the title of a decoder in lists: "AR" for plain decoding, else the title that the engine gives it.
std::string title_in_lists(const std::string& decoder, const std::string& title);
/// Returns the state of a race at the playhead: how many lanes have ended, and own compute used.
/// @param at         the playhead, ns of own compute
/// @param n_done     number of lanes whose answer has ended by then
/// @param n_stopped  number of lanes that the user has stopped by then
Status race_status(double at, std::size_t n_done, std::size_t n_stopped, std::size_t n_lanes);
/// Returns the result of the comparison with plain decoding: "same as plain decoding"; empty without a comparison.
Status agreement_of(const engine::RunRecord* run);

/// The facts of the status bar. Zero and empty ones are omitted.
struct BarFacts {
  std::string source;         // the opened recording's file name; empty: this session
  std::string model;          // name and dtype of the model: "demo-target, f32"
  std::int64_t n_events = 0;  // number of events of the document shown
  std::int64_t n_inconsistent = 0, n_dropped = 0;
  bool running = false, paused = false;  // state of the engine
  bool quiet = false;                    // the window draws rarely to keep the processor free
  bool unfocused = false;                // it draws fewer frames because it has no focus
  std::string device;                    // the device and its load: "cpu 97 % busy"
  double draw_ms = 0;
  int scale_percent = 100;
  std::string range;  // the measured range; empty: none
};
/// A part of a line of facts.
struct BarPart {
  std::string text;
  int rank = 0;  // parts of the lowest rank are omitted first, the last of them before the others
};
/// Returns the forms of a line, longest first: all parts, then without the least important ones.
std::vector<std::string> forms_of(std::vector<BarPart> parts);
/// Returns the forms of the text of the status bar, longest first.
std::vector<std::string> bar_forms(const BarFacts& facts);

/// Returns the forms of the caption of a picture of these runs, longest first: program, names of the runs, model, settings, and the meaning of the
/// letters beside figures.
std::vector<std::string> caption_forms(const std::string& app_version,
                                       const engine::Timeline& timeline,
                                       const std::vector<const engine::RunRecord*>& runs);
/// Returns the longest of these forms.
std::string caption_words(const std::string& app_version,
                          const engine::Timeline& timeline,
                          const std::vector<const engine::RunRecord*>& runs);

/// The forms of a text whose numbers change at most ten times a second; another change is shown at once.
class SteadyWords {
 public:
  /// Returns the forms to show.
  /// @param now      s
  /// @param changes  further changes will follow; otherwise every change is shown at once
  const std::vector<std::string>& show(std::vector<std::string> forms, double now, bool changes);

 private:
  std::vector<std::string> shown_;
  double since_ = 0;  // the last change, s
};

}  // namespace ui

// What a panel gets to see each frame: everything that happened, the shared selection and playhead,
// what can be chosen, and the way to ask the engine for something.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/queue.h"
#include "engine/event/timeline/timeline.h"
#include "ui/shell/catalog.h"
#include "ui/files/notes.h"
#include "ui/shell/playhead.h"
#include "ui/prepare/time/counters.h"
#include "ui/prepare/tokens/describe_place.h"
#include "ui/prepare/time/flow_arrows.h"
#include "ui/prepare/time/gantt.h"
#include "ui/prepare/time/lane_order.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/tokens/pool.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/time/schedule.h"
#include "ui/prepare/time/simulation.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/thought_tree.h"
#include "ui/prepare/training.h"
#include "ui/shell/selection.h"
#include "ui/files/settings.h"
#include "ui/files/setup_form.h"

namespace ui {

enum class Lens { TokenStatus, Probability, Age, Cost, Agreement, Origin };

/// Which of the four keys are down that move the time line: those where a US keyboard has W, S, A
/// and D, whatever letters are printed on them.
struct DriveKeys {
  bool in = false, out = false, left = false, right = false;
  bool any() const { return in || out || left || right; }
};

/// What of a time axis is seen, and what of it is measured, on the axis's clock.
struct TimeRange {
  double t0 = 0, t1 = 0;          // equal: all there is
  double range0 = 0, range1 = 0;  // equal: nothing is measured
};

/// What the person chose to look at, beside selection and playhead. Its range is the time line's,
/// on `clock`.
struct ViewState : TimeRange {
  Lens lens = Lens::TokenStatus;
  bool hindsight = true;
  bool only_changed = false;  // of the trajectory: what an iteration left as it was is not shown
  std::set<std::pair<engine::RunId, int>> unfolded;  // blocks of the trajectory, by run
  DriveKeys drive;
  ClockKind clock = ClockKind::Compute;
  TimeRange schedule;    // of the Schedule, ns of wall time since its first run began
  Place schedule_place;  // the place that was locked when the Schedule was drawn last
  SimulationForm simulation;
  TimeRange simulated;         // of the schedule run again, ns since it begins
  float distributions_temperature = 0;  // of the distributions recomputed in P/Q; 0: as recorded
  PoolOrder pool_order = PoolOrder::Newest;
  std::string pool_filter, log_filter, find;
  float tree_below = 0;       // drafted less likely than this and not judged: not shown
  bool tree_shows_p = false;  // beside a node: the target's probability, else the draft's
  bool tree_follows = false;  // the end of the path taken is selected, and kept in view
  Place followed;             // what was selected so last
  bool mask_numbers = false;  // 0 and 1 in its cells
  float mask_zoom = 1;        // of them; 1: as the panel has room
  std::string last_found;
  engine::SearchId search = 0;  // the tree of thoughts chosen, while search_run is shown; 0: none
  engine::RunId search_run = 0;
  LaneOrder lanes;
  std::vector<LaneKey> natural_lanes;  // as the time line had them last
  LaneKind lane = LaneKind::Target;    // of the slice clicked last: . and , walk along it
  LaneKey lane_key;                    // of the slice or label clicked last: keys move it
  Place pinned;                        // what the Inspector keeps showing
  std::vector<Bookmark> bookmarks;     // of the document shown, in the order they were set
  std::map<engine::RunId, std::string> run_names;  // given by the person; likewise
  engine::RunId renaming = 0;                      // the run whose name is being typed; 0: none
  bool renaming_begins = false;                    // its field wants the keyboard
  std::string new_name;
  std::vector<engine::RunId> marked_runs;  // chosen in Runs to be compared, in that order
  // Of the screen Training:
  TrainingAxis training_axis = TrainingAxis::Steps;
  bool training_log = true;          // the loss by its logarithm
  std::int64_t training_probe = -1;  // the step of the probe shown; -1: the newest
};

/// Prepared once and grown as events arrive, so a frame costs what it shows.
class Prepared {
 public:
  const RunTimes& times(const engine::RunRecord& run);
  /// Levels of detail of these lanes (engine::lane_bit) on a clock; on another clock than before
  /// they are made anew.
  const engine::RunLod& lod(const engine::RunRecord& run, ClockKind clock, unsigned lanes);
  const RunCounters& counters(const engine::RunRecord& run);
  /// The way of what is pointed at, and of that alone.
  const std::vector<FlowArrow>& arrows(const engine::RunRecord& run, const Place& place);
  /// What is said of several places chosen together.
  const PlaceFacts& facts(const engine::Timeline& timeline,
                          const engine::RunRecord& run,
                          const Chosen& chosen);
  const Tally& tally(const engine::RunRecord& run, std::size_t n_steps);
  PoolState& pool(const engine::RunRecord& run, std::size_t n_steps);
  const std::vector<TextCell>& cells(const engine::Timeline& timeline,
                                     const engine::RunRecord& run,
                                     std::size_t n_steps,
                                     bool live);
  /// Boxes of the cells last asked for, from the `first`-th on.
  const std::vector<CellBox>& boxes(const engine::RunRecord& run,
                                    std::size_t first,
                                    float width,
                                    const CellMetrics& metrics,
                                    bool flowing);
  const Numbers& numbers(const engine::Timeline& timeline,
                         const engine::RunRecord& run,
                         std::size_t n_steps);
  /// SEED's lanes, of all runs. While many events come they may lag a little behind them.
  const ScheduleLanes& schedule(const engine::Timeline& timeline);
  /// The same rounds in other stages; made anew when these or the lanes are others than before.
  const Simulation& simulation(const engine::Timeline& timeline,
                               const engine::ScheduleSimulator& simulate,
                               const engine::SimulatedStages& stages);
  const StepHistogram& histogram(const engine::RunRecord& run, std::size_t n_steps, int n_bins);
  /// Of the search asked for, and of that alone.
  const ThoughtLayout& thoughts(const engine::Timeline& timeline,
                                const engine::SearchRecord& search);
  /// Of the training that is shown, made anew as it grows.
  const TrainingCurves& training(const engine::TrainingHistory& history, TrainingAxis axis);
  const std::vector<ProbeCounts>& probes(const engine::TrainingHistory& history);
  /// Another timeline is shown: nothing prepared is true of it.
  void clear();

 private:
  struct Cells {
    std::uint64_t version = 0;
    std::size_t n_steps = 0;
    bool live = false;
    std::vector<TextCell> cells;
    // How they were laid out last.
    std::size_t first = 0;
    float width = -1;
    CellMetrics metrics;
    bool flowing = false;
    std::vector<CellBox> boxes;
  };
  struct Figures {
    std::uint64_t version = 0;
    std::size_t n_steps = 0;
    Numbers numbers;
  };
  struct Histogram {
    std::size_t n_steps = 0;
    int n_bins = 0;
    StepHistogram histogram;
  };
  struct Facts {
    std::uint64_t version = 0;
    engine::RunId run = 0;
    std::vector<Place> chosen;
    PlaceFacts facts;
  };
  struct Thoughts {
    std::uint64_t version = 0;
    engine::SearchId search = 0;
    ThoughtLayout layout;
  };
  struct Trained {
    std::uint64_t version = 0, probed = 0;  // of the history, when these were made
    TrainingAxis axis = TrainingAxis::Steps;
    TrainingCurves curves;
    std::vector<ProbeCounts> probes;
  };
  struct Scheduled {
    std::uint64_t version = 0, seen = 0;  // of the timeline: prepared, and when asked last
    ScheduleLanes lanes;
  };
  struct Simulated {
    std::uint64_t version = 0;  // of the lanes
    engine::SimulatedStages stages;
    Simulation simulation;
  };
  struct Arrows {
    Place place;
    std::size_t n_steps = 0;
    std::vector<FlowArrow> arrows;
  };
  std::map<engine::RunId, RunTimes> times_;
  std::map<engine::RunId, engine::RunLod> lods_;
  std::map<engine::RunId, RunCounters> counters_;
  Arrows arrows_;
  Scheduled schedule_;
  Simulated simulated_;
  Facts facts_;
  Thoughts thoughts_;
  Trained trained_;
  std::map<engine::RunId, Tally> tallies_;
  std::map<engine::RunId, PoolState> pools_;
  std::map<engine::RunId, Cells> cells_;
  std::map<engine::RunId, Figures> figures_;
  std::map<engine::RunId, Histogram> histograms_;
};

/// Things a panel asks of the shell; done after the frame.
struct Requests {
  bool run = false, race = false;
  std::optional<std::string> open;  // a path; empty: ask for one
  std::string open_training;        // a path
  bool export_trace = false, save = false;
  bool show_live_session = false;
  std::string screen;
  std::string copy;
  std::string say;    // to be told on screen
  bool load = false;  // the form's model, without a run
  bool pin = false;   // or unpin
  std::string panel;  // to be brought forward, by its id
};

struct Context {
  const engine::Timeline& timeline;
  Selection& selection;
  Playhead& playhead;
  engine::CommandQueue& commands;
  const Catalog& catalog;
  SetupForm& form;
  Settings& settings;
  ViewState& view;
  Prepared& prepared;
  Requests& requests;
  std::string source;      // of an opened recording; empty: this session
  double seconds = 0;      // of the view's clock
  double since_event = 0;  // seconds since the last event arrived, samples of the machine apart
  bool compare = false;    // the Compare screen
  double reading = -1;     // share of an opened recording read so far; -1: all of it
  double waiting = -1;     // seconds since a model or a run was asked for; -1: none awaited
  const engine::TrainingHistory* training = nullptr;  // that was opened; null: none was

  /// The run the Live panels show, or nullptr.
  const engine::RunRecord* run() const { return timeline.run(selection.run); }
  /// Runs the time line and the lanes show: those chosen to be compared, of the race, or the one.
  std::vector<const engine::RunRecord*> shown_runs() const;
  /// The letter a run has among those shown side by side: 'A' is the first.
  char letter_of(const engine::RunRecord& run) const;
  /// The name a person gave it, or nullptr.
  const std::string* given_name(const engine::RunRecord& run) const;
  /// A run's name: the one a person gave it, else "C lookahead" of a race, else "lookahead".
  std::string name_of(const engine::RunRecord& run) const;
  /// A click on a place, with the keys held down now (Selection::click).
  void click(const Place& place, std::span<const Place> in_order = {});
  /// Takes the playhead to the end of a step, so that it is the step shown.
  void show_step(const engine::RunRecord& run, engine::StepId step);
  /// Chooses steps of a run together, with Ctrl beside those chosen, to be walked through; says how
  /// many and what they have in common ("brought 3 tokens").
  void choose_steps(const engine::RunRecord& run,
                    const std::vector<engine::StepId>& steps,
                    const std::string& why);
  /// Complete steps of a run at the playhead.
  std::size_t n_steps(const engine::RunRecord& run) const;
  /// Whether the newest step in flight may be shown too.
  bool live(const engine::RunRecord& run) const;
  /// The longest own compute among the runs shown, ns.
  double end() const;
  /// When the first of the runs shown started: where the wall clock of the time line begins, ns.
  double wall_origin() const;
};

}  // namespace ui

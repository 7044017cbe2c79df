#include "ui/panels/time/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/event/run_rules.h"
#include "engine/event/timeline/schedule_turns.h"
#include "ui/panels/time/simulation_settings.h"
#include "ui/panels/time/time_axis.h"
#include "ui/prepare/figure.h"
#include "ui/prepare/playhead.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/schedule.h"
#include "ui/prepare/time/simulation.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

using namespace time_axis;
using Kind = ScheduleRowKind;
using Act = ScheduleAct;

constexpr const char* kHowToRecord =
    "decoscope reason cot --task kb --decoder seed --set branches=3 --record seed.pdrun";

// The ways to draw a slice.
enum class Slice {
  Forward,
  Drafts,
  ForTarget,
  ToDraft,
  BeingVerified,
  InQueue,
  SomeAccepted,
  NoneAccepted
};

// Draws a slice in the height of its row, with words if they fit.
void schedule_mark(
    ImDrawList* list, ImVec2 min, ImVec2 max, Slice slice, const std::string& words) {
  const bool room = max.x - min.x >= px(4);
  const auto fill = [&](Rgb rgb, bool outlined) {
    list->AddRectFilled(min, max, colour(rgb), room ? px(2) : 0);
    if (outlined && room && theme().outline_fills)
      list->AddRect(min, max, colour(theme().bright), px(2));
  };
  const auto text = [&](ImU32 ink) {
    const float size = std::min(px(13), max.y - min.y);
    const float wide = static_cast<float>(words.size()) * size * 0.5f;
    if (words.empty() || max.x - min.x < wide + px(5)) return;
    const float left = min.x + std::min(px(5), (max.x - min.x - wide) / 2);
    list->AddText(fonts().mono, size, {left, std::floor((min.y + max.y - size) / 2)}, ink,
                  words.c_str());
  };
  const float middle = std::floor((min.y + max.y) / 2);
  switch (slice) {
    case Slice::Forward:
      fill(theme().work, false);
      return text(IM_COL32_WHITE);
    case Slice::Drafts:
      fill(fill_of(Mean::Draft), true);
      return text(colour(kBlack));
    case Slice::InQueue:  // lighter than work
      list->AddRectFilled(min, max, colour(fill_of(Mean::Draft), room ? 0.28f : 0.6f),
                          room ? px(2) : 0);
      if (room) list->AddRect(min, max, colour(fill_of(Mean::Draft)), px(2), px(1));
      return text(colour(theme().bright));
    case Slice::ForTarget:
      return hatch(list, {min.x, min.y + px(3)}, {max.x, max.y - px(3)},
                   colour(fill_of(Mean::Draft)), px(6), px(2.2f));
    case Slice::ToDraft:
      return hatch(list, {min.x, min.y + px(3)}, {max.x, max.y - px(3)}, colour(theme().wait),
                   px(6), px(1.5f));
    case Slice::BeingVerified:
      return list->AddRectFilled({min.x, middle - px(1.5f)}, {max.x, middle + px(1.5f)},
                                 colour(theme().work));
    case Slice::SomeAccepted:
      return fill(fill_of(Mean::Accepted), true);
    default:
      return fill(fill_of(Mean::Rejected), true);
  }
}

template <Slice slice>
void draw_slice_sample(ImDrawList* list, ImVec2 at, const MarkNote& note) {
  schedule_mark(list, {at.x, at.y + px(3)}, {at.x + px(60), at.y + px(20)}, slice, note.text);
}

constexpr std::array kScheduleMarks{
    MarkNote{.words = "the target verifies the draft of branch 1 and commits 3 tokens",
             .draw = draw_slice_sample<Slice::Forward>,
             .text = "1: +3"},
    MarkNote{.words = "hatched: waste, rows without a committed token; their share is twice the "
                      "hatched width",
             .draw = draw_waste_sample},
    MarkNote{.words = "a branch drafts this number of tokens",
             .draw = draw_slice_sample<Slice::Drafts>,
             .text = "3"},
    MarkNote{.words = "the draft of the branch waits for the target",
             .draw = draw_slice_sample<Slice::ForTarget>},
    MarkNote{.words = "the target verifies the draft of the branch",
             .draw = draw_slice_sample<Slice::BeingVerified>},
    MarkNote{.words = "a branch waits for the draft model, or the target waits for a draft",
             .draw = draw_slice_sample<Slice::ToDraft>},
    MarkNote{.words = "the queue: one row per place, the first place on top",
             .draw = draw_slice_sample<Slice::InQueue>,
             .text = "1"},
    MarkNote{.words = "verified: at least one drafted token accepted",
             .draw = draw_slice_sample<Slice::SomeAccepted>},
    MarkNote{.words = "verified: no drafted token accepted",
             .draw = draw_slice_sample<Slice::NoneAccepted>},
};

// The legend in one line below the lanes.
struct LineNote {
  Slice slice;
  const char *text, *words;
};
constexpr std::array kScheduleLine{
    LineNote{Slice::Forward, "1: +3", "verifies: tokens"},
    LineNote{Slice::Drafts, "3", "drafts"},
    LineNote{Slice::ForTarget, "", "waits for target"},
    LineNote{Slice::BeingVerified, "", "verified"},
    LineNote{Slice::SomeAccepted, "", "some accepted"},
    LineNote{Slice::NoneAccepted, "", "none accepted"},
    LineNote{Slice::ToDraft, "", "waits for draft"},
    LineNote{Slice::InQueue, "1", "in the queue"},
};

// Marks that do not fit are omitted; "?" explains all of them.
void schedule_legend() {
  constexpr float kHigh = 15;
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushFont(nullptr, kSmallSize);
  for (const LineNote& note : kScheduleLine) {
    const bool result = note.slice == Slice::SomeAccepted || note.slice == Slice::NoneAccepted;
    // a result is shown by its colour, which needs less room
    const float wide = px(result ? 14 : 36);
    if (wide + px(5) + ImGui::CalcTextSize(note.words).x > ImGui::GetContentRegionAvail().x) break;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    schedule_mark(list, at, {at.x + wide, at.y + px(kHigh)}, note.slice, note.text);
    ImGui::Dummy({wide, px(kHigh)});
    ImGui::SameLine(0, px(5));
    words(note.words, theme().dim);
    ImGui::SameLine(0, px(12));
  }
  ImGui::PopFont();
  ImGui::NewLine();
}

// The schedule of the selected run, and its simulation.
struct PreparedSchedule : PanelState {
  // The runs of the selected run's schedule, and the timeline and the run for which they were found.
  std::vector<const engine::RunRecord*> runs;
  std::uint64_t runs_version = 0;
  engine::RunId selected = 0;
  std::string words;        // names the runs
  engine::RunId first = 0;  // the first run of the lanes; 0: none
  // version of the timeline plus 1: when the lanes were prepared, and when they were used last
  std::uint64_t version = 0, seen = 0;
  ScheduleLanes lanes;
  std::uint64_t simulated_version = 0;  // version of the lanes that were simulated
  engine::SimulatedStages stages;
  Simulation simulation;
  void document_changed() override {
    runs.clear();
    words.clear();
    runs_version = selected = first = 0;
    version = seen = simulated_version = 0;
    lanes = {};
    stages = {};
    simulation = {};
  }
};

// Finds the runs of the selected run's schedule.
PreparedSchedule& prepared_runs(const Context& context) {
  auto& prepared = context.states.get<PreparedSchedule>();
  const engine::RunRecord* run = context.run();
  const std::uint64_t version = context.timeline.version() + 1;
  const engine::RunId selected = run ? run->id() : 0;
  if (prepared.runs_version == version && prepared.selected == selected) return prepared;
  prepared.runs_version = version;
  prepared.selected = selected;
  prepared.runs = runs_of_schedule(context.timeline, run);
  prepared.words = schedule_words(context.timeline, prepared.runs);
  return prepared;
}

const Simulation& simulation_shown(Context& context, const engine::SimulatedStages& stages) {
  const ScheduleLanes& lanes = schedule_shown(context);
  auto& prepared = context.states.get<PreparedSchedule>();
  if (prepared.simulated_version != prepared.version || prepared.stages != stages) {
    prepared.simulated_version = prepared.version;
    prepared.stages = stages;
    prepared.simulation = simulation_of(context.catalog.simulate(lanes.schedule, stages));
  }
  return prepared.simulation;
}

bool offered(const engine::Timeline& timeline) {
  return engine::has_schedule(timeline.runs());
}

std::string why_no_schedule(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const engine::RunRecord* shown = context.run();
  if (!shown) return "Select a run to see its schedule.";
  if (!prepared_runs(context).runs.empty()) return "";
  const bool alone = engine::takes_turns(shown->started.decoder);
  const auto runs = context.timeline.runs();
  const auto has = [](const engine::RunRecord& run) { return engine::has_schedule({&run, 1}); };
  if (const auto other = std::ranges::find_if(runs, has); other != runs.end())
    return fmt::format("Run {} has no schedule, because {}. Select run {} ({}) to see one.",
                       shown->id(),
                       alone ? "it decoded only one sequence" : "its decoder does not take turns",
                       other->id(), short_name(other->started.decoder));
  return fmt::format(
      "{} A schedule needs several sequences at the same time: run a chain or a tree of thoughts "
      "with SEED (top of Setup, Alt+1), or record one with\n{}\nand open it (Ctrl+O).",
      alone ? "This run has one sequence, so drafting and verification alternated without waiting."
            : "No run has waited for a model.",
      kHowToRecord);
}

/// The schedule that is drawn: the recorded one, or its simulation.
struct Shown {
  const ScheduleLanes& lanes;
  TimeRange& range;
  bool simulated = false;
};

/// A row of the picture.
struct Line {
  const ScheduleRow* row = nullptr;
  float y = 0, height = 0;
};

float height_of(Kind kind) {
  constexpr float kHeights[] = {27, 17, 23, 17};
  return kHeights[static_cast<int>(kind)];
}

// Returns the rows from `top` down, with a gap between target, branches and queue.
std::vector<Line> lines_of(const ScheduleLanes& lanes, float top) {
  std::vector<Line> lines;
  Kind before = Kind::Target;
  for (const ScheduleRow& row : lanes.rows) {
    if (row.kind == Kind::Verify && row.slices.empty())
      continue;  // a simulated schedule, or no round is verified yet
    const bool group = row.kind != before && row.kind != Kind::Verify;
    if (group) top += px(6);
    before = row.kind;
    lines.push_back({&row, std::floor(top), std::floor(px(height_of(row.kind)))});
    top += px(height_of(row.kind));
  }
  return lines;
}

void draw_label(const Line& line, float left, float right) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool first = line.row->kind != Kind::Queue || line.row->index == 0;
  std::string name = row_name(*line.row);
  if (!first) name = name.substr(name.find(' ') + 1);
  const float size = px(line.row->kind == Kind::Target || line.row->kind == Kind::Branch ? 14 : 13);
  const float y = std::floor(line.y + (line.height - size) / 2);
  // The places of the queue are aligned at the right.
  const float wide = ImGui::CalcTextSize(name.c_str()).x * size / ImGui::GetFontSize();
  const float x = line.row->kind == Kind::Queue ? right - px(10) - wide : left;
  list->AddText(nullptr, size, {x, y}, colour(first ? theme().text : theme().dim), name.c_str());
}

// Returns the way to draw a slice; a result depends on the number of accepted tokens.
Slice look_of(const ScheduleLanes& lanes, const ScheduleSlice& slice) {
  const engine::ScheduleTurn& turn = lanes.schedule.turns[slice.turn];
  switch (slice.act) {
    case Act::Forward:
      return Slice::Forward;
    case Act::Result:
      return turn.n_proposed > 0 && turn.n_accepted == 0 ? Slice::NoneAccepted
                                                         : Slice::SomeAccepted;
    case Act::WaitsForDraft:
    case Act::WaitsToDraft:
      return Slice::ToDraft;
    case Act::Drafts:
      return Slice::Drafts;
    case Act::WaitsForTarget:
      return Slice::ForTarget;
    case Act::BeingVerified:
      return Slice::BeingVerified;
    case Act::InQueue:
      break;
  }
  return Slice::InQueue;
}

// The label of a forward, and its share of rows without a committed token.
struct ForwardFacts {
  std::string words;  // branches and tokens: "0 2: +5"
  float wasted = 0;
};

// @param room  true: the label names the branches too
ForwardFacts forward_facts(const ScheduleLanes& lanes, const ScheduleSlice& slice, bool room) {
  int n_rows = 0, n_tokens = 0;
  std::vector<int> branches;
  for (const std::uint32_t i : lanes.schedule.lane_turns(lanes.schedule.forwards[slice.forward])) {
    const engine::ScheduleTurn& turn = lanes.schedule.turns[i];
    n_rows += turn.n_rows;
    n_tokens += turn.n_tokens;
    branches.push_back(turn.branch);
  }
  return {room ? fmt::format("{}: +{}", fmt::join(branches, " "), n_tokens)
               : fmt::format("+{}", n_tokens),
          n_rows > n_tokens ? 1 - static_cast<float>(n_tokens) / static_cast<float>(n_rows) : 0};
}

// Draws a slice with its label: the branch in the queue, the number of drafted tokens, or the facts of a forward.
void draw_slice(const ScheduleLanes& lanes, const ScheduleSlice& slice, ImVec2 min, ImVec2 max) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const engine::ScheduleTurn& turn = lanes.schedule.turns[slice.turn];
  const float wide = max.x - min.x;
  std::string words;
  if (slice.act == Act::InQueue) words = fmt::format("{}", turn.branch);
  if (slice.act == Act::Drafts) words = fmt::format("{}", turn.n_proposed);
  const Slice look = look_of(lanes, slice);
  if (slice.act != Act::Forward) return schedule_mark(list, min, max, look, words);
  const ForwardFacts facts = forward_facts(lanes, slice, wide >= px(44));
  schedule_mark(list, min, max, look, wide >= px(20) ? facts.words : "");
  waste_mark(list, min, max, facts.wasted);
}

// Draws slices that are too narrow to draw one by one: the share of work and, above it, the share of waiting.
void draw_bucket(const ScheduleRow& row, const ScheduleBlock& block, ImVec2 min, ImVec2 max) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float high = max.y - min.y;
  const float work = std::min(1.0f, block.worked), all = std::min(1.0f, work + block.waited);
  const bool queue = row.kind == Kind::Queue;
  const Rgb fill = row.kind == Kind::Target   ? theme().work
                   : row.kind == Kind::Verify ? fill_of(Mean::Accepted)
                                              : fill_of(Mean::Draft);
  const float top = row.kind == Kind::Verify ? min.y : max.y - high * std::max(0.15f, work);
  if (all > work) list->AddRectFilled({min.x, max.y - high * all}, max, colour(theme().wait));
  if (work > 0) list->AddRectFilled({min.x, top}, max, colour(fill, queue ? 0.6f : 1));
}

// Shows the sentence of the block under the mouse and handles clicks on it.
void point_at(Context& context,
              const Shown& shown,
              const Line& line,
              const ScheduleBlock& block,
              const Picture& p) {
  const ScheduleLanes& lanes = shown.lanes;
  const ScheduleRow& row = *line.row;
  std::size_t at = block.first;
  if (block.is_bucket()) at = slice_at(row, p.t_of(ImGui::GetIO().MousePos.x));
  if (at < block.first || at >= block.last) at = block.first;
  const ScheduleSlice& slice = row.slices[at];
  const Place place = place_of(lanes, slice);
  context.selection.hover(place);
  tooltip(fmt::format("{}\n{}run {}, step {}", block_sentence(lanes, row, block),
                      block.is_bucket() ? "a click selects " : "", place.run, place.step));
  if (clicked_with(ImGuiMouseButton_Middle))
    show_range(context, shown.range, slice.t0 - (slice.t1 - slice.t0),
               slice.t1 + (slice.t1 - slice.t0));
  if (clicked_with(ImGuiMouseButton_Left)) context.click(place);
}

ImVec2 inset_top(const Line& line, float x) {
  return {x, line.y + px(line.row->kind == Kind::Target ? 3 : 2)};
}
ImVec2 inset_foot(const Line& line, float x) {
  return {x, line.y + line.height - px(line.row->kind == Kind::Target ? 4 : 2)};
}

void draw_line(Context& context, const Shown& shown, const Line& line, const Picture& p) {
  const float mouse = ImGui::GetMousePos().x;
  const bool hovered = ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
                       ImGui::IsMouseHoveringRect({p.x0, line.y}, {p.x1, line.y + line.height});
  bool pointed = false;
  for (const ScheduleBlock& block : blocks_in_view(*line.row, p.view)) {
    const float x0 = p.x_of(block.t0), x1 = p.x_of(block.t1);
    const bool verdict = line.row->kind == Kind::Verify;
    const float least = verdict ? px(2) : 1.0f;
    const float right = std::max(x0 + least, x1 - (x1 - x0 > px(6) ? px(1) : 0));
    const ImVec2 min = inset_top(line, x0), max = inset_foot(line, right);
    if (block.is_bucket())
      draw_bucket(*line.row, block, min, max);
    else
      draw_slice(shown.lanes, line.row->slices[block.first], min, max);
    if (!hovered || pointed || mouse < x0 || mouse >= std::max(x0 + px(4), x1)) continue;
    point_at(context, shown, line, block, p);
    pointed = true;
  }
}

// Returns the highlighted turns, at most kMost.
std::vector<std::size_t> lit_turns(const Context& context, const ScheduleLanes& lanes) {
  constexpr std::size_t kMost = 1000;
  std::vector<std::size_t> turns;
  const auto add = [&](const Place& place) {
    const std::size_t turn = turn_of(lanes, place.run, place.step);
    if (turn < lanes.schedule.turns.size() && turns.size() < kMost) turns.push_back(turn);
  };
  add(context.selection.shown());
  if (!context.selection.hovered.valid())
    for (const Place& place : context.selection.chosen().places()) add(place);
  return turns;
}

// Draws a ring around each slice of the highlighted turns.
void light_up(const ScheduleLanes& lanes,
              const std::vector<std::size_t>& turns,
              const Line& line,
              const Picture& p) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const std::size_t i : turns) {
    for (const std::size_t at : slices_of_turn(lanes, *line.row, i)) {
      const ScheduleSlice& slice = line.row->slices[at];
      const float x0 = p.x_of(slice.t0), x1 = std::max(x0 + px(2), p.x_of(slice.t1));
      if (x1 < p.x0 || x0 > p.x1) continue;
      const ImVec2 min = inset_top(line, x0), max = inset_foot(line, x1);
      list->AddRect({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, colour(theme().light_up), px(2),
                    px(1.5f));
    }
  }
}

Figure figure(const char* label,
              std::string value,
              const char* formula,
              std::string numbers,
              Truth truth = Truth::Derived) {
  return {.label = label,
          .value = std::move(value),
          .formula = formula,
          .numbers = std::move(numbers),
          .truth = truth};
}

std::vector<Figure> figures_of(const ScheduleFigures& f) {
  const bool known = f.under_way > 0 && f.n_forwards > 0;
  const auto share = [&](double part) { return known ? percent(part / f.under_way) : "-"; };
  const auto of_all = [&](double part) {
    return short_time(part) + " / " + short_time(f.under_way);
  };
  const double rest = std::max(0.0, f.under_way - f.target - f.target_waits);
  return {
      figure(
          "target busy", share(f.target),
          "time of the target's forwards and verifications / time in which any branch was active",
          of_all(f.target)),
      figure(
          "waits for a draft", share(f.target_waits),
          "time in which the target had no draft to verify / time in which any branch was active",
          of_all(f.target_waits)),
      figure("other time", share(rest),
             "the remaining time: the target reads prompts or is between two steps", of_all(rest)),
      figure("queue",
             known ? fmt::format("{:.2f}, at most {}", f.mean_queue(), f.longest_queue) : "-",
             "mean: time that branches waited for the target / time in which any branch was active",
             of_all(f.waits_for_target)),
      figure("waits for target, sum", short_time(f.waits_for_target),
             "sum over branches: from the end of a draft to its forward",
             fmt::format("{} in {} forwards", short_time(f.waits_for_target), f.n_forwards),
             Truth::Measured),
      figure("waits for draft, sum", short_time(f.waits_to_draft),
             "sum over branches: from the end of verification to the start of the next draft",
             short_time(f.waits_to_draft), Truth::Measured),
  };
}

// Draws the figures that fit into one line.
void draw_figures(const std::vector<Figure>& figures) {
  float x = ImGui::GetCursorPosX();
  for (const Figure& one : figures) {
    const float wide = ImGui::CalcTextSize((one.label + one.value).c_str()).x + px(24);
    if (x + wide > right_edge()) break;
    ImGui::SetCursorPosX(x);
    ImGui::BeginGroup();
    words(one.label, theme().dim);
    ImGui::SameLine(0, px(6));
    words(one.value, theme().bright);
    ImGui::SameLine(0, px(3));
    truth_sign(one.truth);
    ImGui::EndGroup();
    const ImVec2 size = ImGui::GetItemRectSize();
    if (ImGui::IsItemHovered()) formula_tooltip(one);
    x += size.x + px(18);
    ImGui::SameLine();
  }
  ImGui::NewLine();
}

std::string range_words(const ScheduleLanes& lanes, double a, double b) {
  const ScheduleFigures f = figures_between(lanes, a, b);
  std::string text = short_time(b - a);
  if (f.under_way <= 0) return text + ": no branch is active";
  return text + fmt::format(": target busy {}, +{} tokens, mean queue {:.2f}",
                            percent(f.target_busy()), f.n_tokens, f.mean_queue());
}

Picture picture_of(const Shown& shown, float x0, float x1) {
  const ScheduleLanes& lanes = shown.lanes;
  Picture p;
  p.x0 = x0;
  p.x1 = std::max(x1, x0 + 10);
  p.view.clock = ClockKind::Wall;
  p.view.wall_origin = static_cast<double>(lanes.schedule.origin);
  p.view.width = p.x1 - p.x0;
  p.begin = lanes.under_way.empty() ? 0 : lanes.under_way.front().first;
  p.end = std::max(lanes.end, p.begin + 1);
  p.view.empty = !(lanes.end > p.begin);
  set_range(p, shown.range);
  return p;
}

// Moves a zoomed range to a step that was selected elsewhere.
void follow_selection(Context& context, const Shown& shown, Picture& p) {
  const ScheduleLanes& lanes = shown.lanes;
  TimeRange& range = shown.range;
  const Place& locked = context.selection.locked;
  Place& followed = context.states.get<ScheduleView>().followed;
  if (locked == followed) return;
  followed = locked;
  const std::size_t turn = turn_of(lanes, locked.run, locked.step);
  if (!(range.t1 > range.t0) || turn >= lanes.schedule.turns.size()) return;
  const auto [from, to] = time_of(lanes, lanes.schedule.turns[turn]);
  if (to > range.t0 && from < range.t1) return;
  const double wide = range.t1 - range.t0;
  range.t0 = (from + to - wide) / 2;
  range.t1 = range.t0 + wide;
  set_range(p, range);
}

// Draws the playhead of the selected run on the wall clock that all runs of the schedule share.
void draw_playhead_of(Context& context, const Picture& p, float top, float bottom) {
  const engine::RunRecord* run = context.run();
  if (!run || !engine::has_schedule({run, 1})) return;
  const double at = std::min(context.playhead.at, context.end());
  draw_playhead(p, on_clock(ClockKind::Wall, context.times(*run), at, p.view.wall_origin), top,
                bottom);
}

void scrub(Context& context, const Picture& p, double t) {
  const engine::RunRecord* run = context.run();
  if (!run || !engine::has_schedule({run, 1})) return;
  const RunTimes& times = context.times(*run);
  context.playhead.go_to(to_compute(ClockKind::Wall, times, t, p.view.wall_origin), context.end());
}

// Returns true if a run of the schedule has not ended.
bool grows(const Context& context) {
  return std::ranges::any_of(prepared_runs(context).runs,
                             [](const engine::RunRecord* run) { return !run->over(); });
}

// Draws the rows that are scrolled into view.
void draw_lines(Context& context,
                const Shown& shown,
                const std::vector<Line>& lines,
                const Picture& p) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float seen_from = ImGui::GetWindowPos().y;
  const float seen_to = seen_from + ImGui::GetWindowSize().y;
  const std::vector<std::size_t> lit = lit_turns(context, shown.lanes);
  for (const Line& line : lines) {
    if (line.y > seen_to || line.y + line.height < seen_from) continue;
    list->PushClipRect({p.x0, line.y - px(1)}, {p.x1, line.y + line.height + px(1)}, true);
    draw_line(context, shown, line, p);
    light_up(shown.lanes, lit, line, p);
    list->PopClipRect();
  }
}

void draw_picture(Context& context, const Shown& shown) {
  const ScheduleLanes& lanes = shown.lanes;
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  TimeRange& range = shown.range;
  Picture p = picture_of(shown, at.x + px(kLabelWidth), at.x + room.x - px(4));
  follow_selection(context, shown, p);
  if (!shown.simulated && grows(context)) keep_following(context, range, p, p.end);
  walk_keys(context, range, p);
  const float top = at.y + px(kOverviewHeight + kRulerHeight + 4);
  const std::vector<Line> lines = lines_of(lanes, top);
  const float foot = lines.back().y + lines.back().height;
  const float bottom = std::max(foot + room_for_range_words(range), at.y + room.y - px(26));
  draw_overview(context, range, p, {p.x0, at.y}, tokens_over(lanes, overview_parts(p)),
                "Tokens committed by all runs of the schedule. Drag to move the visible range.");
  draw_ruler(p, {p.x0, at.y + px(kOverviewHeight + 2)}, bottom, [&](double t) {
    if (!shown.simulated) scrub(context, p, t);
  });
  for (const Line& line : lines) draw_label(line, at.x, p.x0);
  handle_mouse(context, range, p, top, bottom);
  draw_lines(context, shown, lines, p);
  draw_range(range, p, top, bottom, [&](double a, double b) { return range_words(lanes, a, b); });
  if (!shown.simulated)
    draw_playhead_of(context, p, at.y + px(kOverviewHeight + kRulerHeight - 2), bottom);
  ImGui::SetCursorScreenPos({at.x, bottom + px(6)});
  schedule_legend();
}

bool simulates(const Context& context) {
  return context.states.get<ScheduleView>().simulation.on && context.catalog.simulate;
}

void draw_schedule(Context& context) {
  const ScheduleLanes& lanes = schedule_shown(context);
  auto& view = context.states.get<ScheduleView>();
  words_within(prepared_runs(context).words, theme().text, ImGui::GetContentRegionAvail().x);
  if (!simulates(context)) {
    draw_figures(figures_of(lanes.figures));
    return draw_picture(context, {lanes, view.range});
  }
  simulation_settings(context, lanes.schedule, view.simulation);
  const engine::SimulatedStages stages = stages_of(view.simulation, lanes.schedule);
  const Simulation& simulation = simulation_shown(context, stages);
  if (simulation.lanes.empty())
    return wrapped("No round was verified, so there is nothing to simulate.", theme().dim);
  draw_figures(simulation_figures(simulation, stages));
  draw_picture(context, {simulation.lanes, view.simulated, true});
}

void draw_schedule_head(Context& context) {
  panel_legend(kSchedulePanel);
  ImGui::SameLine(0, px(12));
  ImGui::AlignTextToFramePadding();
  words(simulates(context) ? "simulated ms" : "wall ms", theme().dim);
  ImGui::SameLine(0, px(12));
  if (context.catalog.simulate) {
    tick("fixed times", context.states.get<ScheduleView>().simulation.on);
    if (ImGui::IsItemHovered())
      tooltip("Simulates the same rounds with a fixed time for a draft and for its verification.");
    ImGui::SameLine(0, px(12));
  }
  playhead_controls(context);
}

}  // namespace

// Returns the lanes, rebuilt after a change or when a run of another schedule is selected. While events arrive without pause, it waits until the
// timeline has grown by a tenth, so all rebuilds together cost about ten times the last one.
const ScheduleLanes& schedule_shown(Context& context) {
  constexpr std::uint64_t kSmall = 20'000, kPart = 10;
  PreparedSchedule& prepared = prepared_runs(context);
  const engine::RunId first = prepared.runs.empty() ? 0 : prepared.runs[0]->id();
  const bool is_other = first != prepared.first;
  if (is_other && prepared.first != 0) {
    auto& view = context.states.get<ScheduleView>();
    view.range = view.simulated = {};  // times of one schedule mean nothing in another
  }
  const std::uint64_t version = context.timeline.version() + 1;
  const bool pauses = version == prepared.seen;
  const bool grown = version - prepared.version > prepared.version / kPart;
  if (is_other || (version != prepared.version && (pauses || grown || version < kSmall))) {
    prepared.version = version;
    prepared.simulated_version = 0;
    prepared.first = first;
    prepared.lanes = schedule_lanes_of(prepared.runs);
  }
  prepared.seen = version;
  return prepared.lanes;
}

void zoom_schedule_to(Context& context, const Place& place) {
  const ScheduleLanes& lanes = schedule_shown(context);
  const std::size_t turn = turn_of(lanes, place.run, place.step);
  if (turn >= lanes.schedule.turns.size()) return;
  const auto [from, to] = time_of(lanes, lanes.schedule.turns[turn]);
  TimeRange& range = context.states.get<ScheduleView>().range;
  range.t0 = from - (to - from), range.t1 = to + (to - from);
}

const Panel kSchedulePanel{.id = "schedule",
                           .title = "Schedule",
                           .empty = why_no_schedule,
                           .draw = draw_schedule,
                           .head = draw_schedule_head,
                           .offered = offered,
                           .help =
                               "Which branches draft, wait or are being verified, over the wall "
                               "time of the selected run's schedule.",
                           .marks = kScheduleMarks,
                           .sketch = Sketch::Bars,
                           .names_run = true,
                           .live = Dock::Foot};

}  // namespace ui

#include "ui/panels/step/pool.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/describe.h"
#include "ui/panels/live/row_cell.h"
#include "ui/panels/step/shown_step.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/search.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/tokens/line_feeds.h"
#include "ui/prepare/tokens/pool.h"
#include "ui/prepare/tokens/row_origin.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/trajectory.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

constexpr std::array<const char*, 4> kOrders{"newest", "hits", "tries", "first token"};
constexpr std::size_t kMaxRows = 500;

constexpr std::array kPoolMarks{
    MarkNote{.words = "a candidate's token that the target accepted",
             .mean = Mean::Accepted,
             .text = "accepted"},
    MarkNote{.words = "the first token that the target rejected",
             .mean = Mean::Rejected,
             .text = "rejected"},
    MarkNote{.words = "after a rejection, or on a branch that was not taken: not verified",
             .mean = Mean::Unused,
             .text = "unused"},
    MarkNote{.words = "proposed and not yet verified", .mean = Mean::Pool, .text = "from the pool"},
    kLitNote,
};

// The pools of all runs at the playhead.
struct PoolsOfRuns : PanelState {
  std::map<engine::RunId, PoolState> pools;
  void document_changed() override { pools.clear(); }
};

PoolState& pool_at_playhead(Context& context, const engine::RunRecord& run) {
  PoolState& pool = context.states.get<PoolsOfRuns>().pools[run.id()];
  advance(pool, run, context.n_steps(run));
  return pool;
}

bool fits_pool(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.has_pool_or_guesses() || !traits.known;
}

const char* instead_of_pool(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.has_trajectory() ? "trajectory" : traits.drafts ? "tree" : "text";
}

std::string why_no_pool(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const engine::RunRecord& run = *context.run();
  const RunTraits traits = traits_of(run);
  const std::string method = method_of(context, run);
  if (!traits.known) return "No step yet.";
  if (traits.has_pool_or_guesses()) return "";
  if (!traits.proposes()) return proposed_nothing(context, run) + ", so there is no n-gram pool.";
  return method +
         (traits.has_trajectory()
              ? " has no n-gram pool. The panel Trajectory shows its guesses."
              : " has no n-gram pool. The panel Tree shows the proposals of the draft model.");
}

std::string text_of(const Context& context,
                    const engine::RunRecord& run,
                    const engine::PoolNgram& n) {
  std::vector<engine::TokenId> tokens{n.first};
  tokens.insert(tokens.end(), n.rest.begin(), n.rest.end());
  std::string text = context.timeline.text_of(run, tokens);
  show_line_feeds(text);
  return text;
}

// Returns a text for a list, in which a text of only spaces would look empty.
std::string listed(std::string text) {
  if (text.find_first_not_of(' ') == std::string::npos) std::ranges::replace(text, ' ', '_');
  return text;
}

// Returns the result of a candidate at this step.
std::string result_words(const engine::StepRecord& step, const PoolCandidate& candidate) {
  if (candidate.rows.empty()) return "not evaluated";
  if (candidate.n_accepted > 0)
    return fmt::format("{} of {} accepted", candidate.n_accepted, candidate.rows.size());
  return fate_of(step, candidate.rows.front()) == Mean::Rejected ? "rejected" : "not verified";
}

// Width of the first token of a candidate, px at 100 %.
constexpr float kFirstToken = 84;

// Continues the row of a candidate, or begins its next line if an item of this width has no room.
void next_in_row(float width, float gap) {
  ImGui::SameLine(0, gap);
  if (ImGui::GetContentRegionAvail().x >= width) return;
  ImGui::NewLine();
  ImGui::SetCursorPosX(px(kFirstToken));
  ImGui::AlignTextToFramePadding();
}

// Draws a text in the next column of a table.
void cell(const std::string& text, Rgb rgb) {
  ImGui::TableNextColumn();
  words_within(text, rgb, ImGui::GetContentRegionAvail().x);
}

void candidate_row(Context& context,
                   const engine::RunRecord& run,
                   const engine::StepRecord& step,
                   const PoolCandidate& candidate) {
  ImGui::AlignTextToFramePadding();
  ImGui::PushFont(fonts().mono, kMonoSize);
  words_within(listed(cell_text(context.timeline, run, candidate.ngram.first)), theme().dim,
               px(70));
  ImGui::PopFont();
  for (const int row : candidate.rows) {
    const std::string text = cell_text(context.timeline, run, step.drafted.tree.token[row]);
    const float wide = px(18) + static_cast<float>(n_columns(text)) * px(7.6f);
    if (row == candidate.rows.front())
      ImGui::SameLine(px(kFirstToken));
    else
      next_in_row(wide, px(3));
    row_cell(context, run, step, row, fate_of(step, row),
             std::min(wide, ImGui::GetContentRegionAvail().x));
  }
  const std::string result = result_words(step, candidate);
  next_in_row(ImGui::CalcTextSize(result.c_str()).x, px(10));
  words(result, candidate.n_accepted > 0 ? theme().bright : theme().dim);
  if (ImGui::IsItemHovered())
    tooltip(fmt::format("at this step; over the whole run, {} of {} tries were hits",
                        candidate.ngram.n_hits, candidate.ngram.n_tries));
}

// Draws a line with n-grams: "added at this step: 2", then their texts.
void ngram_line(const std::string& label,
                const Context& context,
                const engine::RunRecord& run,
                std::span<const engine::PoolNgram> ngrams) {
  words(label, theme().dim);
  ImGui::PushFont(fonts().mono, kMonoSize);
  std::string texts;
  for (const engine::PoolNgram& ngram : ngrams.first(std::min<std::size_t>(ngrams.size(), 32)))
    texts += (texts.empty() ? "" : "  |  ") + listed(text_of(context, run, ngram));
  ImGui::SameLine(0, px(10));
  words_within(texts, theme().text, ImGui::GetContentRegionAvail().x);
  ImGui::PopFont();
}

// Draws why a step has no candidates, the n-grams that it added, and the last hit before it.
void no_candidates(const Context& context,
                   const engine::RunRecord& run,
                   const PoolState& pool,
                   std::size_t i) {
  const engine::TokenTree tree = run.steps[i].drafted.tree;
  const std::string last = tree.n_rows() > 0 ? cell_text(context.timeline, run, tree.token[0]) : "";
  const PoolWithoutCandidates found = pool_without_candidates(pool, run, i, last);
  wrapped(found.why, theme().text);
  if (!found.added.empty())
    ngram_line(fmt::format("added at this step: {}", found.added.size()), context, run,
               found.added);
  else
    words("added at this step: none", theme().dim);
  if (found.hit_step >= 0)
    ngram_line(fmt::format("last hit before: step {}, {} of {} accepted", found.hit_step,
                           found.hit.n_accepted, found.hit.rows.size()),
               context, run, {&found.hit.ngram, 1});
  else
    words("last hit before: none", theme().dim);
}

// Lists the candidates of the selected step, else of the last complete step at the playhead. The list has room for the most candidates of a step:
// a click in the table below selects another step, and the rows of the table must stay under the mouse for a double click.
void candidate_list(Context& context, const engine::RunRecord& run, const PoolState& pool) {
  const std::size_t n_steps = context.n_steps(run), most = pool.most_tried;
  if (n_steps == 0 || most == 0) return;
  ShownStep shown = shown_step(context, run);
  if (!shown.selected) shown.step = run.steps[n_steps - 1];  // an unfinished step has no results
  const engine::StepRecord& step = *shown.step;
  const std::vector<PoolCandidate> candidates = candidates_of(step);
  ImGui::PushFont(nullptr, kSmallSize);
  words_within(fmt::format("candidates and results of {}: {}", words_of(shown), candidates.size()),
               theme().dim, ImGui::GetContentRegionAvail().x);
  ImGui::PopFont();
  const float row = px(23) + ImGui::GetStyle().ItemSpacing.y;
  const float high =
      std::min(static_cast<float>(most) * row, ImGui::GetContentRegionAvail().y * 0.55f);
  if (ImGui::BeginChild("candidates", {0, high})) {
    const std::size_t i_step = context.times(run).index_of(step.begun.step);
    if (candidates.empty() && i_step < run.steps.size()) no_candidates(context, run, pool, i_step);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      ImGui::PushID(static_cast<int>(i));
      candidate_row(context, run, step, candidates[i]);
      ImGui::PopID();
    }
  }
  ImGui::EndChild();
  ImGui::Dummy({1, px(4)});
}

// Returns the text that an n-gram of no step was read from.
std::string text_of_born(const engine::RunRecord& run, engine::StepId born) {
  if (born == engine::kBornInEarlierText) return "an earlier run";
  return born == engine::kBornInFile ? file_words(run) : "the prompt";
}

// Selects the window cells that an n-gram was read from, or its step if it was read from the text. A second click deselects them.
void select_source(Context& context, const engine::RunRecord& run, const engine::PoolNgram& ngram) {
  const std::size_t i = context.times(run).index_of(ngram.born);
  if (ngram.born < 0 || i >= run.steps.size()) return;
  std::vector<Place> places;
  for (const int row : source_rows(run.steps[i], ngram))
    places.push_back({run.id(), ngram.born, -1, row});
  if (places.empty() || ImGui::GetIO().KeyCtrl)
    context.click({run.id(), ngram.born, -1, -1});
  else if (context.selection.locked == places.back())
    context.selection.choose({}, {});
  else
    context.selection.choose(places, places.back());
}

void entry_row(Context& context, const engine::RunRecord& run, const PoolEntry& entry, int index) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(index);
  ImGui::PushFont(fonts().mono, kMonoSize);
  const std::string text = listed(text_of(context, run, entry.ngram));
  const std::string shown = elided(text, ImGui::GetContentRegionAvail().x);
  if (selectable((shown + "###ngram").c_str(),
                 context.selection.lights_step(run.id(), entry.ngram.born),
                 ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowDoubleClick)) {
    if (!ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
      select_source(context, run, entry.ngram);
    } else if (entry.ngram.born >= 0) {
      if (!context.selection.locked.valid()) select_source(context, run, entry.ngram);
      context.requests.panel = "trajectory";
    }
  }
  ImGui::PopFont();
  if (ImGui::IsItemHovered()) {
    if (entry.ngram.born >= 0) context.selection.hover({run.id(), entry.ngram.born, -1, -1});
    tooltip((shown == text ? "" : text + "\n") +
            (entry.ngram.born >= 0 ? fmt::format("Added at step {}. Click: select the window cells "
                                                 "it was read from. Double click: show "
                                                 "them in Trajectory.",
                                                 entry.ngram.born)
                                   : "Read from " + text_of_born(run, entry.ngram.born) + "."));
  }
  ImGui::PopID();
  cell(entry.ngram.born < 0 ? text_of_born(run, entry.ngram.born)
                            : fmt::format("step {}", entry.ngram.born),
       theme().dim);
  cell(fmt::format("{} of {}", entry.ngram.n_hits, entry.ngram.n_tries),
       entry.ngram.n_hits > 0 ? theme().bright : theme().dim);
  const auto step_words = [](engine::StepId step) {
    return step < 0 ? "-" : fmt::format("step {}", step);
  };
  cell(step_words(entry.last_hit), theme().dim);
  cell(step_words(entry.last_tried), theme().dim);
}

// Writes the number of n-grams with the same first token into the first of their rows.
void count_of_first(const PoolState::Rows& rows, std::size_t i) {
  const engine::TokenId first = rows.entries[i]->ngram.first;
  const bool begins = i == 0 || rows.entries[i - 1]->ngram.first != first;
  cell(begins ? fmt::format("{}", rows.n_by_first.at(first)) : "", theme().bright);
}

void none_found(const Context& context) {
  empty_state(fmt::format("No n-gram contains \"{}\". Clear the filter to see all.",
                          context.states.get<PoolView>().filter));
}

// A proposal of a run without an n-gram pool: a continuation that prompt lookup or suffix decoding copied, or the
// successors of the last token. The panel lists them, newest first.
struct Found {
  engine::StepId step = 0;
  std::string text, source;
  int n_accepted = 0, n_proposed = 0;
};

// The successors of the last token that a step proposed.
Found found_successors(const Context& context,
                       const engine::RunRecord& run,
                       const engine::StepRecord& step) {
  const engine::TokenTree& tree = step.drafted.tree;
  std::string text;
  for (int row = 0; row < tree.n_rows(); ++row)
    if (tree.tag[row].kind == engine::RowTag::Kind::Guess && tree.tag[row].a == 1)
      text += (text.empty() ? "" : " | ") + cell_text(context.timeline, run, tree.token[row]);
  return {.step = step.begun.step,
          .text = std::move(text),
          .source = "table of successors",
          .n_accepted = step.verified.n_accepted,
          .n_proposed = step.verified.n_proposed};
}

Found found_in_path(const Context& context,
                    const engine::RunRecord& run,
                    const engine::StepRecord& step,
                    const CopiedPath& path) {
  std::vector<engine::TokenId> tokens;
  for (const int row : path.rows) tokens.push_back(step.drafted.tree.token[row]);
  std::string text = context.timeline.text_of(run, tokens);
  show_line_feeds(text);
  const int last = path.rows.back();
  const engine::GuessSource* source = source_of(step, last);
  return {.step = step.begun.step,
          .text = std::move(text),
          .source = source ? source_words(*source, run) : "",
          .n_accepted = path.n_accepted,
          .n_proposed = static_cast<int>(path.rows.size())};
}

std::vector<Found> found_by(const Context& context, const engine::RunRecord& run) {
  std::vector<Found> all;
  const std::string& filter = context.states.get<PoolView>().filter;
  for (std::size_t i = context.n_steps(run); i > 0 && all.size() < kMaxRows; --i) {
    const engine::StepRecord step = run.steps[i - 1];
    if (!step.has_verified || step.verified.n_proposed == 0) continue;
    std::vector<Found> of_step;
    if (proposer_of(run) == Proposer::Successors)
      of_step.push_back(found_successors(context, run, step));
    else
      for (const CopiedPath& path : copied_paths(step))
        of_step.push_back(found_in_path(context, run, step, path));
    for (Found& found : of_step)
      if (found_in(found.text, filter)) all.push_back(std::move(found));
  }
  return all;
}

void found_row(Context& context, const engine::RunRecord& run, const Found& found, int index) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(index);
  const Place place{run.id(), found.step, -1, -1};
  ImGui::PushFont(fonts().mono, kMonoSize);
  const std::string shown = elided(listed(found.text), ImGui::GetContentRegionAvail().x);
  if (selectable((shown + "###found").c_str(), context.selection.lights_step(run.id(), found.step),
                 ImGuiSelectableFlags_SpanAllColumns))
    context.click(place);
  ImGui::PopFont();
  if (ImGui::IsItemHovered()) {
    context.selection.hover(place);
    tooltip(found.source.empty() ? found.text : found.text + "\n" + found.source);
  }
  ImGui::PopID();
  cell(found.source, theme().dim);
  cell(fmt::format("step {}", found.step), theme().dim);
  cell(fmt::format("{} of {}", found.n_accepted, found.n_proposed),
       found.n_accepted > 0 ? theme().bright : theme().dim);
}

void draw_found(Context& context, const engine::RunRecord& run) {
  const std::vector<Found> all = found_by(context, run);
  if (all.empty() && !context.states.get<PoolView>().filter.empty()) return none_found(context);
  const bool ranked = proposer_of(run) == Proposer::Successors;
  if (all.empty()) {
    empty_state(
        ranked ? "No tokens were proposed up to this step: the table knows no successors of its "
                 "tokens."
               : "No tokens were proposed up to this step: the end of the text has not occurred "
                 "earlier.",
        Sketch::Lines);
    return;
  }
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("found", 4, kFlags, {0, ImGui::GetContentRegionAvail().y})) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn(ranked ? "successors of the last token" : "found",
                          ImGuiTableColumnFlags_WidthStretch, 3);
  ImGui::TableSetupColumn(ranked ? "source" : "source of its last token",
                          ImGuiTableColumnFlags_WidthStretch, 2);
  ImGui::TableSetupColumn("proposed at", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("accepted", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableHeadersRow();
  for (std::size_t i = 0; i < all.size(); ++i) found_row(context, run, all[i], static_cast<int>(i));
  ImGui::EndTable();
}

bool looks_up(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.guesses && !traits.pool;
}

void draw_pool(Context& context) {
  const engine::RunRecord& run = *context.run();
  if (looks_up(run)) {
    draw_found(context, run);
    return;
  }
  PoolState& pool = pool_at_playhead(context, run);
  candidate_list(context, run, pool);
  if (const auto* gone = run.dropped_at(engine::PayloadKind::Pool, 0))
    small_wrapped(engine::describe(*gone));
  if (pool.entries.empty()) {
    empty_state("The pool is empty at this step. The decoder adds n-grams while it runs.",
                Sketch::Lines);
    return;
  }
  const auto text = [&](const engine::PoolNgram& n) { return text_of(context, run, n); };
  const PoolState::Rows& view = rows_in_view(pool, context.states.get<PoolView>().order,
                                             context.states.get<PoolView>().filter, text, kMaxRows);
  const std::vector<const PoolEntry*>& rows = view.entries;
  if (rows.empty()) return none_found(context);
  const bool by_first = context.states.get<PoolView>().order == PoolOrder::First;
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable(by_first ? "pool_by_first" : "pool", by_first ? 6 : 5, kFlags,
                         {0, std::max(px(60), ImGui::GetContentRegionAvail().y)}))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("n-gram", ImGuiTableColumnFlags_WidthStretch, 3);
  ImGui::TableSetupColumn("added", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("hits", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("last hit", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("last tried", ImGuiTableColumnFlags_WidthStretch, 1);
  if (by_first)
    ImGui::TableSetupColumn("with this first token", ImGuiTableColumnFlags_WidthStretch, 1.5f);
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      entry_row(context, run, *rows[i], i);
      if (by_first) count_of_first(view, static_cast<std::size_t>(i));
    }
  ImGui::EndTable();
}

void draw_pool_head(Context& context) {
  const bool looks = context.run() && looks_up(*context.run());
  panel_legend(kPoolPanel);
  if (!context.run() || !why_no_pool(context).empty()) return;
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(130));
  text_line("##filter", "filter", context.states.get<PoolView>().filter);
  if (looks) return;
  ImGui::SameLine();
  int order = static_cast<int>(context.states.get<PoolView>().order);
  if (quiet_choice("##order", "by ", kOrders, order))
    context.states.get<PoolView>().order = static_cast<PoolOrder>(order);
  const engine::RunRecord* run = context.run();
  const PoolState& pool = pool_at_playhead(context, *run);
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  words(context.states.get<PoolView>().filter.empty()
            ? fmt::format("{} n-grams, {} first tokens", pool.entries.size(), pool.n_keys)
            : fmt::format("{} of {} n-grams", pool.rows.n_found, pool.entries.size()),
        theme().dim);
}

}  // namespace

const Panel kPoolPanel{
    .id = "pool",
    .title = "Pool",
    .empty = why_no_pool,
    .draw = draw_pool,
    .head = draw_pool_head,
    .fits = fits_pool,
    .instead = instead_of_pool,
    .help =
        "The n-grams that the decoder can propose, and the candidates of the selected step, else "
        "of the step at the playhead. "
        "For prompt lookup and suffix decoding: the continuations that they copied, and from "
        "where.",
    .marks = kPoolMarks,
    .sketch = Sketch::Lines,
    .names_run = true,
    .live = Dock::Centre};

}  // namespace ui

// The n-gram pool: what is in it, where it came from, and what it gave.
#include "ui/panels/pool.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "engine/event/describe.h"
#include "ui/draw.h"
#include "ui/prepare/search.h"

namespace ui {
namespace {

constexpr std::array<const char*, 4> kOrders{"newest", "hits", "tries", "first token"};
constexpr std::size_t kMaxRows = 500;

std::string why_empty(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const std::string& decoder = context.run()->started.decoder;
  if (decoder == "jacobi") return "Jacobi has no n-gram pool. See the Trajectory panel.";
  if (decoder == "ar") return "Plain decoding has no n-gram pool. See the Text panel.";
  return "";
}

std::string text_of(const Context& context,
                    const engine::RunRecord& run,
                    const engine::PoolNgram& n) {
  std::vector<engine::TokenId> tokens{n.first};
  tokens.insert(tokens.end(), n.rest.begin(), n.rest.end());
  return context.timeline.text_of(run, tokens);
}

void candidate_list(Context& context, const engine::RunRecord& run, const PoolState& pool) {
  if (pool.tried_now.empty()) return;
  small_label(fmt::format("this step's candidates: {}", pool.tried_now.size()));
  for (const engine::PoolNgram& n : pool.tried_now) {
    ImGui::PushFont(fonts().mono, kMonoSize);
    words("  " + text_of(context, run, n), theme().text);
    ImGui::PopFont();
    ImGui::SameLine();
    words(fmt::format("hit {} of {}", n.n_hits, n.n_tries), theme().dim);
  }
  ImGui::Dummy({1, px(4)});
}

void entry_row(Context& context, const engine::RunRecord& run, const PoolEntry& entry, int index) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(index);
  ImGui::PushFont(fonts().mono, kMonoSize);
  const std::string text = text_of(context, run, entry.ngram);
  if (ImGui::Selectable((text + "###ngram").c_str(),
                        context.selection.lights_step(run.id(), entry.ngram.born),
                        ImGuiSelectableFlags_SpanAllColumns) &&
      entry.ngram.born >= 0)
    context.selection.click({run.id(), entry.ngram.born, -1, -1});
  ImGui::PopFont();
  if (ImGui::IsItemHovered()) {
    if (entry.ngram.born >= 0) context.selection.hover({run.id(), entry.ngram.born, -1, -1});
    tooltip(entry.ngram.born >= 0
                ? fmt::format("Seen at step {}. Click to select that step.", entry.ngram.born)
                : "Taken from the prompt.");
  }
  ImGui::PopID();
  ImGui::TableNextColumn();
  words(entry.ngram.born < 0 ? "prompt" : fmt::format("step {}", entry.ngram.born), theme().dim);
  ImGui::TableNextColumn();
  words(fmt::format("{} of {}", entry.ngram.n_hits, entry.ngram.n_tries),
        entry.ngram.n_hits > 0 ? theme().bright : theme().dim);
  ImGui::TableNextColumn();
  words(entry.last_tried < 0 ? "-" : fmt::format("step {}", entry.last_tried), theme().dim);
}

void none_found(const Context& context) {
  empty_state(
      fmt::format("No n-gram holds \"{}\". Clear the filter to see all.", context.view.pool_filter),
      false);
}

// Prompt lookup keeps no pool: it finds each continuation anew in the text so far. What it found
// stands here step by step, newest first.
struct Found {
  engine::StepId step = 0;
  std::string text;
  int n_accepted = 0, n_proposed = 0;
};

std::vector<Found> found_by(const Context& context, const engine::RunRecord& run) {
  std::vector<Found> all;
  for (std::size_t i = context.n_steps(run); i > 0 && all.size() < kMaxRows; --i) {
    const engine::StepRecord step = run.steps[i - 1];
    if (!step.has_verified || step.verified.n_proposed == 0) continue;
    const std::string& filter = context.view.pool_filter;
    std::vector<engine::TokenId> tokens;
    const engine::TokenTree& tree = step.drafted.tree;
    for (int row = 0; row < tree.n_rows(); ++row)
      if (tree.tag[row].kind == engine::RowTag::Kind::Guess) tokens.push_back(tree.token[row]);
    std::string text = tokens.empty() ? "-" : context.timeline.text_of(run, tokens);
    if (!found_in(text, filter)) continue;
    all.push_back(
        {step.begun.step, std::move(text), step.verified.n_accepted, step.verified.n_proposed});
  }
  return all;
}

void found_row(Context& context, const engine::RunRecord& run, const Found& found) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(found.step);
  const Place place{run.id(), found.step, -1, -1};
  ImGui::PushFont(fonts().mono, kMonoSize);
  if (ImGui::Selectable((found.text + "###found").c_str(),
                        context.selection.lights_step(run.id(), found.step),
                        ImGuiSelectableFlags_SpanAllColumns))
    context.selection.click(place);
  ImGui::PopFont();
  if (ImGui::IsItemHovered()) {
    context.selection.hover(place);
    tooltip(found.text);
  }
  ImGui::PopID();
  ImGui::TableNextColumn();
  words(fmt::format("step {}", found.step), theme().dim);
  ImGui::TableNextColumn();
  words(fmt::format("{} of {}", found.n_accepted, found.n_proposed),
        found.n_accepted > 0 ? theme().bright : theme().dim);
}

void draw_found(Context& context, const engine::RunRecord& run) {
  const std::vector<Found> all = found_by(context, run);
  if (all.empty() && !context.view.pool_filter.empty()) return none_found(context);
  if (all.empty()) {
    empty_state(
        "Nothing was proposed up to this step: the text so far did not hold its own end twice.",
        false);
    return;
  }
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("found", 3, kFlags, {0, ImGui::GetContentRegionAvail().y})) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("found in the text", ImGuiTableColumnFlags_WidthStretch, 3);
  ImGui::TableSetupColumn("proposed at", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("accepted", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableHeadersRow();
  for (const Found& found : all) found_row(context, run, found);
  ImGui::EndTable();
}

bool looks_up(const engine::RunRecord& run) {
  return run.started.decoder == "prompt-lookup";
}

void draw(Context& context) {
  const engine::RunRecord& run = *context.run();
  if (looks_up(run)) {
    draw_found(context, run);
    return;
  }
  PoolState& pool = context.prepared.pool(run, context.n_steps(run));
  candidate_list(context, run, pool);
  if (const auto* gone = run.dropped_at(engine::PayloadKind::Pool, 0))
    small_label(engine::describe(*gone));
  if (pool.entries.empty()) {
    empty_state("The pool is empty at this step. It fills as n-grams are seen.", false);
    return;
  }
  const auto text = [&](const engine::PoolNgram& n) { return text_of(context, run, n); };
  const std::vector<const PoolEntry*>& rows =
      rows_in_view(pool, context.view.pool_order, context.view.pool_filter, text, kMaxRows).entries;
  if (rows.empty()) return none_found(context);
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("pool", 4, kFlags, {0, ImGui::GetContentRegionAvail().y})) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("n-gram", ImGuiTableColumnFlags_WidthStretch, 3);
  ImGui::TableSetupColumn("born", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("hits", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("last tried", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      entry_row(context, run, *rows[i], i);
  ImGui::EndTable();
}

void draw_head(Context& context) {
  const bool looks = context.run() && looks_up(*context.run());
  if (!context.run() || !why_empty(context).empty()) return;
  ImGui::SetNextItemWidth(px(130));
  text_line("##filter", "filter", context.view.pool_filter);
  if (looks) return;
  ImGui::SameLine();
  int order = static_cast<int>(context.view.pool_order);
  if (quiet_choice("##order", "by ", kOrders, order))
    context.view.pool_order = static_cast<PoolOrder>(order);
  const engine::RunRecord* run = context.run();
  const PoolState& pool = context.prepared.pool(*run, context.n_steps(*run));
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  words(context.view.pool_filter.empty()
            ? fmt::format("{} n-grams, {} first tokens", pool.entries.size(), pool.n_keys)
            : fmt::format("{} of {} n-grams", pool.rows.n_found, pool.entries.size()),
        theme().dim);
}

}  // namespace

const Panel kPoolPanel{"pool", "Pool", why_empty, draw, draw_head};

}  // namespace ui

// The n-gram pool: what is in it, where it came from, and what it gave.
#include "ui/panels/pool.h"

#include <fmt/format.h>

#include <array>

#include "engine/event/describe.h"
#include "ui/draw.h"

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
  if (ImGui::Selectable(text.c_str(), false, ImGuiSelectableFlags_SpanAllColumns) &&
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

void draw(Context& context) {
  const engine::RunRecord& run = *context.run();
  const PoolState& pool = context.prepared.pool(run, context.n_steps(run));
  candidate_list(context, run, pool);
  if (const auto* gone = run.dropped_at(engine::PayloadKind::Pool, 0))
    small_label(engine::describe(*gone));
  if (pool.entries.empty()) {
    empty_state("The pool is empty at this step. It fills as n-grams are seen.", false);
    return;
  }
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("pool", 4, kFlags, {0, ImGui::GetContentRegionAvail().y})) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("n-gram", ImGuiTableColumnFlags_WidthStretch, 3);
  ImGui::TableSetupColumn("born", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("hits", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("last tried", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableHeadersRow();
  const auto rows = rows_in_view(pool, context.view.pool_order, kMaxRows);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      entry_row(context, run, *rows[i], i);
  ImGui::EndTable();
}

void draw_head(Context& context) {
  int order = static_cast<int>(context.view.pool_order);
  if (quiet_choice("##order", "by ", kOrders, order))
    context.view.pool_order = static_cast<PoolOrder>(order);
  const engine::RunRecord* run = context.run();
  if (!run || !why_empty(context).empty()) return;
  const PoolState& pool = context.prepared.pool(*run, context.n_steps(*run));
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  words(fmt::format("{} n-grams, {} first tokens", pool.entries.size(), pool.n_keys), theme().dim);
}

}  // namespace

const Panel kPoolPanel{"pool", "Pool", why_empty, draw, draw_head};

}  // namespace ui

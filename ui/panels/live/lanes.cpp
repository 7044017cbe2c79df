#include "ui/panels/live/lanes.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/event/run_rules.h"
#include "ui/widgets/draw.h"
#include "ui/shell/legend.h"
#include "ui/panels/live/text_view.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/status.h"
#include "ui/prepare/tokens/verdicts.h"

namespace ui {
namespace {

std::string why_no_lanes(const Context& context) {
  if (!context.shown_runs().empty()) return "";
  if (std::string loading = awaited_words(context.timeline, context.waiting); !loading.empty())
    return loading;
  return context.compare ? "No race yet. Choose lanes at the left and press Run race (Ctrl+Enter)."
                         : "";
}

// What cells of any lane can stand for; words for each are behind "?".
constexpr Mean kLegend[] = {Mean::Accepted, Mean::Bonus,    Mean::Guess,  Mean::Pool,
                            Mean::Draft,    Mean::Rejected, Mean::Unused, Mean::Approximate};

struct Verdict {
  std::string text;
  Rgb rgb;
};

Verdict verdict_of(const engine::RunRecord& run, const CatalogDecoder* info) {
  if (run.started.decoder == "ar") return {"baseline", theme().dim};
  if (run.failed) return {"failed", theme().bad};
  if (!why_not_lossless(run.started, info).empty()) return {"not lossless", theme().bad};
  if (!run.agreement) return {"not checked", theme().dim};
  if (run.agreement->first_difference < 0) return {"identical", theme().good};
  return {fmt::format("differs at {}", run.agreement->first_difference), theme().bad};
}

void lane_head(Context& context, const engine::RunRecord& run) {
  const CatalogDecoder* info = context.catalog.decoder(run.started.decoder);
  const Verdict verdict = verdict_of(run, info);
  const float end = right_edge() - ImGui::CalcTextSize(verdict.text.c_str()).x;
  const std::string* given = context.given_name(run);
  std::string name = fmt::format("{}  {}", context.letter_of(run),
                                 given  ? *given
                                 : info ? info->title
                                        : run.started.decoder);
  const bool one_branch = engine::takes_turns(run.started.decoder) && run.queueing.empty();
  ImGui::PushFont(fonts().bold, kTextSize);
  if (const std::string told = name + ", 1 branch";
      one_branch && ImGui::CalcTextSize(told.c_str()).x < end - px(10) - ImGui::GetCursorPosX())
    name = told;
  words(name, theme().bright);
  ImGui::PopFont();
  const engine::ModelLoaded* model = context.timeline.model(run.started.model);
  const engine::ModelLoaded* draft = context.timeline.model(run.started.draft);
  if (model && ImGui::IsItemHovered())
    tooltip("on " + model->name + (draft ? ", drafts by " + draft->name : "") +
            (one_branch
                 ? "\nOne prompt is one branch, which has nobody to take turns with: it drafts and "
                   "is judged in turn."
                 : ""));
  // A narrow lane leaves the model out: the top bar names it.
  ImGui::SameLine(0, px(14));
  const float room = end - px(10) - ImGui::GetCursorPosX();
  const std::string models = !model ? "" : model->name + (draft ? " + " + draft->name : "");
  if (!models.empty() && ImGui::CalcTextSize(models.c_str()).x < room) {
    words(models, theme().dim);
    ImGui::SameLine();
  }
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), end));
  words(verdict.text, verdict.rgb);
  if (ImGui::IsItemHovered())
    tooltip("Compared with plain decoding by the lane's own model, token by token.");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float left = ImGui::GetWindowPos().x, wide = ImGui::GetWindowWidth();
  ImGui::GetWindowDrawList()->AddLine({left, at.y + px(2)}, {left + wide, at.y + px(2)},
                                      colour(theme().line));
  ImGui::Dummy({1, px(6)});
}

void lane_numbers(Context& context, const engine::RunRecord& run, std::size_t n) {
  const Numbers& numbers = context.prepared.numbers(context.timeline, run, n);
  const float third = std::min(px(110), ImGui::GetContentRegionAvail().x / 3);
  const float left = ImGui::GetCursorPosX();
  Figure speedup = numbers.speedup;
  speedup.label = "speedup";
  const auto big = [&](const Figure& figure) {
    if (big_number(figure, {}, third))
      context.choose_steps(run, steps_behind(context.prepared.times(run), n, figure.behind),
                           behind_words(figure.behind));
  };
  big(numbers.tokens_per_second);
  ImGui::SameLine(left + third);
  big(numbers.tokens_per_step);
  ImGui::SameLine(left + 2 * third);
  big(speedup);
}

// Share of the answer that stands at the playhead; of max tokens while the end is unknown.
float progress_of(Context& context, const engine::RunRecord& run, std::size_t n) {
  const std::int64_t done = context.prepared.times(run).sums(n).tokens;
  const int all = run.finished ? run.finished->n_tokens : run.started.max_tokens;
  return all > 0 ? static_cast<float>(done) / all : 0;
}

void lane_card(Context& context, const engine::RunRecord& run, ImVec2 size) {
  const std::string id = fmt::format("lane{}", run.id());
  if (begin_card(id.c_str(), size)) {
    const std::size_t n = context.n_steps(run);
    lane_head(context, run);
    lane_numbers(context, run, n);
    ImGui::Dummy({1, px(1)});
    share_bar(progress_of(context, run, n), {ImGui::GetContentRegionAvail().x, px(5)},
              run.started.decoder == "ar" ? theme().dim : fill_of(Mean::Accepted));
    ImGui::Dummy({1, px(4)});
    if (run.failed) wrapped(in_window(run.failed->message), theme().bad);
    if (ImGui::BeginChild("text")) draw_token_text(context, run, false, false);
    ImGui::EndChild();
  }
  end_card();
}

void prompt_card(const std::vector<const engine::RunRecord*>& runs) {
  const engine::RunRecord& run = *runs.front();
  const bool shared = std::all_of(runs.begin(), runs.end(), [&](const engine::RunRecord* other) {
    return other->started.prompt == run.started.prompt;
  });
  if (begin_card("prompt", {0, px(84)})) {
    const float left = ImGui::GetCursorPosX(), top = ImGui::GetCursorPosY();
    small_label(shared ? "Prompt, shared" : "Prompt of A; others have their own");
    ImGui::SameLine(0, px(10));
    ImGui::PushFont(fonts().mono, kMonoSize);
    const ImVec2 at = ImGui::GetCursorPos();
    const float room = right_edge() - px(60);
    ImGui::PushTextWrapPos(room);
    const ImVec2 from = ImGui::GetCursorScreenPos();
    ImGui::PushClipRect(from, {from.x + room, from.y + px(34)}, true);
    words(run.started.prompt, theme().text);
    ImGui::PopClipRect();
    ImGui::PopTextWrapPos();
    ImGui::PopFont();
    ImGui::SetCursorPos({room + px(18), at.y - ImGui::GetStyle().FramePadding.y});
    legend_word("?###marks_lanes", cell_marks());
    ImGui::SetCursorPos({left, top + px(34)});
    legend(kLegend, true);
  }
  end_card();
}

void draw_lanes(Context& context) {
  const auto runs = context.shown_runs();
  const ImVec2 all = ImGui::GetContentRegionAvail();
  prompt_card(runs);
  const float gap = px(8), n = static_cast<float>(runs.size());
  const float wide = (all.x - gap * (n - 1)) / n;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(gap, gap));
  const float high = ImGui::GetContentRegionAvail().y;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, gap);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(6)));
    lane_card(context, *runs[i], {wide, high});
    ImGui::PopStyleVar();
  }
  ImGui::PopStyleVar();
}

}  // namespace

const Panel kLanesPanel{"lanes", "Lanes", why_no_lanes, draw_lanes, nullptr};

}  // namespace ui

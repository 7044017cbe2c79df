// Four large numbers, how acceptance falls with distance, and where the time went.
#include "ui/panels/numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "ui/draw.h"

namespace ui {
namespace {

constexpr std::size_t kRecent = 60;

void four(Context& context, const engine::RunRecord& run, const RunTimes& times, std::size_t n) {
  const Numbers& numbers = context.prepared.numbers(context.timeline, run, n);
  const float half = ImGui::GetContentRegionAvail().x / 2;
  const auto recent = [&](Series s) { return series_of(times, n, s, kRecent); };
  const float left = ImGui::GetCursorPosX();
  big_number(numbers.tokens_per_second, recent(Series::TokensPerSecond), half);
  ImGui::SameLine(left + half);
  big_number(numbers.tokens_per_step, recent(Series::TokensPerStep), half);
  ImGui::Dummy({1, px(2)});
  big_number(numbers.speedup, {}, half);
  ImGui::SameLine(left + half);
  big_number(numbers.step_median, recent(Series::StepMs), half);
}

void acceptance(const Tally& tally) {
  if (tally.by_place.empty()) return;
  ImGui::Dummy({1, px(4)});
  small_label("accepted at position");
  const float room = ImGui::GetContentRegionAvail().x;
  const std::size_t n = std::min<std::size_t>(tally.by_place.size(), 8);
  for (std::size_t i = 0; i < n; ++i) {
    const AcceptanceAt& at = tally.by_place[i];
    const float share = at.judged > 0 ? static_cast<float>(at.accepted) / at.judged : 0;
    ImGui::BeginGroup();
    words(fmt::format("{}", i + 1), theme().dim);
    ImGui::SameLine(px(34));
    const ImVec2 c = ImGui::GetCursorScreenPos();
    const float full = room - px(150), width = std::max(px(2), full * share);
    ImGui::GetWindowDrawList()->AddRectFilled({c.x, c.y + px(4)}, {c.x + width, c.y + px(14)},
                                              colour(fill_of(Mean::Accepted)), px(2));
    ImGui::Dummy({width, px(16)});
    ImGui::SameLine();
    words(at.judged > 0 ? percent(share) : "-", theme().bright);
    ImGui::SameLine();
    words(fmt::format("n={}", at.judged), theme().dim);
    ImGui::EndGroup();
    if (ImGui::IsItemHovered())
      formula_tooltip({fmt::format("acceptance at position {}", i + 1),
                       at.judged > 0 ? percent(share) : "-",
                       "accepted there / judged there; unused proposals were never judged",
                       fmt::format("{} / {}", at.accepted, at.judged)});
  }
}

void histogram(const char* label,
               std::span<const int> counts,
               const std::string& last,
               const char* unit) {
  int top = 0;
  std::int64_t total = 0;
  for (const int c : counts) top = std::max(top, c), total += c;
  if (top == 0) return;
  ImGui::Dummy({1, px(2)});
  small_label(label);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, high = px(26);
  const float wide = room / static_cast<float>(counts.size());
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const float h = high * counts[i] / top;
    const ImVec2 min{at.x + wide * i, at.y + high - h},
        max{at.x + wide * (i + 1) - px(2), at.y + high};
    if (counts[i] > 0) list->AddRectFilled(min, max, colour(theme().work), px(1));
    if (ImGui::IsWindowHovered() &&
        ImGui::IsMouseHoveringRect({min.x, at.y}, {min.x + wide, max.y}))
      tooltip(fmt::format("{} {}: {} of {} steps", i, unit, counts[i], total));
  }
  list->AddLine({at.x, at.y + high + 1}, {at.x + room, at.y + high + 1}, colour(theme().line));
  ImGui::Dummy({room, high + px(2)});
  ImGui::PushFont(nullptr, 12);
  words("0", theme().faint);
  ImGui::SameLine(std::max(0.0f, right_edge() - ImGui::CalcTextSize(last.c_str()).x));
  words(last, theme().faint);
  ImGui::PopFont();
}

void draw(Context& context) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  const engine::RunRecord& run = *context.run();
  const RunTimes& times = context.prepared.times(run);
  const std::size_t n = context.n_steps(run);
  four(context, run, times, n);
  const Tally& tally = context.prepared.tally(run, n);
  acceptance(tally);
  ImGui::Dummy({1, px(4)});
  const Numbers& numbers = context.prepared.numbers(context.timeline, run, n);
  for (const Figure& figure : numbers.more)
    label_value(figure.label.c_str(), figure.value, &figure);
  if (tally.kept.size() > 1)
    histogram("tokens a step brought", tally.kept, fmt::format("{}", tally.kept.size() - 1),
              "tokens");
  const StepHistogram& steps = context.prepared.histogram(run, n, 24);
  histogram("own compute of a step", steps.count, short_time(steps.top_ms * 1e6),
            "th part of the range");
  ImGui::PopStyleVar();
}

}  // namespace

const Panel kNumbersPanel{"numbers", "Numbers", no_run_yet, draw, nullptr};

}  // namespace ui

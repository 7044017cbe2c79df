#include "ui/panels/results/numbers.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "ui/widgets/draw.h"
#include "ui/shell/legend.h"
#include "ui/prepare/run_traits.h"

namespace ui {
namespace {

constexpr std::size_t kRecent = 60;

void choose_behind(Context& context,
                   const engine::RunRecord& run,
                   const RunTimes& times,
                   std::size_t n,
                   const Figure& figure) {
  context.choose_steps(run, steps_behind(times, n, figure.behind), behind_words(figure.behind));
}

void four(Context& context, const engine::RunRecord& run, const RunTimes& times, std::size_t n) {
  const Numbers& numbers = context.prepared.numbers(context.timeline, run, n);
  const float half = ImGui::GetContentRegionAvail().x / 2;
  const auto recent = [&](Series s) { return series_of(times, n, s, kRecent); };
  const float left = ImGui::GetCursorPosX();
  const auto big = [&](const Figure& figure, std::span<const float> values) {
    if (big_number(figure, values, half)) choose_behind(context, run, times, n, figure);
  };
  big(numbers.tokens_per_second, recent(Series::TokensPerSecond));
  ImGui::SameLine(left + half);
  big(numbers.tokens_per_step, recent(Series::TokensPerStep));
  ImGui::Dummy({1, px(2)});
  big(numbers.speedup, {});
  ImGui::SameLine(left + half);
  big(numbers.step_median, recent(Series::StepMs));
}

// Said where it is seen: with nothing accepted, guessing only costs.
void vain_note(Context& context,
               const engine::RunRecord& run,
               const RunTimes& times,
               std::size_t n) {
  const std::vector<engine::StepId> vain = steps_in_vain(times, n);
  if (vain.empty()) return;
  wrapped(fmt::format("Nothing was accepted in the last {} steps that proposed something. {}",
                      vain.size(),
                      traits_of(run).guesses && !traits_of(run).pool
                          ? "The text may repeat nothing of itself."
                          : "Likely: the prompt lacks the model's template, the tokenizer is "
                            "another's, or the temperature is too high to guess at."),
          theme().warn);
  if (link("Choose these steps"))
    context.choose_steps(run, vain, "proposed something and had nothing accepted");
  ImGui::Dummy({1, px(2)});
}

void acceptance(Context& context, const engine::RunRecord& run, std::size_t n_steps) {
  const Tally& tally = context.prepared.tally(run, n_steps);
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
    const Figure figure{fmt::format("acceptance at position {}", i + 1),
                        at.judged > 0 ? percent(share) : "-",
                        "accepted there / judged there; unused proposals were never judged",
                        fmt::format("{} / {}", at.accepted, at.judged),
                        Truth::Derived,
                        Behind::VerifiedNode};
    ImGui::SetCursorScreenPos(ImGui::GetItemRectMin());
    const int place = static_cast<int>(i) + 1;
    if (figure_button(figure, ImGui::GetItemRectSize()))
      context.choose_steps(run, steps_judging(run, n_steps, place),
                           fmt::format("had a proposal judged at position {}", place));
  }
}

// @return the bar clicked, -1: none
int histogram(const char* label,
              std::span<const int> counts,
              const std::string& last,
              const char* unit) {
  int top = 0, pressed = -1;
  std::int64_t total = 0;
  for (const int c : counts) top = std::max(top, c), total += c;
  if (top == 0) return pressed;
  ImGui::Dummy({1, px(2)});
  small_label(label);
  ImGui::PushID(label);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, high = px(26);
  const float wide = room / static_cast<float>(counts.size());
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const float h = high * counts[i] / top;
    const ImVec2 min{at.x + wide * i, at.y + high - h},
        max{at.x + wide * (i + 1) - px(2), at.y + high};
    if (counts[i] > 0) list->AddRectFilled(min, max, colour(theme().work), px(1));
    ImGui::PushID(static_cast<int>(i));
    ImGui::SetCursorScreenPos({min.x, at.y});
    if (ImGui::InvisibleButton("bar", {std::max(1.0f, wide), high})) pressed = static_cast<int>(i);
    if (ImGui::IsItemHovered())
      tooltip(fmt::format("{} {}: {} of {} steps\nClick: choose them.", i, unit, counts[i], total));
    ImGui::PopID();
  }
  ImGui::PopID();
  ImGui::SetCursorScreenPos(at);
  list->AddLine({at.x, at.y + high + 1}, {at.x + room, at.y + high + 1}, colour(theme().line));
  ImGui::Dummy({room, high + px(2)});
  ImGui::PushFont(nullptr, 12);
  words("0", theme().dim);
  ImGui::SameLine(std::max(0.0f, right_edge() - ImGui::CalcTextSize(last.c_str()).x));
  words(last, theme().dim);
  ImGui::PopFont();
  return pressed;
}

void histograms(Context& context,
                const engine::RunRecord& run,
                const RunTimes& times,
                std::size_t n) {
  const Tally& tally = context.prepared.tally(run, n);
  if (tally.kept.size() > 1) {
    const int bar = histogram("tokens a step brought", tally.kept,
                              fmt::format("{}", tally.kept.size() - 1), "tokens");
    if (bar >= 0)
      context.choose_steps(run, steps_that_brought(times, n, bar),
                           "brought " + engine::counted(bar, "token"));
  }
  const StepHistogram& steps = context.prepared.histogram(run, n, 24);
  const int bar = histogram("own compute of a step", steps.count, short_time(steps.top_ms * 1e6),
                            "th part of the range");
  if (bar < 0) return;
  const double wide = steps.top_ms * 1e6 / static_cast<double>(steps.count.size());
  context.choose_steps(
      run, steps_in_bin(times, n, steps, bar),
      bar + 1 == static_cast<int>(steps.count.size())
          ? fmt::format("took {} or more", short_time(bar * wide))
          : fmt::format("took {} to {}", short_time(bar * wide), short_time((bar + 1) * wide)));
}

void draw_numbers(Context& context) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  const engine::RunRecord& run = *context.run();
  const RunTimes& times = context.prepared.times(run);
  const std::size_t n = context.n_steps(run);
  vain_note(context, run, times, n);
  four(context, run, times, n);
  acceptance(context, run, n);
  ImGui::Dummy({1, px(4)});
  const Numbers& numbers = context.prepared.numbers(context.timeline, run, n);
  for (const Figure& figure : numbers.more)
    if (label_value(figure)) choose_behind(context, run, times, n, figure);
  histograms(context, run, times, n);
  ImGui::PopStyleVar();
}

void draw_numbers_head(Context&) {
  legend_word("?###marks_numbers", {});  // the letters behind figures
}

}  // namespace

const Panel kNumbersPanel{"numbers", "Numbers", no_run_yet, draw_numbers, draw_numbers_head};

}  // namespace ui

#include "ui/panels/step/distributions.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/panels/live/row_cell.h"
#include "ui/panels/step/shown_step.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/tokens/distributions.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/verdicts.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

enum class Distribution { Draft, Target, Left };

// Draws a probability as a bar from the left. The bars of the three distributions also differ in shape.
void distribution_bar(
    ImDrawList* list, ImVec2 min, ImVec2 max, float share, Distribution distribution) {
  const float right = min.x + (max.x - min.x) * std::clamp(share, 0.0f, 1.0f);
  const ImVec2 end{std::max(right, min.x + px(1)), max.y};
  if (distribution == Distribution::Draft)
    list->AddRectFilled(min, end, colour(fill_of(Mean::Draft)));
  if (distribution == Distribution::Target) list->AddRectFilled(min, end, colour(theme().text));
  if (distribution != Distribution::Left) return;
  hatch(list, min, end, colour(theme().text), px(5), px(1.2f));
  list->AddRect(min, end, colour(theme().text));
}

template <Distribution distribution>
void draw_bar_sample(ImDrawList* list, ImVec2 at, const MarkNote&) {
  distribution_bar(list, {at.x, at.y + px(7)}, {at.x + px(60), at.y + px(16)}, 0.7f, distribution);
}

constexpr std::array kDistributionsMarks{
    MarkNote{.words = "q: the probability under the draft",
             .draw = draw_bar_sample<Distribution::Draft>},
    MarkNote{.words = "p: the probability under the target",
             .draw = draw_bar_sample<Distribution::Target>},
    MarkNote{.words = "residual: the distribution of the next token if all proposals are rejected",
             .draw = draw_bar_sample<Distribution::Left>},
    MarkNote{.words = "accepted", .mean = Mean::Accepted, .text = "accepted"},
    cell_note(Mean::Rejected),
    cell_note(Mean::Unused),
    cell_note(Mean::Bonus),
};

bool fits_distributions(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.drafts || !traits.known || (traits.proposes() && uses_rejection(run.started));
}

const char* instead_of_distributions(const engine::RunRecord& run) {
  return traits_of(run).has_trajectory() ? "trajectory" : "text";
}

std::string why_no_distributions(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const engine::RunRecord& run = *context.run();
  if (!traits_of(run).known || run.steps.empty()) return "No step yet.";
  return fits_distributions(run) ? ""
                                 : proposed_nothing(context, run, " with a probability") +
                                       ": this needs a draft model or rejection sampling.";
}

std::string number(float value, const char* none = "-") {
  return value < 0 ? none : fmt::format("{:.3f}", value);
}

// Draws the bars of q, p and the residual (`left`), one above the other; a negative value has no bar.
void bars(float q, float p, float left) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = std::max(px(40), ImGui::GetContentRegionAvail().x - px(4));
  ImGui::Dummy({width, px(23)});
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto bar = [&](float y, float value, Distribution distribution) {
    if (value >= 0)
      distribution_bar(list, {at.x, at.y + y}, {at.x + width, at.y + y + px(6)}, value,
                       distribution);
  };
  bar(px(1), q, Distribution::Draft);
  bar(px(8.5f), p, Distribution::Target);
  bar(px(16), left, Distribution::Left);
}

void cell_words(const std::string& text, Rgb rgb) {
  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  words(text, rgb);
}

void verdict_row(Context& context,
                 const engine::RunRecord& run,
                 const engine::StepRecord& step,
                 const Verdict& v) {
  ImGui::TableNextRow();
  const bool verified = v.mean != Mean::Unused;
  const Rgb ink = verified ? theme().text : theme().dim;
  cell_words(fmt::format("{}", v.place), ink);
  ImGui::TableNextColumn();
  row_cell(context, run, step, v.row, v.mean, px(96));
  cell_words(number(v.q), ink);
  cell_words(number(v.p), ink);
  ImGui::TableNextColumn();
  bars(v.q, v.p, -1);
  cell_words(v.q > 0 && v.p >= 0 ? fmt::format("{:.2f}", v.p / v.q) : "-", ink);
  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  wrapped(v.words, ink);
}

constexpr ImGuiTableFlags kTable = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingFixedFit |
                                   ImGuiTableFlags_NoSavedSettings;

void verdict_table(Context& context,
                   const engine::RunRecord& run,
                   const engine::StepRecord& step,
                   const std::vector<Verdict>& verdicts) {
  if (!ImGui::BeginTable("verdicts", 7, kTable)) return;
  ImGui::TableSetupColumn("place");
  ImGui::TableSetupColumn("token");
  ImGui::TableSetupColumn("q");
  ImGui::TableSetupColumn("p");
  ImGui::TableSetupColumn("q above, p below", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("p / q");
  ImGui::TableSetupColumn(
      uses_rejection(run.started) ? "uniform draw, acceptance probability" : "result",
      ImGuiTableColumnFlags_WidthStretch, 1.6f);
  ImGui::TableHeadersRow();
  for (const Verdict& v : verdicts) verdict_row(context, run, step, v);
  ImGui::EndTable();
}

std::string omitted(const char* name, const std::vector<float>& distribution) {
  if (distribution.empty()) return "";
  const float recorded = std::accumulate(distribution.begin(), distribution.end(), 0.0f);
  return fmt::format(" \xC2\xB7 {} of other tokens {:.3f}", name, std::max(0.0f, 1 - recorded));
}

// Returns the text of a cell in a column of recomputed probabilities.
std::string at_place(const std::vector<Interval>& of, std::size_t i) {
  return i < of.size() ? words_of(of[i]) : "-";
}

// The distributions that one table shows.
struct ShownDistributions {
  DistributionsAt at;     // the distributions at the temperature shown
  bool is_other = false;  // the temperature is not the recorded one
  std::string words;      // that temperature: "0.50"
};

void distribution_row(const engine::RejectionDetail& w,
                      const ShownDistributions& distributions,
                      std::size_t i,
                      const std::string& name,
                      bool taken) {
  const float left = i < w.residual.size() ? w.residual[i] : -1, q = i < w.q.size() ? w.q[i] : -1;
  ImGui::PushFont(fonts().mono, kMonoSize);
  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  words_within(name + (taken ? "  <" : ""), taken ? theme().bright : theme().text,
               ImGui::GetContentRegionAvail().x);
  ImGui::PopFont();
  if (taken && ImGui::IsItemHovered()) tooltip("this token was committed");
  cell_words(number(q), distributions.is_other ? theme().dim : theme().text);
  cell_words(number(w.p[i]), distributions.is_other ? theme().dim : theme().text);
  if (distributions.is_other) {
    cell_words(at_place(distributions.at.q.of, i), theme().text);
    cell_words(at_place(distributions.at.p.of, i), theme().text);
  } else {
    cell_words(number(left), theme().text);
  }
  ImGui::TableNextColumn();
  const auto middle = [i](const std::vector<Interval>& of) {
    return i < of.size() ? static_cast<float>(of[i].middle()) : -1.0f;
  };
  if (distributions.is_other)
    bars(middle(distributions.at.q.of), middle(distributions.at.p.of), -1);
  else
    bars(q, w.p[i], left);
}

// Draws the table of the distributions after one row, for the recorded tokens.
void distribution_table(Context& context,
                        const engine::RunRecord& run,
                        const engine::StepRecord& step,
                        const engine::RejectionDetail& w,
                        const ShownDistributions& distributions) {
  const auto name = [&](engine::TokenId id) { return cell_text(context.timeline, run, id); };
  small_wrapped(
      fmt::format("after \"{}\": {}{}{}{}", name(step.drafted.tree.token[w.row]),
                  w.residual.empty() ? "a proposal was accepted" : "every proposal was rejected",
                  omitted("q", w.q), omitted("p", w.p), omitted("residual", w.residual)));
  ImGui::PushID(w.row);
  const int n_columns = distributions.is_other ? 6 : 5;
  if (ImGui::BeginTable(distributions.is_other ? "distributions_at" : "distributions", n_columns,
                        kTable)) {
    ImGui::TableSetupColumn("token", 0, px(110));
    ImGui::TableSetupColumn("q");
    ImGui::TableSetupColumn("p");
    if (distributions.is_other) {
      ImGui::TableSetupColumn(("q at " + distributions.words).c_str());
      ImGui::TableSetupColumn(("p at " + distributions.words).c_str());
    } else {
      ImGui::TableSetupColumn("residual");
    }
    ImGui::TableSetupColumn(distributions.is_other ? ("q, p at " + distributions.words).c_str()
                                                   : "q, p, residual, top to bottom",
                            ImGuiTableColumnFlags_WidthStretch, 1);
    ImGui::TableHeadersRow();
    for (std::size_t i = 0; i < w.token.size(); ++i) {
      ImGui::TableNextRow();
      distribution_row(w, distributions, i, name(w.token[i]),
                       w.token[i] == step.verified.picked[w.row]);
    }
    ImGui::EndTable();
  }
  ImGui::PopID();
}

std::string kept_words(const DistributionsAt& distributions, const std::string& where) {
  return fmt::format(
      "{}: a token sampled from q is accepted with probability {}, total variation {}", where,
      words_of(distributions.kept), words_of(distributions.apart));
}

void distributions_after(Context& context,
                         const engine::RunRecord& run,
                         const engine::StepRecord& step,
                         const engine::RejectionDetail& w) {
  const DistributionsSource source = distributions_source(context.timeline, run);
  const float wanted = context.states.get<DistributionsView>().temperature;
  const bool is_other = wanted > 0 && wanted != source.temperature;
  const DistributionsAt recorded = distributions_at(source, step, w, source.temperature);
  const ShownDistributions distributions{
      is_other ? distributions_at(source, step, w, wanted) : recorded, is_other,
      fmt::format("{:.2f}", wanted)};
  distribution_table(context, run, step, w, distributions);
  if (!w.q.empty())
    small_wrapped(kept_words(recorded, fmt::format("at {:.2f}, as recorded", source.temperature)));
  if (!is_other) return;
  if (!w.q.empty())
    small_wrapped(kept_words(distributions.at, "at " + distributions.words + ", recomputed"));
  if (const std::string out = omission_words(source, distributions.at, wanted); !out.empty())
    wrapped(out, theme().dim);
}

// Draws the slider for the temperature at which the distributions below are shown.
void temperature_row(Context& context,
                     const engine::RunRecord& run,
                     const engine::StepRecord& step) {
  constexpr float kLowest = 0.05f, kHighest = 2;
  const std::string why = why_no_other_temperature(run.started, step);
  float& wanted = context.states.get<DistributionsView>().temperature;
  ImGui::Dummy({1, px(2)});
  ImGui::AlignTextToFramePadding();
  words("distributions at temperature", theme().dim);
  ImGui::SameLine(0, px(8));
  ImGui::SetNextItemWidth(px(160));
  ImGui::BeginDisabled(!why.empty());
  float shown = wanted > 0 ? wanted : run.started.temperature;
  if (ImGui::SliderFloat("##distributions_temperature", &shown, kLowest, kHighest, "%.2f"))
    wanted = std::clamp(shown, kLowest, kHighest);
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    tooltip(why.empty() ? "Both distributions at another temperature after the same prefix, "
                          "recomputed from the recorded ones. The sampled tokens do not change."
                        : why);
  if (!why.empty() || wanted <= 0) return;
  ImGui::SameLine(0, px(10));
  if (link("reset###distributions_reset")) wanted = 0;
}

// Returns the rejection details of the selected row's parent; without a selected row, those of all rows.
std::vector<const engine::RejectionDetail*> chosen_distributions(const Context& context,
                                                                 const engine::RunRecord& run,
                                                                 const engine::StepRecord& step) {
  std::vector<const engine::RejectionDetail*> all, chosen;
  const Place& place = context.selection.locked;
  const bool has_row = place.run == run.id() && place.step == step.begun.step && place.row >= 0 &&
                       place.row < step.drafted.tree.n_rows();
  for (const engine::RejectionDetail& w : step.verified.rejection_details) {
    if (w.row >= step.drafted.tree.n_rows()) continue;
    all.push_back(&w);
    if (has_row && step.drafted.tree.parent[place.row] == w.row) chosen.push_back(&w);
  }
  return chosen.empty() ? all : chosen;
}

void draw_distributions(Context& context) {
  const engine::RunRecord& run = *context.run();
  const ShownStep shown = shown_step(context, run);
  if (!shown.step) return empty_state("No step at the playhead.", Sketch::Histograms);
  const engine::StepRecord& step = *shown.step;
  const std::vector<Verdict> verdicts = verdicts_of(context.timeline, run, step);
  small_wrapped(
      words_of(shown) + " \xC2\xB7 " +
      (uses_rejection(run.started)
           ? "a proposal is accepted if the uniform draw is below its acceptance probability"
           : "a proposal is accepted if it equals the target's choice; no random number is drawn"));
  if (verdicts.empty())
    return wrapped("This step proposed no tokens; the target chose its token alone.", theme().dim);
  verdict_table(context, run, step, verdicts);
  const std::string gone = why_no_probabilities(run, step);
  if (!gone.empty())
    small_wrapped(gone);
  else if (const std::string why = why_no_p(run.started, step); !why.empty())
    small_wrapped(why);
  temperature_row(context, run, step);
  for (const engine::RejectionDetail* w : chosen_distributions(context, run, step)) {
    ImGui::Dummy({1, px(6)});
    distributions_after(context, run, step, *w);
  }
  if (step.verified.last_uniform >= 0)
    small_wrapped(
        fmt::format("uniform draw for the last token: {:.3f}", step.verified.last_uniform));
}

void draw_distributions_head(Context&) {
  panel_legend(kDistributionsPanel);
}

}  // namespace

const Panel kDistributionsPanel{.id = "distributions",
                                .title = "P/Q",
                                .empty = why_no_distributions,
                                .draw = draw_distributions,
                                .head = draw_distributions_head,
                                .fits = fits_distributions,
                                .instead = instead_of_distributions,
                                .help = "How the target verified the proposals of a step.",
                                .marks = kDistributionsMarks,
                                .sketch = Sketch::Histograms,
                                .names_run = true,
                                .live = Dock::Centre};

}  // namespace ui

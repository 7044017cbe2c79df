// P/Q: the probability each proposal had under both models, and what became of it.
#include "ui/panels/step/distributions.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ui/panels/live/row_cell.h"
#include "ui/panels/step/shown_step.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/tokens/distributions.h"
#include "ui/prepare/tokens/verdicts.h"
#include "ui/shell/legend.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

bool fits_distributions(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.drafts || !traits.told || (traits.proposes() && draws_numbers(run.started));
}

const char* instead_of_distributions(const engine::RunRecord& run) {
  return traits_of(run).settles() ? "trajectory" : "text";
}

std::string why_no_distributions(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const engine::RunRecord& run = *context.run();
  if (!traits_of(run).told || run.steps.empty()) return "No step yet.";
  return fits_distributions(run)
             ? ""
             : method_of(context, run) +
                   " has proposed nothing with a probability so far: that takes a draft "
                   "model, or rejection sampling.";
}

std::string number(float value, const char* none = "-") {
  return value < 0 ? none : fmt::format("{:.3f}", value);
}

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
  const bool judged = v.mean != Mean::Unused;
  const Rgb ink = judged ? theme().text : theme().dim;
  cell_words(fmt::format("{}", v.place), ink);
  ImGui::TableNextColumn();
  row_cell(context, run, step, v.row, v.mean, px(96));
  cell_words(number(v.q), ink);
  cell_words(number(v.p), ink);
  ImGui::TableNextColumn();
  bars(v.q, v.p, -1);
  cell_words(v.q > 0 && v.p >= 0 ? fmt::format("{:.2f}", v.p / v.q) : "-", ink);
  cell_words(v.words, ink);
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
  ImGui::TableSetupColumn(draws_numbers(run.started) ? "drawn, chance to keep" : "verdict",
                          ImGuiTableColumnFlags_WidthStretch, 1.6f);
  ImGui::TableHeadersRow();
  for (const Verdict& v : verdicts) verdict_row(context, run, step, v);
  ImGui::EndTable();
}

std::string omitted(const char* name, const std::vector<float>& distribution) {
  if (distribution.empty()) return "";
  const float told = std::accumulate(distribution.begin(), distribution.end(), 0.0f);
  return fmt::format(" \xC2\xB7 {} of the others {:.3f}", name, std::max(0.0f, 1 - told));
}

// One distribution as a column of figures, as recorded or at another temperature.
std::string at_place(const std::vector<Within>& of, std::size_t i) {
  return i < of.size() ? words_of(of[i]) : "-";
}

// What the rows of a distribution table are drawn from.
struct ShownDistributions {
  DistributionsAt at;     // of the temperature shown
  bool is_other = false;  // than the one recorded
  std::string words;      // "0.50"
};

void distribution_row(const engine::RejectionDetail& w,
                      const ShownDistributions& distributions,
                      std::size_t i,
                      const std::string& name,
                      bool taken) {
  const float left = i < w.residual.size() ? w.residual[i] : -1, q = i < w.q.size() ? w.q[i] : -1;
  ImGui::PushFont(fonts().mono, kMonoSize);
  cell_words(name + (taken ? "  <" : ""), taken ? theme().bright : theme().text);
  ImGui::PopFont();
  if (taken && ImGui::IsItemHovered()) tooltip("the text took this token");
  cell_words(number(q), distributions.is_other ? theme().dim : theme().text);
  cell_words(number(w.p[i]), distributions.is_other ? theme().dim : theme().text);
  if (distributions.is_other) {
    cell_words(at_place(distributions.at.q.of, i), theme().text);
    cell_words(at_place(distributions.at.p.of, i), theme().text);
  } else {
    cell_words(number(left), theme().text);
  }
  ImGui::TableNextColumn();
  const auto middle = [i](const std::vector<Within>& of) {
    return i < of.size() ? static_cast<float>(of[i].middle()) : -1.0f;
  };
  if (distributions.is_other)
    bars(middle(distributions.at.q.of), middle(distributions.at.p.of), -1);
  else
    bars(q, w.p[i], left);
}

// The distributions behind one row, of the few tokens that were told.
void distribution_table(Context& context,
                        const engine::RunRecord& run,
                        const engine::StepRecord& step,
                        const engine::RejectionDetail& w,
                        const ShownDistributions& distributions) {
  const auto name = [&](engine::TokenId id) { return cell_text(context.timeline, run, id); };
  small_label(fmt::format("behind \"{}\": {}{}{}{}", name(step.drafted.tree.token[w.row]),
                          w.residual.empty() ? "a proposal was kept" : "every proposal was refused",
                          omitted("q", w.q), omitted("p", w.p), omitted("left", w.residual)));
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
      ImGui::TableSetupColumn("left");
    }
    ImGui::TableSetupColumn(distributions.is_other ? ("q, p at " + distributions.words).c_str()
                                                   : "q, p, left from above",
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
  return fmt::format("{}: a token drawn from q is kept with chance {}, total variation {}", where,
                     words_of(distributions.kept), words_of(distributions.apart));
}

void distributions_behind(Context& context,
                          const engine::RunRecord& run,
                          const engine::StepRecord& step,
                          const engine::RejectionDetail& w) {
  const DistributionsSource source = distributions_source(context.timeline, run);
  const float asked = context.view.distributions_temperature;
  const bool is_other = asked > 0 && asked != source.temperature;
  const DistributionsAt recorded = distributions_at(source, step, w, source.temperature);
  const ShownDistributions distributions{
      is_other ? distributions_at(source, step, w, asked) : recorded, is_other,
      fmt::format("{:.2f}", asked)};
  distribution_table(context, run, step, w, distributions);
  if (!w.q.empty())
    small_label(kept_words(recorded, fmt::format("at {:.2f}, as recorded", source.temperature)));
  if (!is_other) return;
  if (!w.q.empty())
    small_label(kept_words(distributions.at, "at " + distributions.words + ", recomputed here"));
  if (const std::string out = what_is_left_out(source, distributions.at, asked); !out.empty())
    wrapped(out, theme().dim);
}

// Which temperature the distributions below are shown at.
void temperature_row(Context& context,
                     const engine::RunRecord& run,
                     const engine::StepRecord& step) {
  constexpr float kLowest = 0.05f, kHighest = 2;
  const std::string why = why_no_other_temperature(run.started, step);
  float& asked = context.view.distributions_temperature;
  ImGui::Dummy({1, px(2)});
  ImGui::AlignTextToFramePadding();
  words("distributions at temperature", theme().dim);
  ImGui::SameLine(0, px(8));
  ImGui::SetNextItemWidth(px(160));
  ImGui::BeginDisabled(!why.empty());
  float shown = asked > 0 ? asked : run.started.temperature;
  if (ImGui::SliderFloat("##distributions_temperature", &shown, kLowest, kHighest, "%.2f"))
    asked = std::clamp(shown, kLowest, kHighest);
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    tooltip(why.empty()
                ? "What both distributions would be at another temperature, behind the same text: "
                  "recomputed here from those recorded. What was drawn stays as it was."
                : why);
  if (!why.empty() || asked <= 0) return;
  ImGui::SameLine(0, px(10));
  if (link("reset###distributions_reset")) asked = 0;
}

// Behind the row that is pointed at, or its parent; else all that were weighed.
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
  if (!shown.step) return empty_state("No step at the playhead.", true);
  const engine::StepRecord& step = *shown.step;
  const std::vector<Verdict> verdicts = verdicts_of(context.timeline, run, step);
  small_label(words_of(shown) + " \xC2\xB7 " +
              (draws_numbers(run.started)
                   ? "a proposal is kept if the number drawn is below its chance"
                   : "a proposal is kept if it is the target's own choice; no number is drawn"));
  if (verdicts.empty())
    return wrapped("This step proposed nothing: the target wrote its token alone.", theme().dim);
  verdict_table(context, run, step, verdicts);
  const std::string gone = why_no_probabilities(run, step);
  if (!gone.empty())
    small_label(gone);
  else if (const std::string why = why_no_p(run.started, step); !why.empty())
    small_label(why);
  temperature_row(context, run, step);
  for (const engine::RejectionDetail* w : chosen_distributions(context, run, step)) {
    ImGui::Dummy({1, px(6)});
    distributions_behind(context, run, step, *w);
  }
  if (step.verified.last_uniform >= 0)
    small_label(fmt::format("for the last token {:.3f} was drawn", step.verified.last_uniform));
}

void draw_distributions_head(Context&) {
  legend_word("?###marks_distributions", distributions_marks());
}

}  // namespace

const Panel kDistributionsPanel{"distributions",         "P/Q",
                                why_no_distributions,    draw_distributions,
                                draw_distributions_head, fits_distributions,
                                instead_of_distributions};

}  // namespace ui

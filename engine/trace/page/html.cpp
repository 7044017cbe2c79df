#include "engine/trace/page/html.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/text.h"
#include "engine/event/drafted_by.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/timeline/repeats.h"
#include "engine/trace/page/run_figures.h"
#include "engine/trace/page/template.h"

namespace engine {
namespace {

using Json = nlohmann::ordered_json;

/// The proposed tokens of a step with their results: "a" accepted, "r" rejected, "u" unused.
Json proposals_of(const Timeline& timeline, const RunRecord& run, const StepRecord& step) {
  Json proposals = Json::array();
  const auto& fate = step.verified.fate;
  for (std::size_t row = 0; row < fate.size() && row < step.drafted.tree.token.size(); ++row) {
    const char* result = fate[row] == RowFate::Accepted   ? "a"
                         : fate[row] == RowFate::Rejected ? "r"
                         : fate[row] == RowFate::Unused   ? "u"
                                                          : nullptr;
    if (result)
      proposals.push_back({as_utf8(timeline.name_of(run, step.drafted.tree.token[row])), result});
  }
  return proposals;
}

Json steps_of(const Timeline& timeline, const RunRecord& run, bool with_proposals) {
  Json steps = Json::array();
  int total = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const StepHead head = run.steps.head(i);
    if (!head.complete) break;
    const StepEnded& e = head.ended;
    total += head.n_tokens;
    Json step{{"ms", static_cast<double>(head.begun.compute + e.propose + e.forward + e.verify +
                                         e.commit) /
                         1e6},
              {"proposed", head.n_proposed},
              {"accepted", head.n_accepted},
              {"tokens", head.n_tokens},
              {"total", total}};
    if (with_proposals && head.n_proposed > 0)
      step["guesses"] = proposals_of(timeline, run, run.steps[i]);
    steps.push_back(std::move(step));
  }
  return steps;
}

Json tokens_of(const Timeline& timeline, const RunRecord& run) {
  Json tokens = Json::array();
  for (std::size_t i = 0; i < run.tokens.size(); ++i)
    tokens.push_back({printable(timeline.generated_text(run, i, 1), LineBreaks::Kept),
                      name_of(run.tokens[i].status)});
  return tokens;
}

Json run_data(const Timeline& timeline, const RunRecord& run, bool with_proposals) {
  const RunStarted& s = run.started;
  const RunFigures f = figures_of(timeline, run);
  const PlaceInSet& place = s.place;
  const std::string repeat =
      place.n_repeats > 1 ? fmt::format("{} of {}", place.repeat + 1, place.n_repeats) : "";
  return {{"id", run.id()},
          {"race", s.race},
          {"name", printable(s.decoder)},
          {"model", f.model},
          {"prompt", printable(s.prompt, LineBreaks::Kept)},
          {"prompt_id", printable(s.prompt_id)},
          {"repeat", repeat},
          {"end", f.end},
          {"tokens_per_step", f.tokens_per_step},
          {"tokens_per_second", f.tokens_per_second},
          {"speedup", f.speedup},
          {"accepted", f.accepted},
          {"identical", f.identical},
          {"tokens", tokens_of(timeline, run)},
          {"steps", steps_of(timeline, run, with_proposals)}};
}

/// The lanes of repeated races, each with medians and quartiles over its repeats.
Json repeats_of_all(const Timeline& timeline) {
  Json lanes = Json::array();
  for (const RunRecord& run : timeline.runs()) {
    if (run.started.place.n_repeats == 1 || repeats_of(timeline, run).front() != &run) continue;
    const RepeatFigures repeated = repeat_figures(timeline, run);
    lanes.push_back({{"name", printable(run.started.decoder)},
                     {"model", figures_of(timeline, run).model},
                     {"prompt_id", printable(run.started.prompt_id)},
                     {"runs", fmt::format("{} of {}", repeated.n_done, repeated.n_all)},
                     {"tokens_per_step", spread_text(repeated.tokens_per_step, "{:.2f}")},
                     {"tokens_per_second", spread_text(repeated.tokens_per_second, "{:.1f}")},
                     {"speedup", spread_text(repeated.speedup, "{:.2f}x")}});
  }
  return lanes;
}

/// JSON text for a script element. "<" is escaped, because "</script>" would end the element.
std::string for_script(const Json& data) {
  const std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) c == '<' ? safe.append("\\u003c") : safe.append(1, c);
  return safe;
}

}  // namespace

HtmlPage html_page(const Timeline& timeline,
                   const HtmlOptions& options,
                   const std::function<void()>& before_each) {
  HtmlPage page;
  for (const bool with_proposals : {true, false}) {
    Json runs = Json::array();
    for (const RunRecord& run : timeline.runs()) {
      if (before_each) before_each();
      runs.push_back(run_data(timeline, run, with_proposals));
    }
    const Json data{
        {"title", "Decoscope recording"},
        {"about", fmt::format("{}, exported by Decoscope {}",
                              counted(std::ssize(timeline.runs()), "run"), program_version())},
        {"runs", std::move(runs)},
        {"repeats", repeats_of_all(timeline)}};
    page = {kPageBeforeData + for_script(data) + kPageAfterData, with_proposals};
    if (page.text.size() <= options.max_bytes) break;
  }
  return page;
}

}  // namespace engine

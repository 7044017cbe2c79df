#include "engine/trace/page/html.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/text.h"
#include "engine/base/types.h"
#include "engine/event/drafted_by.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/timeline/repeats.h"
#include "engine/trace/page/run_figures.h"
#include "engine/trace/page/template.h"
#include "engine/trace/settings.h"

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

/// The prompt's text, or a note in its place.
std::string prompt_of(const RunRecord& run, bool with_text) {
  return with_text ? printable(run.started.prompt, LineBreaks::Kept) : "(left out of this page)";
}

/// How much of a recording a page has.
struct Detail {
  bool prompts = false, proposals = true;
};

Json run_data(const Timeline& timeline, const RunRecord& run, Detail detail) {
  const RunStarted& s = run.started;
  const RunFigures f = figures_of(timeline, run);
  const std::string options = decoder_options(s, ", ");
  const PlaceInSet& place = s.place;
  const std::string repeat =
      place.n_repeats > 1 ? fmt::format("{} of {}", place.repeat + 1, place.n_repeats) : "";
  return {
      {"id", run.id()},
      {"race", s.race},
      {"name", printable(s.decoder)},
      {"model", f.model},
      {"settings", printable(run_settings(s) + (options.empty() ? "" : "; options: " + options))},
      {"prompt", prompt_of(run, detail.prompts)},
      {"prompt_id", printable(s.prompt_id)},
      {"repeat", repeat},
      {"end", f.end},
      {"tokens_per_step", f.tokens_per_step},
      {"tokens_per_second", f.tokens_per_second},
      {"speedup", f.speedup},
      {"accepted", f.accepted},
      {"identical", f.identical},
      {"tokens", tokens_of(timeline, run)},
      {"steps", steps_of(timeline, run, detail.proposals)}};
}

/// The lanes of repeated races, each with medians and quartiles over its repeats.
Json repeats_of_all(const Timeline& timeline) {
  Json lanes = Json::array();
  for (const RunRecord& run : timeline.runs()) {
    if (run.started.place.n_repeats == 1 || repeats_of(timeline, run).front() != &run) continue;
    const RepeatFigures repeated = repeat_figures(timeline, run);
    const RunFigures figures = figures_of(timeline, run);
    lanes.push_back({{"name", printable(run.started.decoder)},
                     {"model", figures.model},
                     {"prompt_id", printable(run.started.prompt_id)},
                     {"runs", fmt::format("{} of {}", repeated.n_done, repeated.n_all)},
                     {"tokens_per_step", spread_text(repeated.tokens_per_step, "{:.2f}")},
                     {"tokens_per_second", spread_text(repeated.tokens_per_second, "{:.1f}")},
                     {"speedup", repeated.speedup.n > 0 ? spread_text(repeated.speedup, "{:.2f}x")
                                                        : figures.speedup}});
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

/// A race or a single run, as the items of a list in the page's data.
struct PagePart {
  std::string data;  // with commas between the runs
  std::int64_t n_runs = 0;
};

/// A size in MB, rounded up to three decimals.
std::string in_mb(std::size_t n_bytes) {
  return fmt::format("{:g} MB", std::ceil(static_cast<double>(n_bytes) / 1e3) / 1e3);
}

/// The size of a page besides its runs.
std::size_t bytes_without_runs(const std::string& repeats) {
  constexpr std::size_t kRoomForWords = 512;  // the title, and the notice of omitted parts
  return std::strlen(kPageBeforeData) + std::strlen(kPageAfterData) + repeats.size() +
         kRoomForWords;
}

std::vector<PagePart> parts_of(const Timeline& timeline,
                               Detail detail,
                               const std::function<void()>& before_each) {
  std::vector<PagePart> parts;
  std::map<std::uint32_t, std::size_t> part_of_race;
  for (const RunRecord& run : timeline.runs()) {
    if (before_each) before_each();
    const std::uint32_t race = run.started.race;
    const auto [at, is_first] = part_of_race.try_emplace(race, parts.size());
    if (race == 0 || is_first) parts.emplace_back();
    PagePart& part = race == 0 ? parts.back() : parts[at->second];
    part.data += (part.n_runs++ > 0 ? "," : "") + for_script(run_data(timeline, run, detail));
  }
  return parts;
}

/// A page of those parts that fit, in order.
HtmlPage page_of(const std::vector<PagePart>& parts,
                 const std::string& repeats,
                 Detail detail,
                 const HtmlOptions& options) {
  const std::size_t n_other = bytes_without_runs(repeats);
  HtmlPage page{.has_proposals = detail.proposals};
  std::string runs;
  std::int64_t n_runs = 0;
  for (const PagePart& part : parts) {
    const bool fits =
        options.max_bytes == 0 || n_other + runs.size() + part.data.size() <= options.max_bytes;
    if (!fits) {
      page.n_left_out += part.n_runs;
      continue;
    }
    runs += (runs.empty() ? "" : ",") + part.data;
    n_runs += part.n_runs;
  }
  std::string omitted;
  if (page.n_left_out > 0) omitted = counted(page.n_left_out, "run");
  if (!page.has_proposals)
    omitted += (omitted.empty() ? "" : " and ") + std::string("the proposals of the steps");
  std::string about =
      fmt::format("{}, exported by Decoscope {}", counted(n_runs, "run"), program_version());
  if (!omitted.empty()) {
    page.notice =
        fmt::format("omitted to keep the page within {}: {}", in_mb(options.max_bytes), omitted);
    about += "; " + page.notice;
    if (!options.to_get_all.empty()) page.notice += "; " + options.to_get_all;
  }
  page.text =
      fmt::format(R"({}{{"title":"Decoscope recording","about":{},"runs":[{}],"repeats":{}}}{})",
                  kPageBeforeData, for_script(about), runs, repeats, kPageAfterData);
  return page;
}

}  // namespace

HtmlPage html_page(const Timeline& timeline,
                   const HtmlOptions& options,
                   const std::function<void()>& before_each) {
  Detail detail{.prompts = options.prompt_text};
  const std::string repeats = for_script(repeats_of_all(timeline));
  HtmlPage page = page_of(parts_of(timeline, detail, before_each), repeats, detail, options);
  if (page.n_left_out == 0) return page;
  detail.proposals = false;
  const std::vector<PagePart> parts = parts_of(timeline, detail, before_each);
  page = page_of(parts, repeats, detail, options);
  if (page.n_left_out < std::ssize(timeline.runs())) return page;
  const auto smallest =
      std::ranges::min_element(parts, {}, [](const PagePart& part) { return part.data.size(); });
  throw Error(ErrorCode::Usage,
              fmt::format("the page: found {} with the shortest race or run alone, without "
                          "proposals, expected at most {}{}",
                          in_mb(bytes_without_runs(repeats) + smallest->data.size()),
                          in_mb(options.max_bytes),
                          options.to_get_all.empty() ? "" : "; " + options.to_get_all));
}

}  // namespace engine

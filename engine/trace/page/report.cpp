#include "engine/trace/page/report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/timeline/repeats.h"
#include "engine/trace/page/run_figures.h"
#include "engine/trace/settings.h"

namespace engine {
namespace {

/// Text for a cell of a table or a line of prose: characters that Markdown would interpret are
/// escaped.
std::string in_line(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    if (std::string_view("\\`*_{}[]<>#|~").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// Text as an indented block, in which Markdown interprets nothing.
std::string as_block(std::string_view text) {
  std::string block = "    ";
  for (const char c : printable(text, LineBreaks::Kept)) {
    block += c;
    if (c == '\n') block += "    ";
  }
  return block + "\n\n";
}

char letter_of(std::size_t lane) {
  return static_cast<char>('A' + std::min<std::size_t>(lane, 25));
}

std::string heading_of(const std::vector<const RunRecord*>& lanes) {
  const RunStarted& first = lanes.front()->started;
  std::string text = first.race ? fmt::format("## Race {}", first.race)
                                : fmt::format("## Run {}", lanes.front()->id());
  if (first.place.n_repeats > 1) text += ", requested " + counted(first.place.n_repeats, "time");
  if (!first.prompt_id.empty()) text += ": " + in_line(first.prompt_id);
  return text + "\n\n";
}

// Returns a row of the table. A repeated lane shows medians and quartiles for its speeds, any other lane its own values.
std::string row_of(const Timeline& timeline, const RunRecord& run, std::size_t lane) {
  RunFigures f = figures_of(timeline, run);
  std::string n_runs = "1";
  if (run.started.place.n_repeats > 1) {
    const RepeatFigures repeated = repeat_figures(timeline, run);
    f.tokens_per_second = spread_text(repeated.tokens_per_second, "{:.1f}");
    f.tokens_per_step = spread_text(repeated.tokens_per_step, "{:.2f}");
    if (repeated.speedup.n > 0) f.speedup = spread_text(repeated.speedup, "{:.2f}x");
    n_runs = fmt::format("{} of {}", repeated.n_done, repeated.n_all);
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                     letter_of(lane), in_line(run.started.decoder), in_line(f.model), n_runs,
                     run.totals.n_tokens, run.totals.n_steps, f.tokens_per_step,
                     f.tokens_per_second, f.speedup, f.accepted, f.identical, in_line(f.end));
}

std::string load_of(const RepeatFigures& repeated) {
  std::string text =
      "\nSpeeds, tokens/step and speed-ups: median (first to third quartile) of the runs that "
      "ended "
      "by themselves. The other columns are those of the first run.";
  if (repeated.stolen_percent >= 0)
    text += fmt::format(" The hypervisor took {:.1f} % of the processors' time.",
                        repeated.stolen_percent);
  if (repeated.load_average >= 0)
    text += fmt::format(" The load average was {:.1f}.", repeated.load_average);
  return text + "\n";
}

// The user's notes on the lanes and their repeats.
std::string notes_of(const Timeline& timeline,
                     const std::vector<const RunRecord*>& lanes,
                     const ReportOptions& options) {
  std::string text;
  for (const RunRecord* lane : lanes)
    for (const RunRecord* run : repeats_of(timeline, *lane))
      if (const auto note = options.notes.find(run->id()); note != options.notes.end())
        text += fmt::format("\nNote on run {}:\n\n", run->id()) + as_block(note->second);
  return text;
}

std::string part_of(const Timeline& timeline,
                    const std::vector<const RunRecord*>& lanes,
                    const ReportOptions& options) {
  const RunStarted& first = lanes.front()->started;
  std::string text = heading_of(lanes);
  text += options.prompt_text ? "Prompt:\n\n" + as_block(first.prompt)
                              : "Prompt: left out of this report.\n\n";
  text += "Settings: " + in_line(run_settings(first)) + ".\n\n";
  text +=
      "| lane | decoder | model | runs | tokens | steps | tokens/step | tokens/s | speed-up | "
      "accepted of proposed | as plain decoding | ended by |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (std::size_t i = 0; i < lanes.size(); i++) text += row_of(timeline, *lanes[i], i);
  if (first.place.n_repeats > 1) text += load_of(repeat_figures(timeline, *lanes.front()));
  text += "\n";
  for (std::size_t i = 0; i < lanes.size(); i++) {
    const std::string given = decoder_options(lanes[i]->started, ", ");
    text +=
        fmt::format("- Options of {}: {}\n", letter_of(i), given.empty() ? "none" : in_line(given));
  }
  text += notes_of(timeline, lanes, options);
  return text + fmt::format("\nText of {}:\n\n", letter_of(0)) +
         as_block(timeline.generated_text(*lanes.front(), 0, lanes.front()->tokens.size()));
}

}  // namespace

std::string markdown_report(const Timeline& timeline,
                            const ReportOptions& options,
                            const std::function<void()>& before_each) {
  std::string text = fmt::format(
      "# Decoscope report\n\n{}, written by Decoscope {}. Times are own compute. Tokens and steps "
      "are counted; rates, speed-ups and shares are derived from measured figures.\n\n",
      counted(std::ssize(timeline.runs()), "run"), program_version());
  for (const RunRecord& run : timeline.runs()) {
    const std::uint32_t race = run.started.race;
    const std::vector<const RunRecord*> lanes =
        race ? timeline.race(race) : std::vector<const RunRecord*>{&run};
    // A repeated race is one part, at the place of its first run.
    if (lanes.front() != &run || repeats_of(timeline, run).front() != &run) continue;
    if (before_each) before_each();
    text += part_of(timeline, lanes, options);
  }
  return text;
}

}  // namespace engine

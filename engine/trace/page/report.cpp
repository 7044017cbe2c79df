#include "engine/trace/page/report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/recording/recording_format.h"
#include "engine/trace/page/run_figures.h"

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

std::string settings_of(const RunStarted& s) {
  std::string text = s.temperature > 0
                         ? fmt::format("temperature {}, top-p {}, seed {}, {} sampling",
                                       s.temperature, s.top_p, s.seed, in_line(s.sampling))
                         : "greedy";
  if (s.repetition_penalty != 1) text += fmt::format(", penalty {}", s.repetition_penalty);
  return text + fmt::format(", at most {}, prompt of {}", counted(s.max_tokens, "token"),
                            counted(std::ssize(s.prompt_tokens), "token"));
}

std::string options_of(const RunStarted& s) {
  std::string text;
  for (const auto& [name, value] : s.options)
    text += (text.empty() ? "" : ", ") + in_line(name) + "=" + in_line(value);
  return text.empty() ? "none" : text;
}

std::string part_of(const Timeline& timeline, const std::vector<const RunRecord*>& lanes) {
  const RunStarted& first = lanes.front()->started;
  std::string text =
      fmt::format("## {} {}{}\n\nPrompt:\n\n{}Settings: {}.\n\n", first.race ? "Race" : "Run",
                  first.race ? first.race : lanes.front()->id(),
                  first.prompt_id.empty() ? "" : ": " + in_line(first.prompt_id),
                  as_block(first.prompt), settings_of(first));
  text +=
      "| lane | decoder | model | tokens | steps | tokens/step | tokens/s | speed-up | accepted | "
      "as plain decoding | ended by |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | "
      "--- | --- |\n";
  for (std::size_t i = 0; i < lanes.size(); i++) {
    const RunFigures f = figures_of(timeline, *lanes[i]);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", letter_of(i),
                        in_line(lanes[i]->started.decoder), in_line(f.model),
                        lanes[i]->totals.n_tokens, lanes[i]->totals.n_steps, f.tokens_per_step,
                        f.tokens_per_second, f.speedup, f.accepted, f.identical, in_line(f.end));
  }
  text += "\n";
  for (std::size_t i = 0; i < lanes.size(); i++)
    text += fmt::format("- Options of {}: {}\n", letter_of(i), options_of(lanes[i]->started));
  return text + fmt::format("\nText of {}:\n\n", letter_of(0)) +
         as_block(timeline.generated_text(*lanes.front(), 0, lanes.front()->tokens.size()));
}

}  // namespace

std::string markdown_report(const Timeline& timeline, const std::function<void()>& before_each) {
  std::string text =
      fmt::format("# Decoscope report\n\n{}, written by Decoscope {}. Times are own compute.\n\n",
                  counted(std::ssize(timeline.runs()), "run"), program_version());
  for (const RunRecord& run : timeline.runs()) {
    const std::uint32_t race = run.started.race;
    const std::vector<const RunRecord*> lanes =
        race ? timeline.race(race) : std::vector<const RunRecord*>{&run};
    if (lanes.front() != &run) continue;
    if (before_each) before_each();
    text += part_of(timeline, lanes);
  }
  return text;
}

}  // namespace engine

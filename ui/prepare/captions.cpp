#include "ui/prepare/captions.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/drafted_by.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/time/run_times.h"

namespace ui {
namespace {

/// A caption that may be left out.
struct Candidate {
  Caption caption;
  int importance = 0;  // 0: the most
};

/// The text of a step's tokens in quotes, shortened.
std::string quoted_text(const engine::Timeline& timeline,
                        const engine::RunRecord& run,
                        const std::vector<engine::TokenId>& tokens) {
  constexpr std::size_t kMost = 60;
  std::string text = engine::printable(timeline.plain_text_of(run, tokens));
  if (text.size() > kMost) {
    std::size_t end = text.find_last_of(' ', kMost);
    if (end == std::string::npos || end == 0)  // no space: before a character
      for (end = kMost; (text[end] & 0xC0) == 0x80;) --end;
    text = text.substr(0, end) + " ...";
  }
  return "\"" + text + "\"";
}

/// The source of the first accepted proposal of a step in words.
std::string source_words(const engine::RunRecord& run, const engine::StepRecord& step) {
  const engine::Committed& c = step.committed;
  for (std::size_t i = 0; i < c.tokens.size() && i < c.status.size() && i < c.origin.size(); ++i) {
    const std::string by = engine::drafted_by(run.started.decoder, c.status[i], c.origin[i]);
    if (by == "none" || by == "bonus") continue;
    if (by == "draft") return "the draft model proposed";
    if (by.starts_with("head")) return "the heads proposed";
    if (by == "pool") return "found in the n-gram pool";
    if (by == "guess") return "guessed in parallel";
    if (by == "successors") return "found in the table of successors";
    return "copied from " + (by == "earlier" ? "an earlier run" : "the " + by);
  }
  return "proposed";
}

const char* tokens_word(int n) {
  return n == 1 ? "token" : "tokens";
}

void add_steps(const engine::Timeline& timeline,
               const CaptionLane& lane,
               std::vector<Candidate>& to) {
  const RunTimes& times = *lane.times;
  std::optional<std::size_t> accepted, rejected, longest;
  for (std::size_t i = 0; i < times.steps.size(); ++i) {
    const StepSpan& step = times.steps[i];
    if (step.n_accepted > 0 && !accepted) accepted = i;
    if (step.n_rejected > 0 && !rejected) rejected = i;
    if (step.n_tokens > 1 && (!longest || step.n_tokens > times.steps[*longest].n_tokens))
      longest = i;
  }
  const auto record = [&](std::size_t i) {
    return engine::StepRecord(lane.run->steps[static_cast<std::size_t>(times.steps[i].step)]);
  };
  if (accepted) {
    const StepSpan& step = times.steps[*accepted];
    to.push_back({{step.compute1, fmt::format("{}: the model accepts {} {} that {}.", lane.name,
                                              step.n_accepted, tokens_word(step.n_accepted),
                                              source_words(*lane.run, record(*accepted)))},
                  1});
  }
  if (longest && longest != accepted) {
    const engine::StepRecord step = record(*longest);
    to.push_back(
        {{times.steps[*longest].compute1,
          fmt::format("{}: {} tokens in one step: {}.", lane.name, times.steps[*longest].n_tokens,
                      quoted_text(timeline, *lane.run, step.committed.tokens))},
         2});
  }
  if (rejected)
    to.push_back({{times.steps[*rejected].compute1,
                   fmt::format("{}: a proposal is rejected; the model's own token takes its place, "
                               "so the text stays the same.",
                               lane.name)},
                  3});
}

/// True if all lanes have the same tokens.
bool agree(std::span<const CaptionLane> lanes) {
  return std::ranges::all_of(lanes, [&](const CaptionLane& lane) {
    return std::ranges::equal(lane.run->tokens, lanes.front().run->tokens, {},
                              &engine::TokenRecord::id, &engine::TokenRecord::id);
  });
}

}  // namespace

std::vector<Caption> captions_of(const engine::Timeline& timeline,
                                 std::span<const CaptionLane> lanes,
                                 double least_gap) {
  std::vector<Candidate> found;
  double end = 0;
  for (const CaptionLane& lane : lanes) {
    if (lane.times->steps.empty()) continue;
    add_steps(timeline, lane, found);
    const double done = lane.times->end_compute();
    const std::optional<double> speedup = timeline.speedup(*lane.run);
    const bool is_plain = lane.run->totals.n_proposed == 0;
    std::string text =
        fmt::format("{} is done: {:.2f} tokens a step", lane.name, lane.run->tokens_per_step());
    if (speedup && !is_plain)
      text += fmt::format(", {:.2f} times as fast as plain decoding", *speedup);
    found.push_back({{done, text + "."}, 0});
    end = std::max(end, done);
  }
  if (found.empty()) return {};
  const bool same = lanes.size() > 1 && agree(lanes);
  found.push_back({{0, lanes.size() > 1 ? "All lanes answer the same message. Each gets the same "
                                          "compute; plain decoding computes one token a step."
                                        : "One lane answers."},
                   -1});
  if (same) {
    Candidate& last = found.emplace_back();
    last.caption.at = end + std::max(least_gap, 1.0);
    last.caption.text = "All texts are the same, token for token.";
    last.importance = -1;
  }
  std::ranges::stable_sort(found, {}, &Candidate::importance);
  std::vector<Caption> kept;
  for (Candidate& one : found) {
    const auto is_near = [&](const Caption& other) {
      return std::abs(other.at - one.caption.at) < least_gap;
    };
    if (one.importance >= 0 && std::ranges::any_of(kept, is_near)) continue;
    kept.push_back(std::move(one.caption));
  }
  std::ranges::sort(kept, {}, &Caption::at);
  return kept;
}

const std::string& caption_at(std::span<const Caption> captions, double at) {
  static const std::string kNone;
  const auto after = std::ranges::upper_bound(captions, at, {}, &Caption::at);
  return after == captions.begin() ? kNone : std::prev(after)->text;
}

}  // namespace ui

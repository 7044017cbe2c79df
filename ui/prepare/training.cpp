#include "ui/prepare/training.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/recording/training_history.h"
#include "engine/event/timeline/trajectory.h"
#include "ui/prepare/figure.h"
#include "ui/prepare/status.h"
#include "ui/prepare/tokens/line_feeds.h"

namespace ui {
namespace {

using engine::TrainingHistory;
using engine::TrainingReport;
using engine::TrainingStage;

// After this many seconds without a report the status gives possible causes; steps and probes of small models take less.
constexpr double kLongSilence = 120;

double on_axis(const TrainingReport& report, TrainingAxis axis) {
  switch (axis) {
    case TrainingAxis::Steps:
      return static_cast<double>(report.step);
    case TrainingAxis::Tokens:
      return static_cast<double>(report.tokens);
    case TrainingAxis::Minutes:
      break;
  }
  return report.seconds / 60;
}

Curve& curve_named(std::vector<Curve>& curves, const std::string& name) {
  const auto found = std::ranges::find(curves, name, &Curve::name);
  if (found != curves.end()) return *found;
  return curves.emplace_back(Curve{name, {}, {}});
}

// Skips values whose x does not increase: a file may contain tokens or seconds that decrease.
void add_to(Curve& curve, double x, double y) {
  if (!curve.x.empty() && !(x > curve.x.back())) return;
  curve.x.push_back(x);
  curve.y.push_back(y);
}

// Returns true if the values of a probe are shares: "accuracy", "head 1 top-1".
bool is_share(const std::string& probe) {
  return probe.starts_with("accuracy") || probe.find("top-") != std::string::npos;
}

std::string ago(double seconds) {
  return seconds < 1 ? "now" : duration_words(seconds) + " ago";
}

std::string stage_words(const TrainingHistory& history) {
  switch (history.stage) {
    case TrainingStage::NotBegun:
      return "no report yet";
    case TrainingStage::WritingTexts:
      return "the target writes the training texts";
    case TrainingStage::Collecting:
      return "collecting the target's answers";
    case TrainingStage::Measuring:
      return "evaluating the target before training";
    case TrainingStage::Training:
      return fmt::format("training, step {}", with_commas(history.reports.back().step));
    case TrainingStage::Written:
      break;
  }
  return "finished, weights written";
}

std::span<const engine::TokenId> ends_at(const engine::ProbeTrajectory& probe, std::size_t block) {
  // Passes the end tokens for the last block only. As in the reference implementation, no other
  // block can contain one.
  if (block + 1 < probe.blocks.size()) return {};
  return probe.end_ids;
}

}  // namespace

TrainingCurves curves_of(const TrainingHistory& history, TrainingAxis axis) {
  TrainingCurves curves;
  curves.losses.push_back({"loss", {}, {}});
  curves.speed.push_back({"tokens / s", {}, {}});
  curves.lr.push_back({"learning rate", {}, {}});
  curves.norm.push_back({"gradient norm", {}, {}});
  for (const TrainingReport& report : history.reports) {
    const double x = on_axis(report, axis);
    add_to(curves.losses.front(), x, report.loss);
    add_to(curves.speed.front(), x, report.tokens_per_second);
    add_to(curves.lr.front(), x, report.lr);
    add_to(curves.norm.front(), x, report.gradient_norm);
    for (const auto& [name, value] : report.losses)
      add_to(curve_named(curves.losses, short_name(name)), x, value);
    for (const auto& [name, value] : report.probes)
      add_to(curve_named(is_share(name) ? curves.shares : curves.counts, name), x, value);
  }
  // If the loss has one part, that part equals the loss; keep one curve.
  if (curves.losses.size() == 2 && curves.losses[0].y == curves.losses[1].y)
    curves.losses.erase(curves.losses.begin());
  return curves;
}

TrainingStatus status_of(const TrainingHistory& history) {
  TrainingStatus status{.words = stage_words(history), .silence = {}};
  status.is_over = history.stage == TrainingStage::Written;
  if (status.is_over) {
    status.share = 1;
    return status;
  }
  const bool trains = history.stage == TrainingStage::Training;
  if (trains) {
    const TrainingReport& last = history.reports.back();
    const double whole = last.seconds + std::max(0.0, last.seconds_left);
    if (whole > 0) status.share = last.seconds / whole;
  }
  const double silent = history.silent_seconds;
  if (silent >= 0)
    status.silence = silent < kLongSilence
                         ? "last report " + ago(silent)
                         : fmt::format("no report for {}: stopped, or {}", duration_words(silent),
                                       trains ? "a probe takes long" : "busy");
  return status;
}

std::string duration_words(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e12)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 3600) return fmt::format("{} min", whole / 60);
  if (whole < 48 * 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} days", whole / 86400);
}

std::vector<std::pair<std::string, std::string>> facts_of(const TrainingHistory& history) {
  std::vector<std::pair<std::string, std::string>> facts;
  if (history.reports.empty()) return facts;
  const TrainingReport& last = history.reports.back();
  facts.emplace_back("step", with_commas(last.step));
  facts.emplace_back("training tokens", with_commas(last.tokens));
  facts.emplace_back("training time", duration_words(last.seconds));
  if (history.stage == TrainingStage::Training)
    facts.emplace_back("time left", "about " + duration_words(last.seconds_left));
  facts.emplace_back("tokens / s",
                     with_commas(std::llround(std::clamp(last.tokens_per_second, 0.0, 1e15))));
  facts.emplace_back("learning rate", value_in_words(last.lr));
  facts.emplace_back("gradient norm", value_in_words(last.gradient_norm));
  facts.emplace_back("loss", value_in_words(last.loss));
  for (const auto& [name, value] : last.losses)
    facts.emplace_back("loss, " + short_name(name), value_in_words(value));
  const auto probed = std::find_if(history.reports.rbegin(), history.reports.rend(),
                                   [](const TrainingReport& r) { return !r.probes.empty(); });
  if (probed == history.reports.rend()) return facts;
  facts.emplace_back("last probe at step", with_commas(probed->step));
  for (const auto& [name, value] : probed->probes)
    facts.emplace_back(
        name, is_share(name) ? fmt::format("{:.1f} %", 100 * value) : value_in_words(value));
  return facts;
}

std::vector<ProbeCounts> counts_of(const TrainingHistory& history) {
  std::vector<ProbeCounts> all;
  for (const engine::ProbeTrajectory& probe : history.probes) {
    ProbeCounts counts{.step = probe.step};
    double means = 0;
    for (std::size_t b = 0; b < probe.blocks.size(); ++b) {
      const auto block = engine::count_trajectory(probe.blocks[b], ends_at(probe, b));
      counts.n_tokens += static_cast<int>(block.stationary.size());
      counts.n_iterations += block.n_iterations;
      counts.n_stationary += block.n_stationary;
      means += block.fast_forward_mean;
    }
    counts.fast_forward = means / static_cast<double>(probe.blocks.size());
    all.push_back(counts);
  }
  return all;
}

std::vector<Curve> curves_of(std::span<const ProbeCounts> counts) {
  std::vector<Curve> curves{
      {"tokens / iteration", {}, {}}, {"fast-forward", {}, {}}, {"stationary tokens", {}, {}}};
  for (const ProbeCounts& one : counts) {
    const auto step = static_cast<double>(one.step);
    add_to(curves[0], step, one.tokens_per_iteration());
    add_to(curves[1], step, one.fast_forward);
    add_to(curves[2], step, one.n_stationary);
  }
  return curves;
}

std::string piece_text(const TrainingHistory& history, engine::TokenId token) {
  const auto i = static_cast<std::size_t>(token);
  std::string text = i < history.pieces.size() ? engine::printable(history.pieces[i]) : "";
  show_line_feeds(text);
  return text.empty() ? " " : text;
}

std::string answer_text(const TrainingHistory& history, const engine::ProbeTrajectory& probe) {
  std::string text;
  for (const auto& block : probe.blocks)
    for (const engine::TokenId token : block.back()) {
      if (std::ranges::find(probe.end_ids, token) != probe.end_ids.end()) return text;
      text += piece_text(history, token);
    }
  return text;
}

std::vector<std::string> caption_forms(const std::string& app_version,
                                       const TrainingHistory& history) {
  std::vector<BarPart> parts{{"Decoscope " + app_version, 2}, {"training " + history.name, 3}};
  if (!history.reports.empty()) {
    const TrainingReport& last = history.reports.back();
    parts.push_back({fmt::format("step {}, {} tokens, {}", with_commas(last.step),
                                 with_commas(last.tokens), duration_words(last.seconds)),
                     1});
  }
  parts.push_back({truth_words(Truth::Hindsight), 0});
  return forms_of(std::move(parts));
}

}  // namespace ui

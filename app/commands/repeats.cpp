#include "app/commands/repeats.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/measure/machine_load.h"
#include "engine/base/measure/spread.h"
#include "engine/base/table.h"

namespace app {
namespace {

using engine::Spread;

/// The spreads of a lane's figures; n is 0 for a figure that no repeat has.
struct Spreads {
  Spread tokens_per_second, step_ms, tokens_per_step, speedup;
};

Spreads spreads_of(const RepeatedLane& lane) {
  const auto of = [&](double RepeatSums::*over, double RepeatSums::*under, double times) {
    std::vector<double> values;
    for (const RepeatSums& one : lane.repeats)
      if (one.*under > 0) values.push_back(times * one.*over / one.*under);
    return engine::spread_of(std::move(values));
  };
  return {of(&RepeatSums::tokens, &RepeatSums::decode_ms, 1e3),
          of(&RepeatSums::decode_ms, &RepeatSums::steps, 1),
          of(&RepeatSums::tokens, &RepeatSums::steps, 1),
          of(&RepeatSums::ar_decode_ms, &RepeatSums::whole_decode_ms, 1)};
}

nlohmann::json spread_json(const Spread& spread) {
  if (spread.n == 0) return nullptr;
  return {{"q1", spread.q1}, {"median", spread.median}, {"q3", spread.q3}};
}

nlohmann::json known_json(double value) {
  return value >= 0 ? nlohmann::json(value) : nlohmann::json(nullptr);
}

std::string spread_words(const Spread& spread, int digits) {
  if (spread.n == 0) return "-";
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", spread.median, digits, spread.q1, digits,
                     spread.q3, digits);
}

std::string known_words(double value, const char* format) {
  return value >= 0 ? fmt::format(fmt::runtime(format), value) : "-";
}

}  // namespace

void LoadOverTime::begin() {
  const engine::ProcessorTicks now = engine::processor_ticks();
  begun_total_ = now.total, begun_stolen_ = now.stolen;
}

void LoadOverTime::end() {
  const engine::ProcessorTicks now = engine::processor_ticks();
  if (begun_total_ >= 0 && now.total >= begun_total_)
    total_ += now.total - begun_total_, stolen_ += now.stolen - begun_stolen_;
  if (const double load = engine::load_average(); load >= 0) sum_of_loads_ += load, n_++;
}

double LoadOverTime::stolen_percent() const {
  return engine::stolen_percent({0, 0}, {total_, stolen_});
}

double LoadOverTime::load_average() const {
  return n_ > 0 ? sum_of_loads_ / n_ : -1;
}

void add(std::vector<RepeatSums>& sums, const std::vector<RepeatSums>& more) {
  sums.resize(std::max(sums.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); i++) {
    sums[i].tokens += more[i].tokens, sums[i].steps += more[i].steps;
    sums[i].decode_ms += more[i].decode_ms;
    sums[i].whole_decode_ms += more[i].whole_decode_ms;
    sums[i].ar_decode_ms += more[i].ar_decode_ms;
  }
}

nlohmann::json repeats_json(const RepeatedLane& lane) {
  const Spreads all = spreads_of(lane);
  return {{"n", lane.repeats.size()},
          {"tokens_per_second", spread_json(all.tokens_per_second)},
          {"step_ms", spread_json(all.step_ms)},
          {"tokens_per_step", spread_json(all.tokens_per_step)},
          {"speedup", spread_json(all.speedup)},
          {"stolen_percent", known_json(lane.stolen_percent)},
          {"load_average", known_json(lane.load_average)}};
}

std::string repeats_table(const std::vector<RepeatedLane>& lanes) {
  if (lanes.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"decoder", "tokens/s", "ms/step", "tokens/step", "speedup", "stolen", "load"}};
  for (const RepeatedLane& lane : lanes) {
    const Spreads all = spreads_of(lane);
    const int digits = all.tokens_per_second.median >= 1000 ? 0 : 1;
    rows.push_back({lane.name, spread_words(all.tokens_per_second, digits),
                    spread_words(all.step_ms, 2), spread_words(all.tokens_per_step, 2),
                    spread_words(all.speedup, 2), known_words(lane.stolen_percent, "{:.1f} %"),
                    known_words(lane.load_average, "{:.1f}")});
  }
  return fmt::format("median of {} repeats (q1 to q3)\n", lanes.front().repeats.size()) +
         engine::aligned_table(rows);
}

}  // namespace app

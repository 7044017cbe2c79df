#include "engine/run/completion.h"

namespace engine {

std::map<std::string, double> figures_of(const ScheduleTotals& totals, const RunModels& models) {
  std::map<std::string, double> figures;
  const auto ms = [&](const char* name, Nanoseconds ns) {
    figures[name] = static_cast<double>(ns) * 1e-6;
  };
  const auto count = [&](const char* name, std::int64_t n) {
    figures[name] = static_cast<double>(n);
  };
  const auto share = [&](const char* name, std::int64_t part, std::int64_t whole) {
    if (whole > 0) figures[name] = static_cast<double>(part) / static_cast<double>(whole);
  };
  ms("wall_ms", totals.wall), ms("prefill_ms", totals.prefill);
  ms("target_busy_ms", totals.target_busy), ms("draft_busy_ms", totals.draft_busy);
  count("runs", totals.n_runs), count("tokens", totals.n_tokens), count("steps", totals.n_steps);
  count("forwards", totals.n_forwards), count("proposed", totals.n_proposed);
  count("accepted", totals.n_accepted), count("rejected", totals.n_rejected);
  share("target_busy", totals.target_busy, totals.wall);
  share("acceptance_rate", totals.n_accepted, totals.n_proposed);
  share("accepted_of_verified", totals.n_accepted, totals.n_accepted + totals.n_rejected);
  share("alpha", totals.n_accepted, totals.n_depth);
  share("block_efficiency", totals.n_tokens, totals.n_steps);
  share("tokens_per_second", totals.n_tokens * 1'000'000'000, totals.wall);
  count("weight_bytes", models.target.model->weight_bytes());
  count("branch_cache_bytes", totals.branch_cache_bytes);
  count("cache_bytes", totals.cache_bytes);
  if (totals.n_depth > 0) {
    count("draft_weight_bytes", models.draft->model->weight_bytes());
    count("draft_cache_bytes", totals.draft_cache_bytes);
  }
  return figures;
}

}  // namespace engine

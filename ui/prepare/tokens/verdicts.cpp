#include "ui/prepare/tokens/verdicts.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/event/run_rules.h"
#include "engine/event/timeline/proposals.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/token_tree.h"
#include "ui/prepare/tokens/trajectory.h"
#include "ui/shell/catalog.h"

namespace ui {
namespace {

std::string drawn_words(const Verdict& v) {
  if (v.uniform < v.keep) return fmt::format("{:.3f} < {:.3f}: accepted", v.uniform, v.keep);
  const std::string rejected = fmt::format("{:.3f}, not below {:.3f}: ", v.uniform, v.keep);
  return rejected +
         (v.mean == Mean::Accepted ? "rejected, then sampled from the residual" : "rejected");
}

std::string words_for(const engine::Timeline& timeline,
                      const engine::RunRecord& run,
                      const engine::StepRecord& step,
                      const Verdict& v) {
  if (!step.has_verified) return "not yet verified";
  if (v.mean == Mean::Unused) return "not verified";
  if (v.uniform >= 0) return drawn_words(v);
  if (v.mean == Mean::Accepted)
    return uses_rejection(run.started) ? "sampled by the target: accepted"
                                       : "the target's choice: accepted";
  const int parent = step.drafted.tree.parent[v.row];
  if (parent < 0 || static_cast<std::size_t>(parent) >= step.verified.picked.size())
    return "rejected";
  return fmt::format("the target chose \"{}\"",
                     cell_text(timeline, run, step.verified.picked[parent]));
}

}  // namespace

std::vector<Verdict> verdicts_of(const engine::Timeline& timeline,
                                 const engine::RunRecord& run,
                                 const engine::StepRecord& step) {
  std::vector<Verdict> verdicts;
  const engine::TokenTree& tree = step.drafted.tree;
  for (int row = 0; row < tree.n_rows(); ++row) {
    if (!is_proposal(tree.tag[row].kind)) continue;
    Verdict v{.row = row, .place = depth_of(tree, row), .mean = fate_of(step, row)};
    v.q = engine::value_at(step.drafted.q, row);
    v.p = engine::value_at(step.verified.p, row);
    v.keep = engine::value_at(step.verified.keep, row);
    v.uniform = engine::value_at(step.verified.uniform, row);
    v.words = words_for(timeline, run, step, v);
    verdicts.push_back(std::move(v));
  }
  return verdicts;
}

bool uses_rejection(const engine::RunStarted& started) {
  return engine::rejects(started.sampling, started.temperature);
}

std::string why_not_lossless(const engine::RunStarted& started, const CatalogDecoder* decoder) {
  if (decoder && !decoder->lossless)
    return decoder->title + " does not guarantee the output of plain decoding.";
  if (engine::keeps_distribution(started.options, uses_rejection(started), started.temperature))
    return "";
  const auto verify = started.options.find("verify");
  if (verify != started.options.end() && verify->second == "typical")
    return "verify=typical accepts tokens that are likely enough instead of sampling from the "
           "target.";
  return "as_released verifies deterministic drafts with a distribution that they were not sampled "
         "from.";
}

std::string why_no_p(const engine::RunStarted& started, const engine::StepRecord& step) {
  const auto is_of_proposal = [](const engine::RowTag& tag) { return is_proposal(tag.kind); };
  if (!step.has_verified || std::ranges::none_of(step.drafted.tree.tag, is_of_proposal) ||
      std::ranges::any_of(step.verified.p, [](float p) { return p >= 0; }))
    return "";
  if (step.verified.p.empty())
    return started.draft == 0 ? "p is recorded for drafted tokens only."
                              : "p is missing: an older program made this recording.";
  return "p is not recorded: a repetition penalty or a filter (top k, top p, min p) changes the "
         "target's distribution.";
}

}  // namespace ui

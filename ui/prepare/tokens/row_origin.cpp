#include "ui/prepare/tokens/row_origin.h"

#include <fmt/format.h>

#include "engine/event/run_rules.h"
#include "engine/event/timeline/timeline.h"

namespace ui {

bool drafts_by_heads(const engine::RunRecord& run) {
  const auto& options = run.started.options;
  return options.contains("tree") && options.contains("verify");
}

Proposer proposer_of(const engine::RunRecord& run) {
  if (drafts_by_heads(run)) return Proposer::Heads;
  return engine::guesses_successors(run.started.decoder) ? Proposer::Successors : Proposer::Other;
}

std::string row_origin(engine::RowTag tag, Proposer proposer) {
  using Kind = engine::RowTag::Kind;
  switch (tag.kind) {
    case Kind::Window:
      return fmt::format("window: level {}, column {}", tag.a, tag.b);
    case Kind::Guess:
      if (proposer == Proposer::Successors)
        return fmt::format("successor: depth {}, rank {}", tag.a, tag.b);
      return fmt::format("pool: guess {}, token {}", tag.a + 1, tag.b + 1);
    case Kind::Draft:
      return fmt::format("{} {}, rank {}",
                         proposer == Proposer::Heads ? "draft head" : "draft: depth", tag.a, tag.b);
    case Kind::Block:
      return fmt::format("block: slot {}", tag.a);
    case Kind::Probe:
      return "answer probe";
    case Kind::Current:
      break;
  }
  return "the target itself";
}

}  // namespace ui

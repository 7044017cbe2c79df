#include "ui/prepare/tokens/row_origin.h"

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"

namespace ui {

bool drafts_by_heads(const engine::RunRecord& run) {
  const auto& options = run.started.options;
  return options.contains("tree") && options.contains("verify");
}

std::string row_origin(engine::RowTag tag, bool by_heads) {
  using Kind = engine::RowTag::Kind;
  switch (tag.kind) {
    case Kind::Window:
      return fmt::format("window: level {}, column {}", tag.a, tag.b);
    case Kind::Guess:
      return fmt::format("pool: guess {}, token {}", tag.a + 1, tag.b + 1);
    case Kind::Draft:
      return fmt::format("{} {}, rank {}", by_heads ? "draft head" : "draft: depth", tag.a, tag.b);
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

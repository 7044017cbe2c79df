#include "engine/event/drafted_by.h"

#include "engine/event/run_rules.h"

namespace engine {

std::string drafted_by(std::string_view decoder, TokenStatus status, const RowTag& origin) {
  if (status == TokenStatus::Bonus) return "bonus";
  if (status != TokenStatus::Accepted) return "none";
  switch (origin.kind) {
    case RowTag::Kind::Draft:
      return has_draft_heads(decoder) ? "head " + std::to_string(origin.a) : "draft";
    case RowTag::Kind::Guess:
      if (guesses_successors(decoder)) return "successors";
      return decoder == "prompt-lookup" ? "prompt" : "pool";
    case RowTag::Kind::Block:
    case RowTag::Kind::Window:
    case RowTag::Kind::Probe:
      return "guess";
    case RowTag::Kind::Current:
      break;
  }
  return "none";
}

}  // namespace engine

#include "engine/event/drafted_by.h"

#include "engine/event/run_rules.h"

namespace engine {

std::string word_of(GuessSource::Kind kind) {
  switch (kind) {
    case GuessSource::Kind::Prompt:
      return "prompt";
    case GuessSource::Kind::Text:
      return "text";
    case GuessSource::Kind::Earlier:
      return "earlier";
    case GuessSource::Kind::File:
      return "file";
    case GuessSource::Kind::None:
      break;
  }
  return "pool";
}

RowTag copied_tag(GuessSource::Kind kind, int depth) {
  return {RowTag::Kind::Guess, static_cast<std::int16_t>(-static_cast<int>(kind)),
          static_cast<std::int16_t>(depth)};
}

GuessSource::Kind copied_kind(const RowTag& tag) {
  const bool copied = tag.kind == RowTag::Kind::Guess && tag.a < 0 &&
                      tag.a >= -static_cast<int>(GuessSource::Kind::File);
  return copied ? static_cast<GuessSource::Kind>(-tag.a) : GuessSource::Kind::None;
}

const char* name_of(TokenStatus status) {
  switch (status) {
    case TokenStatus::Accepted:
      return "accepted";
    case TokenStatus::Bonus:
      return "bonus";
    case TokenStatus::Plain:
      return "plain";
    case TokenStatus::Approximate:
      return "approximate";
  }
  return "";
}

std::string drafted_by(std::string_view decoder, TokenStatus status, const RowTag& origin) {
  if (status == TokenStatus::Bonus) return "bonus";
  if (status != TokenStatus::Accepted) return "none";
  switch (origin.kind) {
    case RowTag::Kind::Draft:
      return has_draft_heads(decoder) ? "head " + std::to_string(origin.a) : "draft";
    case RowTag::Kind::Guess:
      if (guesses_successors(decoder)) return "successors";
      return decoder == "prompt-lookup" ? "prompt" : word_of(copied_kind(origin));
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

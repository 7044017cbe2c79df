#include "ui/prepare/tokens/row_origin.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/drafted_by.h"
#include "engine/event/run_rules.h"
#include "engine/event/timeline/timeline.h"

namespace ui {

const char* copied_text(engine::RowTag tag) {
  switch (engine::copied_kind(tag)) {
    case engine::GuessSource::Kind::Prompt:
      return "the prompt";
    case engine::GuessSource::Kind::Text:
      return "this text";
    case engine::GuessSource::Kind::Earlier:
      return "an earlier run";
    case engine::GuessSource::Kind::File:
      return "the file";
    case engine::GuessSource::Kind::None:
      break;
  }
  return nullptr;
}

bool drafts_by_heads(const engine::RunRecord& run) {
  const auto& options = run.started.options;
  return options.contains("tree") && options.contains("verify");
}

Proposer proposer_of(const engine::RunRecord& run) {
  if (drafts_by_heads(run)) return Proposer::Heads;
  return engine::guesses_successors(run.started.decoder) ? Proposer::Successors : Proposer::Other;
}

std::string file_words(const engine::RunRecord& run) {
  const std::string name = std::filesystem::path(run.started.pool).filename().string();
  return name.empty() ? "the file" : engine::printable(name);
}

std::string row_origin(engine::RowTag tag, Proposer proposer) {
  using Kind = engine::RowTag::Kind;
  switch (tag.kind) {
    case Kind::Window:
      return fmt::format("window: level {}, column {}", tag.a, tag.b);
    case Kind::Guess:
      if (proposer == Proposer::Successors)
        return fmt::format("successor: depth {}, rank {}", tag.a, tag.b);
      if (const char* text = copied_text(tag)) return fmt::format("copied from {}", text);
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

std::string row_origin(const engine::RunRecord& run, const engine::StepRecord& step, int row) {
  if (const engine::GuessSource* source = source_of(step, row)) return source_words(*source, run);
  return row_origin(step.drafted.tree.tag[row], proposer_of(run));
}

const engine::GuessSource* source_of(const engine::StepRecord& step, int row) {
  const auto& sources = step.drafted.sources;
  if (row < 0 || static_cast<std::size_t>(row) >= sources.size()) return nullptr;
  const engine::GuessSource& source = sources[row];
  return source.kind == engine::GuessSource::Kind::None ? nullptr : &source;
}

std::string source_words(const engine::GuessSource& source, const engine::RunRecord& run) {
  using Kind = engine::GuessSource::Kind;
  switch (source.kind) {
    case Kind::Prompt:
      return fmt::format("copied from the prompt, position {}", source.pos);
    case Kind::Text:
      return fmt::format("copied from this text, position {}", source.pos);
    case Kind::Earlier:
      return fmt::format("copied from run {}, position {}", source.run, source.pos);
    case Kind::File:
      return fmt::format("copied from {}, token {}", file_words(run), source.pos);
    case Kind::None:
      break;
  }
  return "not copied";
}

std::string seen_words(const engine::GuessSource& source) {
  if (source.n_context <= 0) return {};
  return fmt::format("{} of {} times", source.n_seen, source.n_context);
}

}  // namespace ui

#include "engine/train/heads/chimera_rows.h"

#include "engine/base/types.h"

namespace engine {

ChimeraRows::ChimeraRows(const HeadsConfig& config, int max_rows)
    : of_head(static_cast<std::size_t>(config.n_heads)),
      n_heads_(config.n_heads),
      sees_committed_grams_(config.sees_committed_grams),
      max_rows_(max_rows) {}

int ChimeraRows::add_row(int at, RowView view) {
  const int row = static_cast<int>(pos.size());
  ensure(row < max_rows_, "the rows must fit into the pass");
  pos.push_back(at);
  views.push_back(view);
  return row;
}

// Adds the chain of one place. A place within the prompt has only the text's k-gram and no targets.
void ChimeraRows::add_links(const HeadsText& text, int place, int begin) {
  const bool in_text = sees_committed_grams_;
  const bool has_targets = place >= text.n_prompt - 1;
  const int n_heads = has_targets ? n_heads_ : in_text ? 1 : 0;
  const int first = static_cast<int>(links.size());
  const RowView view{in_text ? 2 * place + 2 : place + 1,
                     static_cast<std::int32_t>(pos.size()) - begin};
  for (int head = 0; head < n_heads && place + 2 + head < std::ssize(text.tokens); head++) {
    if (has_targets)
      of_head[static_cast<std::size_t>(head)].push_back(static_cast<int>(links.size()));
    const int end = place + 1 + head;
    const int row = in_text && head == 0 ? begin + 2 * place + 1 : add_row(end, view);
    links.push_back({&text, place, head, row, first, text.tokens[static_cast<std::size_t>(end)]});
  }
}

void ChimeraRows::add_text(const HeadsText& text) {
  const auto begin = static_cast<int>(pos.size());
  // Leaves out the states after the last place, because no chain attends to them.
  const int n_hidden = static_cast<int>(text.tokens.size()) - 2;
  for (int i = 0; i < n_hidden; i++) {
    states.push_back({&text, i, add_row(i, {})});
    if (sees_committed_grams_) add_row(i + 1, {});
  }
  for (int place = 0; place < n_hidden; place++) add_links(text, place, begin);
  segments.push_back({begin, static_cast<std::int32_t>(pos.size())});
}

void ChimeraRows::lay_out(std::span<const HeadsText> texts) {
  pos.clear();
  segments.clear();
  views.clear();
  states.clear();
  links.clear();
  for (auto& of_one : of_head) of_one.clear();
  for (const HeadsText& text : texts)
    if (text.n_places(0) > 0) add_text(text);
}

TokenId ChimeraRows::token_of(const Link& link, int back) const {
  const int at = link.end() - back;
  if (at < 0) return -1;
  // The target chose the first token of a chain, so it is the token of the text.
  if (at <= link.place + 1) return link.text->tokens[static_cast<std::size_t>(at)];
  return links[static_cast<std::size_t>(link.first + at - link.place - 1)].token;
}

void ChimeraRows::feed(int l, TokenId token) {
  const auto next = static_cast<std::size_t>(l) + 1;
  if (next < links.size() && links[next].first == links[next - 1].first) links[next].token = token;
}

}  // namespace engine

// Rows of a pass of Chimera's heads. The rows of a text form one segment of the encoder's attention:
// first the text, then a chain for every place, with one row for each head that has a target there.
//   text    h_0 g_1 h_1 g_2 .. h_{n-1} g_n at the positions of their tokens, causal. So g_{i+1}
//           attends to h_0 .. h_i and g_1 .. g_{i+1}: the 2 x 2 blocks of the published mask, each
//           causal. g_{i+1} is the input of head 0 at place i
//   chain   of place i: k-grams that end at tokens i + 2, i + 3, .., the inputs of heads 1, 2, ..;
//           attends to h_0 .. h_i, g_1 .. g_{i+1} and itself
// The rows of hidden states serve as keys and values only. If heads do not attend to committed
// k-grams, the text is h_0 .. h_{n-1} and every chain starts with its g_{i+1}.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/train/heads/pass.h"
#include "engine/train/ops/train_ops.h"

namespace engine {

/// Lays out the rows of some texts.
class ChimeraRows {
 public:
  /// A row that is a hidden state.
  struct State {
    const HeadsText* text;
    int place;  // the state after the tokens 0 to place
    int row;    // of the pass
  };
  /// The k-gram that ends at token `place + 1 + head` of its text.
  struct Link {
    const HeadsText* text;
    int place, head;
    int row;        // of the pass
    int first;      // the place's link of head 0
    TokenId token;  // the last of the k-gram
    /// Position of that token.
    int end() const { return place + 1 + head; }
    /// The target of its head.
    TokenId target() const { return text->tokens[static_cast<std::size_t>(end() + 1)]; }
  };

  /// @param max_rows  of a pass
  ChimeraRows(const HeadsConfig& config, int max_rows);

  /// Lays out these texts, which outlive the result.
  void lay_out(std::span<const HeadsText> texts);
  /// The token `back` positions before the link's own; -1 before the text.
  TokenId token_of(const Link& link, int back) const;
  /// Replaces the token of the link after link l, if its chain has one.
  void feed(int l, TokenId token);

  std::vector<std::int32_t> pos;          // [rows]
  std::vector<Segment> segments;          // one for each text
  std::vector<RowView> views;             // [rows]
  std::vector<State> states;              // in the order of rows
  std::vector<Link> links;                // the links of a place are consecutive
  std::vector<std::vector<int>> of_head;  // links of each head

 private:
  int add_row(int at, RowView view);  // @return  the row
  void add_text(const HeadsText& text);
  void add_links(const HeadsText& text, int place, int begin);

  int n_heads_;
  bool sees_committed_grams_;
  int max_rows_;
};

}  // namespace engine

// How the rows of a pass of Chimera's heads lie. Those of a text lie one behind another in one
// segment of the encoder's attention: first the text, then a chain for every place, as long as
// there are heads with a token to be asked for.
//   text    h_0 g_1 h_1 g_2 .. h_{n-1} g_n at their tokens' positions. A row sees those before it
//           and itself, so g_{i+1} sees h_0 .. h_i and g_1 .. g_{i+1}: the 2 x 2 blocks of the
//           published mask, each causal. g_{i+1} is what head 0 reads at place i
//   chain   of place i: k-grams that end at tokens i + 2, i + 3, .., for the heads behind; it sees
//           h_0 .. h_i, g_1 .. g_{i+1} and itself
// Hidden states are there as keys and values, nothing is asked of their rows. Where heads see no
// committed k-grams the text is h_0 .. h_{n-1}, and chains begin with their g_{i+1}.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/train/heads/pass.h"
#include "engine/train/ops/train_ops.h"

namespace engine {

class ChimeraRows {
 public:
  /// A hidden state that rows see.
  struct State {
    const HeadsText* text;
    int place;  // it was read up to there
    int row;    // of the pass
  };
  /// The k-gram that ends at token `place + 1 + head` of its text.
  struct Link {
    const HeadsText* text;
    int place, head;
    int row;        // of the pass
    int first;      // the place's link of head 0
    TokenId token;  // it ends with
    int end() const { return place + 1 + head; }
    /// What its head is asked for.
    TokenId asked() const { return text->tokens[static_cast<std::size_t>(end() + 1)]; }
  };

  /// @param max_rows  of a pass
  ChimeraRows(const HeadsConfig& config, int max_rows);

  /// Of these texts, which outlive what is read of them here.
  void lay_out(std::span<const HeadsText> texts);
  /// The token `back` places before the link's own; -1 before the text.
  TokenId token_of(const Link& link, int back) const;
  /// Makes a token what stands behind link l in its chain, if the chain goes on.
  void feed(int l, TokenId token);

  std::vector<std::int32_t> pos;          // [rows]
  std::vector<Segment> segments;          // a text each
  std::vector<RowView> views;             // [rows]
  std::vector<State> states;              // in the order of rows
  std::vector<Link> links;                // a place's one behind another
  std::vector<std::vector<int>> of_head;  // links of each head

 private:
  int stand(int at, RowView view);  // @return  the row
  void add_text(const HeadsText& text);
  void add_links(const HeadsText& text, int place, int begin);

  int n_heads_;
  bool sees_committed_grams_;
  int max_rows_;
};

}  // namespace engine

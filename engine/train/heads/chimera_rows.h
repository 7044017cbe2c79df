// The rows of a pass of Chimera's heads. h_i is the hidden state after token i, g_i the encoding of
// the k-gram that ends at token i. The rows of a text form one segment of the encoder's attention:
// first the rows of the text, then one chain for every place of drafting.
//   text    h_0 g_1 h_1 g_2 .. h_{n-1} g_n with causal attention, at the positions of their tokens.
//           So g_{i+1} attends to h_0 .. h_i and g_1 .. g_{i+1}. This equals the published mask of
//           2 x 2 causal blocks. Head 0 reads g_{i+1} at place i
//   chain   at place i: the k-grams that end at tokens i + 2, i + 3, .., read by heads 1, 2, .. as
//           far as they have targets. They attend to h_0 .. h_i, g_1 .. g_{i+1} and the chain
//           itself
// The encoder's output at a row of a hidden state is not used. If heads do not attend to committed
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
  /// A row whose input is a hidden state.
  struct State {
    const HeadsText* text;
    int place;  // the state is the one after tokens 0 to place
    int row;    // row of the pass
  };
  /// The k-gram that a head reads when drafting starts from the state at `place`. It ends at token
  /// `place + 1 + head` of its text.
  struct Link {
    const HeadsText* text;
    int place, head;
    int row;        // row of the pass
    int first;      // index in `links` of this place's k-gram for head 0
    TokenId token;  // last token of the k-gram
    /// Position of that token in the text.
    int end() const { return place + 1 + head; }
    /// The row, in the output matrix, of the token that the head should predict.
    std::int32_t target() const { return text->row_of(end() + 1); }
  };

  /// @param max_rows  maximum rows of a pass
  ChimeraRows(const HeadsConfig& config, int max_rows);

  /// Lays out the rows of these texts, which must outlive this object.
  void lay_out(std::span<const HeadsText> texts);
  /// The token `back` positions before the k-gram's last one; -1 before the text.
  TokenId token_of(const Link& link, int back) const;
  /// Sets the last token of k-gram l + 1 if this continues the chain of k-gram l.
  void feed(int l, TokenId token);

  std::vector<std::int32_t> pos;          // [rows]
  std::vector<Segment> segments;          // one for each text
  std::vector<RowView> views;             // [rows]
  std::vector<State> states;              // in the order of rows
  std::vector<Link> links;                // the links of a place are consecutive
  std::vector<std::vector<int>> of_head;  // [heads] indices in `links` of each head's k-grams

 private:
  int add_row(int at, RowView view);  // @return  the row
  void add_text(const HeadsText& text);
  void add_links(const HeadsText& text, int place, int begin);

  int n_heads_;
  bool sees_committed_grams_;
  int max_rows_;
};

}  // namespace engine

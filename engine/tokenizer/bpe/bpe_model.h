// Byte-pair encoding (Sennrich, Haddow, Birch 2016, arXiv:1508.07909): a word is split into
// characters, and the adjacent pair of the lowest rank is merged until no pair has a rank.
//   cost     O(n log n) for a word of n characters: a heap of candidates over a linked list
//   differs  nothing is cached from word to word
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// The texts of tokens by id, and the ids by text.
class BpeVocabulary {
 public:
  /// @param texts  [n] by id; "": no token has this id. find() returns the lowest id of a text
  explicit BpeVocabulary(std::vector<std::string> texts);
  BpeVocabulary(BpeVocabulary&&) = default;
  BpeVocabulary& operator=(BpeVocabulary&&) = default;

  /// Number of ids.
  std::size_t size() const { return texts_.size(); }
  /// The text of an id below size().
  const std::string& text(TokenId id) const { return texts_[static_cast<std::size_t>(id)]; }
  /// The id of a text; -1: none.
  TokenId find(std::string_view text) const {
    const auto at = ids_.find(text);
    return at == ids_.end() ? -1 : at->second;
  }
  /// Bytes of the longest text.
  std::size_t longest() const { return longest_; }
  /// The ids of the byte tokens "<0x00>" to "<0xFF>"; -1: missing.
  const std::vector<TokenId>& byte_tokens() const { return byte_tokens_; }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string_view, TokenId> ids_;  // views of texts_
  std::vector<TokenId> byte_tokens_;                   // [256]
  std::size_t longest_ = 0;
};

/// Merges by pairs of ids, in a hash table with open addressing.
class MergeTable {
 public:
  /// A merge of the table.
  struct Merge {
    std::uint32_t rank = 0;
    TokenId id = -1;  // of the merged token; -1: none
  };
  /// An empty table.
  MergeTable() : MergeTable(0) {}
  /// An empty table for at most n merges.
  explicit MergeTable(std::size_t n);
  /// Adds a merge, at most n in total. A pair that was added before keeps its rank.
  void add(TokenId left, TokenId right, Merge merge);
  /// The merge of a pair; its id is -1 if there is none.
  Merge find(TokenId left, TokenId right) const;

 private:
  struct Entry {
    std::uint64_t pair = 0;
    Merge merge;
  };
  std::size_t place_of(std::uint64_t pair) const;
  std::vector<Entry> entries_;  // a power of two
};

/// Rules of one model.
struct BpeRules {
  /// The pairs of tokens that can be merged, for models whose files list merges.
  MergeTable merges;
  /// [vocabulary] Ranks by id, for models whose files list no merges: two adjacent texts are merged
  /// if their concatenation is a token with a rank. Empty: `merges` is used.
  std::vector<std::uint32_t> text_ranks;
  /// Value in text_ranks of a token that no merge produces.
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;

  std::optional<TokenId>
      unknown;                 // replaces characters outside the vocabulary; none: they are dropped
  bool fuse_unknown = false;   // a run of unknown characters is one token
  bool byte_fallback = false;  // an unknown character becomes its byte tokens, if all exist
  bool ignore_merges = false;  // a word that is a token becomes that token without merging
};

/// Encodes words.
class BpeModel {
 public:
  /// @param rules  text_ranks is empty or has an element for each id
  BpeModel(BpeVocabulary vocabulary, BpeRules rules);

  /// Buffers that the words of one text share.
  struct Workspace {
    /// A part of the word, in a list linked by index.
    struct Symbol {
      TokenId id;              // -1: not a token, but may become part of one if merged by text
      std::uint32_t begin, n;  // its bytes in the word; n 0: merged into its left neighbour
      std::int32_t previous = -1, next = -1;
      MergeTable::Merge merge = {};  // with the next symbol
    };
    std::vector<Symbol> symbols;
    /// A min-heap of merges: the rank in the high 32 bits, the index of the left symbol in the low
    /// ones. An entry is outdated if the rank of that symbol's merge has changed.
    std::vector<std::uint64_t> heap;
  };

  /// Appends the ids of a word. The word must be shorter than 2 GB.
  void encode(std::string_view word, Workspace& workspace, std::vector<TokenId>& ids) const;

  /// The tokens.
  const BpeVocabulary& vocabulary() const { return vocabulary_; }

 private:
  void read_symbols(std::string_view word, Workspace& workspace) const;
  TokenId byte_token(char byte) const;
  bool has_byte_tokens(std::string_view character) const;
  MergeTable::Merge merge_of(std::string_view word,
                             const Workspace::Symbol& left,
                             const Workspace::Symbol& right) const;
  void offer(std::string_view word, std::int32_t left, Workspace& workspace) const;
  void merge_all(std::string_view word, Workspace& workspace) const;
  void append(std::string_view word, const Workspace& workspace, std::vector<TokenId>& ids) const;

  BpeVocabulary vocabulary_;
  BpeRules rules_;
};

}  // namespace engine

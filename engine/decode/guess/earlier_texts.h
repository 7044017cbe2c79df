// Texts that a decoder can copy from besides its own sequence: what earlier runs of the same model
// generated, and a file.
//   shared   by the runs of one command or of one loaded model, so all tokens are of one
//            vocabulary. A run's owner adds its text after it has ended
//   bounded  the oldest texts of runs are dropped; the file's text stays
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/decode/guess/suffix_automaton.h"
#include "engine/event/event.h"

namespace engine {

/// The text of a file (--pool), indexed by its suffixes.
struct PoolFile {
  /// @param name    of the file
  /// @param tokens  its text
  PoolFile(std::string name, std::span<const TokenId> tokens);
  std::string name;
  SuffixAutomaton index;  // of the text in pieces of some thousand tokens
};

/// The texts, indexed by their suffixes.
class EarlierTexts {
 public:
  /// @param file  null: there is none
  explicit EarlierTexts(std::shared_ptr<const PoolFile> file = nullptr) : file_(std::move(file)) {}

  /// Sets the file for later runs; null: none.
  void set_file(std::shared_ptr<const PoolFile> file) { file_ = std::move(file); }
  /// Adds the generated text of a run. If the texts of runs then have more than `max_tokens` tokens, drops
  /// the oldest of them until at most three quarters of that are left.
  /// @param sequence   prompt and generated tokens
  /// @param n_prompt   of these, tokens of the prompt
  void add(RunId run, std::span<const TokenId> sequence, std::size_t n_prompt, int max_tokens);

  /// The texts of runs; the oldest is the first.
  const SuffixAutomaton& runs() const { return runs_; }
  /// The file; null: there is none.
  const PoolFile* file() const { return file_.get(); }
  /// The source of the token with this index in runs(): the run, and the position in its sequence.
  GuessSource source_in_runs(int index) const;
  /// Number of texts of runs.
  int n_texts() const { return static_cast<int>(texts_.size()); }

 private:
  struct Text {
    RunId run = 0;
    int first_pos = 0;    // of tokens[0], in the run's sequence
    int first_index = 0;  // of tokens[0], in runs_
    std::vector<TokenId> tokens;
  };
  void index(Text& text);
  void drop_oldest(int max_tokens);

  std::deque<Text> texts_;  // oldest first
  SuffixAutomaton runs_;
  std::shared_ptr<const PoolFile> file_;
};

}  // namespace engine

// Chooses the draft tree with the most expected tokens per unit of time on this machine
// (k_config=auto, our addition).
//   tokens  from the acceptance rates of the draft's best, second best, ... token over all verified
//           nodes, at any depth
//   time    the fastest of a tree's last steps. The times of smaller trees are a lower bound for an
//           untried tree. It is tried if it would be the best one at that bound
// With exact-match verification the choice of the tree changes no token.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/decode/options.h"

namespace engine {

/// The trees that k_config=auto chooses from, by rows: chains of one to five tokens, and trees of
/// up to 28 tokens with more candidates near the root.
const std::vector<LevelCounts>& sized_trees();
/// A tree as text: "2,1,1".
std::string name_of(const LevelCounts& tree);
/// Rows of a step with such a tree, including the root.
int rows_of(const LevelCounts& tree);

/// Collects statistics of trees and chooses the next tree by them. Runs of the same draft and
/// target share one.
class TreeTuner {
 public:
  /// @param trees  at least one, none empty
  explicit TreeTuner(std::vector<LevelCounts> trees = sized_trees());

  /// Chooses the tree of the next step. @return  its index
  int choose();
  /// The tree with this index.
  const LevelCounts& tree(int place) const { return at(place).counts; }
  /// Reports the cost of a whole step with that tree, drafting included. All reports use the same
  /// unit.
  void add_cost(int place, double cost);
  /// Reports the verification of a node on the accepted path.
  /// @param n_children  its candidates, likeliest first
  /// @param kept        index of the accepted candidate; -1: none
  void add_verified(int n_children, int kept);

  /// Expected tokens of a step with that tree, including the target's own token.
  double expected_tokens(int place) const;
  /// The measured tree with the most expected tokens per time; 0 if none is measured.
  int best() const;

 private:
  static constexpr std::size_t kMaxWidth = 4;
  struct Tried {
    LevelCounts counts;
    int rows = 0;
    std::vector<double> costs = {};  // of its last steps
    std::int64_t last = 0;           // the number of the last of these steps

    bool is_known() const;
    double fastest() const;
  };

  const Tried& at(int place) const { return trees_[static_cast<std::size_t>(place)]; }
  void forget_but(int place);
  double cost(const Tried& tree) const;
  double rate(int place) const;
  double least_cost(const Tried& tree) const;
  double hopeful_rate(int place) const;

  std::vector<Tried> trees_;  // ordered by rows
  // [rank] number of verified nodes that had a candidate of this rank
  std::array<double, kMaxWidth> seen_{};
  // the number of those nodes whose candidate of this rank was accepted
  std::array<double, kMaxWidth> kept_{};
  std::int64_t n_steps_ = 0;
};

}  // namespace engine

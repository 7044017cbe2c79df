// Draft trees sized to the machine (ours, not the papers'): of the trees a draft may propose, the
// one that is expected to bring most tokens in the time its steps take here.
//   tokens  from how often the draft's best, second best, ... token was kept of the nodes judged so
//           far, whatever their depth
//   time    measured: of each tree the fastest of its last steps. A tree not tried yet is supposed
//           to cost what smaller ones say at the least, so it is tried while it could still be best
// Which tree is used changes no token where tokens are compared with the target's picks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace engine {

/// Candidates below each node, level by level, as k_config spells them.
using LevelCounts = std::vector<int>;

/// The trees that k_config=auto chooses from, by rows: chains of one to five tokens, and trees of up
/// to 28, those with more candidates where the draft is least sure of the place: next to the text.
const std::vector<LevelCounts>& sized_trees();
/// "2,1,1".
std::string name_of(const LevelCounts& tree);
/// Rows of a step with such a tree, its root among them.
int rows_of(const LevelCounts& tree);

class TreeTuner {
 public:
  /// @param trees  at least one, none empty
  explicit TreeTuner(std::vector<LevelCounts> trees = sized_trees());

  /// The tree of the next step, its place among the trees.
  int choose();
  const LevelCounts& tree(int place) const { return at(place).counts; }
  /// What a whole step with that tree took, drafting and all, in any unit: always the same.
  void took(int place, double cost);
  /// A node whose path had been kept was judged.
  /// @param n_children  candidates it had, the likeliest first
  /// @param kept        which of them was kept; -1: none
  void judged(int n_children, int kept);

  /// Tokens a step with that tree is expected to bring, the target's own included.
  double expected_tokens(int place) const;
  /// The tree of most expected tokens a time among those measured; 0 while none is.
  int best() const;

 private:
  static constexpr std::size_t kMaxWidth = 4;
  struct Tried {
    LevelCounts counts;
    int rows = 0;
    std::vector<double> costs = {};  // of its last steps
    std::int64_t last = 0;           // step of the last of them

    bool is_known() const;
    double fastest() const;
  };

  const Tried& at(int place) const { return trees_[static_cast<std::size_t>(place)]; }
  void forget_but(int place);
  double cost(const Tried& tree) const;
  double rate(int place) const;
  double least_cost(const Tried& tree) const;
  double hopeful_rate(int place) const;

  std::vector<Tried> trees_;              // by rows
  std::array<double, kMaxWidth> seen_{};  // nodes judged that had more candidates than this rank
  std::array<double, kMaxWidth> kept_{};  // of these, where the candidate of this rank was kept
  std::int64_t n_steps_ = 0;
};

}  // namespace engine

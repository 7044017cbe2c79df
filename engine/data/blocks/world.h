// The blocks world of n blocks: every state, every action, distances to a goal.
//   under[b]  the block b lies on, or kTable, or kHand
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace engine {

class BlocksWorld {
 public:
  static constexpr int kMaxBlocks = 6;
  static constexpr std::int8_t kTable = 6;
  static constexpr std::int8_t kHand = 7;

  /// In the fixed order that breaks ties between plans: kind first, then the blocks.
  enum class Kind { PickUp, Unstack, PutDown, Stack };
  struct Action {
    Kind kind;
    int block;
    int other;  ///< the block below (Unstack, Stack), else -1
  };
  struct State {
    std::array<std::int8_t, kMaxBlocks> under{};
  };
  struct Edge {
    Action action;
    int next;
  };
  using OnFact = std::pair<int, int>;  // (upper, lower)

  /// Built on the first call for this n. @param n_blocks  3..6
  static const BlocksWorld& of(int n_blocks);

  int n_blocks() const { return n_blocks_; }
  int n_states() const { return static_cast<int>(states_.size()); }
  const State& state(int id) const { return states_[id]; }
  const std::vector<Edge>& edges(int id) const { return edges_[id]; }
  /// The states with an empty hand, in which problems begin.
  const std::vector<int>& resting() const { return resting_; }

  /// Steps from each state to the nearest one in which all facts of `goal` hold. [n_states]
  std::vector<int> distances(const std::vector<OnFact>& goal) const;

  /// The shortest plan that is first in the order of actions, from `start` down `distance`.
  std::vector<Edge> plan(int start, const std::vector<int>& distance) const;

 private:
  explicit BlocksWorld(int n_blocks);
  int id_of(const State& state);
  bool clear(const State& state, int block) const;

  int n_blocks_;
  std::vector<State> states_;
  std::vector<std::vector<Edge>> edges_;
  std::vector<int> resting_;
  std::vector<int> id_of_code_;
};

}  // namespace engine

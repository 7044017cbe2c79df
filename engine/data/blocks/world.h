// The state graph of Blocksworld with n blocks: all states, all actions, distances to a goal.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace engine {

/// The states of n blocks as nodes, the actions as edges.
class BlocksWorld {
 public:
  static constexpr int kMaxBlocks = 6;
  static constexpr std::int8_t kTable = 6;  ///< in State::under
  static constexpr std::int8_t kHand = 7;   ///< in State::under

  /// Plans of equal length are ordered by the kinds of their actions in this order, then by the blocks.
  enum class Kind { PickUp, Unstack, PutDown, Stack };
  /// A move of one block.
  struct Action {
    Kind kind;
    int block;
    int other;  ///< the block below (Unstack, Stack), else -1
  };
  /// A state.
  struct State {
    std::array<std::int8_t, kMaxBlocks> under{};  ///< the block below block b, kTable or kHand
  };
  /// An action and the state it leads to.
  struct Edge {
    Action action;
    int next;  ///< id of the state
  };
  using OnFact = std::pair<int, int>;  ///< (upper block, lower block)

  /// The world of n blocks, built on the first call for this n. @param n_blocks  3..6
  static const BlocksWorld& of(int n_blocks);

  int n_blocks() const { return n_blocks_; }                         ///< 3..6
  int n_states() const { return static_cast<int>(states_.size()); }  ///< ids are 0..n_states()-1
  const State& state(int id) const { return states_[id]; }           ///< the state of that id
  /// The actions in that state.
  const std::vector<Edge>& edges(int id) const { return edges_[id]; }
  /// The states with an empty hand; problems begin in these.
  const std::vector<int>& resting() const { return resting_; }

  /// The number of actions from each state to the nearest one in which all facts of `goal` hold.
  /// [n_states]
  std::vector<int> distances(const std::vector<OnFact>& goal) const;

  /// The shortest plan from `start` to the goal, the first one in the order of actions.
  /// @param distance  distances() to the goal
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

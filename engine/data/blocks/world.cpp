#include "engine/data/blocks/world.h"

#include <algorithm>

#include "engine/base/types.h"

namespace engine {

const BlocksWorld& BlocksWorld::of(int n_blocks) {
  ensure(n_blocks >= 3 && n_blocks <= kMaxBlocks, "a blocks world must have 3 to 6 blocks");
  static const BlocksWorld three(3);
  static const BlocksWorld four(4);
  static const BlocksWorld five(5);
  if (n_blocks == 3) return three;
  if (n_blocks == 4) return four;
  if (n_blocks == 5) return five;
  static const BlocksWorld six(6);
  return six;
}

// Breadth-first search from the state with all blocks on the table, which reaches all states. Tries the
// actions in the order of Kind, so edges_ has that order.
BlocksWorld::BlocksWorld(int n_blocks)
    : n_blocks_(n_blocks), id_of_code_(std::size_t{1} << (3 * n_blocks), -1) {
  State all_on_table;
  all_on_table.under.fill(kTable);
  id_of(all_on_table);
  for (int id = 0; id < n_states(); id++) {
    const State from = states_[id];
    std::vector<Edge> edges;
    const auto move = [&](Kind kind, int block, int other, int to) {
      State next = from;
      next.under[block] = static_cast<std::int8_t>(to);
      edges.push_back({{kind, block, other}, id_of(next)});
    };
    int held = -1;
    for (int b = 0; b < n_blocks_; b++)
      if (from.under[b] == kHand) held = b;
    if (held < 0) {
      resting_.push_back(id);
      for (int b = 0; b < n_blocks_; b++)
        if (clear(from, b) && from.under[b] == kTable) move(Kind::PickUp, b, -1, kHand);
      for (int b = 0; b < n_blocks_; b++)
        if (clear(from, b) && from.under[b] < n_blocks_)
          move(Kind::Unstack, b, from.under[b], kHand);
    } else {
      move(Kind::PutDown, held, -1, kTable);
      for (int b = 0; b < n_blocks_; b++)
        if (b != held && clear(from, b)) move(Kind::Stack, held, b, b);
    }
    edges_.push_back(std::move(edges));
  }
}

int BlocksWorld::id_of(const State& state) {
  std::size_t code = 0;
  for (int b = 0; b < n_blocks_; b++) code = code * 8 + static_cast<std::size_t>(state.under[b]);
  if (id_of_code_[code] < 0) {
    id_of_code_[code] = n_states();
    states_.push_back(state);
  }
  return id_of_code_[code];
}

bool BlocksWorld::clear(const State& state, int block) const {
  if (state.under[block] == kHand) return false;
  for (int b = 0; b < n_blocks_; b++)
    if (state.under[b] == block) return false;
  return true;
}

std::vector<int> BlocksWorld::distances(const std::vector<OnFact>& goal) const {
  std::vector<int> distance(states_.size(), -1);
  std::vector<int> queue;
  queue.reserve(states_.size());
  for (int id = 0; id < n_states(); id++) {
    const bool reached = std::all_of(goal.begin(), goal.end(), [&](const OnFact& on) {
      return states_[id].under[on.first] == on.second;
    });
    if (!reached) continue;
    distance[id] = 0;
    queue.push_back(id);
  }
  // Breadth-first search from the goal: every action has an inverse, so distances are symmetric.
  for (std::size_t head = 0; head < queue.size(); head++) {
    for (const Edge& edge : edges_[queue[head]]) {
      if (distance[edge.next] >= 0) continue;
      distance[edge.next] = distance[queue[head]] + 1;
      queue.push_back(edge.next);
    }
  }
  return distance;
}

std::vector<BlocksWorld::Edge> BlocksWorld::plan(int start,
                                                 const std::vector<int>& distance) const {
  std::vector<Edge> steps;
  for (int at = start; distance[at] > 0; at = steps.back().next) {
    const auto& edges = edges_[at];
    steps.push_back(*std::find_if(edges.begin(), edges.end(), [&](const Edge& edge) {
      return distance[edge.next] == distance[at] - 1;
    }));
  }
  return steps;
}

}  // namespace engine

// The order in which waiting branches are served. A policy sees the waiting branches and picks one.
// It changes only the time at which a token is made, never the token.
//   fcfs      first come, first served: a branch waits at most for one turn of each other branch
//             (SEED, arXiv:2406.18200)
//   shortest  the branch with the fewest verified tokens: branches stay close together
//   priority  the branch that continues the most valuable state: the search gets its result first
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace engine {

/// A branch that waits for the target or for the draft.
struct Waiter {
  int branch = 0;
  int n_verified = 0;  // verified tokens since the branch began
  double value = 0;    // value of the search state that it continues; larger is better
};

/// Picks the next branch.
class Policy {
 public:
  virtual ~Policy() = default;
  /// @param waiting  not empty, in order of arrival
  /// @return  the index of the next branch in `waiting`
  virtual std::size_t next(std::span<const Waiter> waiting) const = 0;
};

/// The policy "fcfs".
class FirstComeFirstServed final : public Policy {
 public:
  std::size_t next(std::span<const Waiter> /*waiting*/) const override { return 0; }
};

/// The policy "shortest". If several branches are equal, takes the first of them.
class ShortestFirst final : public Policy {
 public:
  std::size_t next(std::span<const Waiter> waiting) const override;
};

/// The policy "priority". If several branches are equal, takes the first of them.
class HighestValueFirst final : public Policy {
 public:
  std::size_t next(std::span<const Waiter> waiting) const override;
};

/// The names of the policies: "fcfs", "shortest", "priority".
const std::vector<std::string>& policy_names();
/// Makes the policy with this name.
/// @throws ContractError  if there is none; parse_options() has checked the name
std::unique_ptr<Policy> policy_named(const std::string& name);

}  // namespace engine

// In which order branches that wait are served. A policy is a small type: it sees who waits and
// names one. No policy changes a token, only when it is made.
//   fcfs      who came first: no branch waits longer than the others take (SEED, arXiv:2406.18200)
//   shortest  the shortest verified text: the branches stay close together
//   priority  what continues the most valuable state: the search learns of it first
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
  int n_verified = 0;  // tokens since it began
  double value = 0;    // of what it continues, larger first
};

class Policy {
 public:
  virtual ~Policy() = default;
  /// @param waiting  not empty, in the order they came
  /// @return  the index of who is next
  virtual std::size_t next(std::span<const Waiter> waiting) const = 0;
};

class FirstComeFirstServed final : public Policy {
 public:
  std::size_t next(std::span<const Waiter> /*waiting*/) const override { return 0; }
};

class ShortestFirst final : public Policy {
 public:
  std::size_t next(std::span<const Waiter> waiting) const override;
};

class HighestValueFirst final : public Policy {
 public:
  std::size_t next(std::span<const Waiter> waiting) const override;
};

/// "fcfs", "shortest", "priority".
const std::vector<std::string>& policy_names();
/// @throws ContractError  if there is none of that name: the registry has checked it
std::unique_ptr<Policy> policy_named(const std::string& name);

}  // namespace engine

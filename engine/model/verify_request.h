// Requests to sample and to verify candidates by distributions that stay on the model's device.
// Only the results are copied to the host (kernels::Ops, draw and verify).
#pragma once

#include <span>
#include <vector>

#include "engine/base/types.h"
#include "kernels/ops.h"

namespace engine {

/// Candidates to verify after rows of one tree.
struct VerifyRequest {
  std::vector<kernels::VerifyNode> nodes;  // at most one for each row
  std::vector<kernels::Candidate> candidates;
  int n_rejection_tokens = 0;  // number of tokens to report for each node, if the step is recorded

  /// Adds a node; the candidates added next belong to it.
  void add(kernels::VerifyNode node) {
    node.first = static_cast<int>(candidates.size());
    node.n = 0;
    nodes.push_back(node);
  }
  /// Adds a candidate of the last node.
  /// @param uniform  in (0, 1)
  void add_candidate(TokenId token, double uniform) {
    candidates.push_back({token, uniform});
    nodes.back().n++;
  }
};

/// The results, in the order of the request.
struct VerifyResult {
  std::vector<kernels::VerifiedNode> nodes;
  std::vector<kernels::VerifiedCandidate> candidates;
  /// [nodes, n_rejection_tokens]; empty: the step is not recorded.
  std::vector<kernels::RejectionToken> rejection_tokens;
};

/// Candidates to sample after the last row of a tree, from a draft model.
struct DrawRequest {
  std::vector<double> uniforms;  // in (0, 1), one for each candidate
  bool again = false;            // true: with replacement; false: no token is drawn twice
  /// [vocab_size] device memory of the caller; receives the distribution
  double* distribution = nullptr;
};
/// The sampled candidates.
struct DrawnCandidates {
  std::vector<kernels::DrawnToken>
      tokens;          // fewer than requested if no further token has a positive probability
  double largest = 0;  // largest probability of the distribution; 0: no request
};

}  // namespace engine

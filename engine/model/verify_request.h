// What is asked of distributions that stay where a model computes: candidates drawn from them, candidates
// judged by them. Only what was found comes to the host (kernels::Ops, draw and judge).
#pragma once

#include <span>
#include <vector>

#include "engine/base/types.h"
#include "kernels/ops.h"

namespace engine {

/// What a forward is to judge behind rows of one tree.
struct VerifyRequest {
  std::vector<kernels::VerifyNode> nodes;  // a row at most once
  std::vector<kernels::Candidate> candidates;
  int n_rejection_tokens = 0;  // tokens of each node that are told of, where the step is shown

  /// The node's candidates are those added behind it.
  void add(kernels::VerifyNode node) {
    node.first = static_cast<int>(candidates.size());
    node.n = 0;
    nodes.push_back(node);
  }
  void add_candidate(TokenId token, double uniform) {
    candidates.push_back({token, uniform});
    nodes.back().n++;
  }
};

/// What was found, in the order of the questions.
struct VerifyResult {
  std::vector<kernels::VerifiedNode> nodes;
  std::vector<kernels::VerifiedCandidate> candidates;
  std::vector<kernels::RejectionToken>
      rejection_tokens;  // [nodes, n_weighed]; empty: the step is not shown
};

/// What a draft's forward is to draw behind the last row of a tree.
struct DrawRequest {
  std::vector<double> uniforms;  // in (0, 1), one for each candidate
  bool again = false;            // each is drawn from all of the distribution; else none twice
  double* distribution =
      nullptr;  // [vocab_size] in the device's memory, the caller's: becomes the distribution
};
struct DrawnCandidates {
  std::vector<kernels::DrawnToken> tokens;  // fewer than asked for where no more are possible
  double largest = 0;  // probability of the distribution; 0: nothing was asked for
};

}  // namespace engine

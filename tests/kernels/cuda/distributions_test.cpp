// Sampling and verification by distributions on CUDA devices, against double loops over
// kernels::filtered_distribution().
#include <limits>
#include <numeric>
#include <optional>

#include "kernels/sampling.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

using DistributionOf = std::vector<double>;
// The error of 1,000 terms summed in another order, and of exp's last bit.
constexpr double kRounding = 1e-13;

double sum_of(const DistributionOf& distribution) {
  return std::accumulate(distribution.begin(), distribution.end(), 0.0);
}
bool scaled_to_one(DistributionOf& distribution) {
  const double sum = sum_of(distribution);
  for (double& p : distribution) p /= sum > 0 ? sum : 1;
  return sum > 0;
}
int drawn_of(const DistributionOf& distribution, double u) {
  double below = 0, target = u * sum_of(distribution);
  int last = -1;
  for (int v = 0; v < int(distribution.size()); v++) {
    if (distribution[v] <= 0) continue;
    last = v;
    below += distribution[v];
    if (target < below) break;
  }
  return last;
}

struct Verdict {
  int kept = -1, token = -1;
  std::vector<double> chance;
  DistributionOf left;
};

double naive_threshold(const DistributionOf& distribution, const VerifyNode& node) {
  double entropy = 0;
  for (const double p : distribution) entropy -= p > 0 ? p * std::log(p) : 0;
  return std::min(node.epsilon, node.delta * std::exp(-entropy));
}
double naive_overlap(const DistributionOf& p, const DistributionOf& q, double rho) {
  double beta = 0;
  for (std::size_t v = 0; v < p.size(); v++) beta += std::min(q[v], p[v] / rho);
  return beta;
}
/// SpecTr's factor, and the share of min(q, p / rho) that is subtracted from p after k rejections.
std::pair<double, double> naive_k_seq(const DistributionOf& p, const DistributionOf& q, int k) {
  const auto any = [&](double rho) {
    return 1 - std::pow(1 - std::min(1.0, naive_overlap(p, q, rho)), k);
  };
  const auto valid = [&](double rho) { return any(rho) <= rho * naive_overlap(p, q, rho); };
  double low = 1, high = k;
  if (k <= 1 || valid(1)) high = 1;
  for (int i = 0; i < 40 && high > 1; i++) {
    const double middle = (low + high) / 2;
    (valid(middle) ? high : low) = middle;
  }
  const double beta = naive_overlap(p, q, high);
  return {high, beta > 0 ? any(high) / beta : 0};
}

Verdict naive_verdict(const DistributionOf& distribution,
                      const std::optional<DistributionOf>& asked_q,
                      const VerifyNode& node,
                      const std::vector<Candidate>& all) {
  Verdict verdict{.chance = std::vector<double>(node.n, -1), .left = distribution};
  const std::vector<Candidate> own(all.begin() + node.first, all.begin() + node.first + node.n);
  DistributionOf& left = verdict.left;
  DistributionOf q = asked_q.value_or(DistributionOf(distribution.size()));
  const bool certain =
      !asked_q && node.rule != AcceptanceRule::Naive && node.rule != AcceptanceRule::Typical;
  const auto [rho, share] = node.rule == AcceptanceRule::KSeq && asked_q
                                ? naive_k_seq(left, q, node.n)
                                : std::pair(1.0, 0.0);
  int n_drawn = 0;
  for (int i = 0; i < node.n && verdict.kept < 0 && node.rule != AcceptanceRule::Naive; i++) {
    const int x = own[i].token;
    if (node.rule == AcceptanceRule::Typical) {
      verdict.chance[i] = distribution[x] > naive_threshold(distribution, node);
      continue;
    }
    if (certain && left[x] <= 0) continue;
    verdict.chance[i] = std::min(1.0, certain ? left[x] : left[x] / (rho * q[x]));
    if (own[n_drawn++].uniform < verdict.chance[i]) verdict.kept = i;
    if (verdict.kept >= 0 || (node.rule == AcceptanceRule::KSeq && !certain)) continue;
    for (std::size_t v = 0; v < left.size(); v++)
      left[v] = certain ? (int(v) == x ? 0 : left[v]) : std::max(0.0, left[v] - q[v]);
    if (!scaled_to_one(left)) verdict.kept = i;
    if (node.rule == AcceptanceRule::Without && !certain) {
      q[x] = 0;
      if (!scaled_to_one(q)) break;
    }
  }
  if (node.rule == AcceptanceRule::KSeq && !certain && verdict.kept < 0) {
    for (std::size_t v = 0; v < left.size(); v++)
      left[v] = std::max(0.0, left[v] - share * std::min(q[v], left[v] / rho));
    if (!scaled_to_one(left)) verdict.kept = node.n - 1;
  }
  if (verdict.kept >= 0) {
    verdict.token = own[verdict.kept].token;
    return verdict;
  }
  const auto best = std::ranges::max_element(left);
  const double least = naive_threshold(distribution, node);
  if (node.choice == ResidualChoice::Typical && *best > least)
    for (double& p : left) p = p > least ? p : 0;
  verdict.token = node.choice == ResidualChoice::Argmax ? int(best - left.begin())
                                                        : drawn_of(left, node.uniform);
  return verdict;
}

/// Nodes over rows of two models' logits, with every filter in turn.
struct Scene {
  int n_valid = 0, stride = 0;
  std::vector<float> target, draft;  // [kRows, stride]
  std::vector<PickRow> rows;         // [nodes]
  std::vector<DrawNode> drawing;
  std::vector<double> uniforms;
  std::vector<VerifyNode> verifying;
  std::vector<Candidate> candidates;  // [uniforms]; the drawn tokens

  DistributionOf distribution(const std::vector<float>& logits, int node) const {
    const auto begin = logits.begin() + std::ptrdiff_t(verifying[node].row) * stride;
    return filtered_distribution(std::vector<float>(begin, begin + n_valid), n_valid, rows[node]);
  }
};
constexpr int kRows = 5, kWidth = 3;
const std::vector<std::int32_t> kHistory = {3, 3, 50, 7, 29, 0, 5000};

Scene scene_of(int n_valid, int n_nodes, std::uint32_t seed) {
  Scene scene;
  scene.n_valid = n_valid;
  scene.stride = n_valid + int(seed % 5);
  const auto n = std::size_t(kRows) * scene.stride;
  scene.target = normal_values(n, seed, 2);
  const auto noise = normal_values(n, seed + 1);
  for (std::size_t i = 0; i < n; i++) scene.draft.push_back(scene.target[i] + noise[i]);
  for (int r = 0; r < kRows; r++)  // invalid logits must be ignored
    for (int v = n_valid; v < scene.stride; v++) scene.target[r * scene.stride + v] = NAN;
  if (n_valid > 20) scene.target[11] = scene.target[12] = -std::numeric_limits<float>::infinity();
  std::mt19937 random(seed);
  const auto uniform = [&] { return (double(random()) + 0.5) * 0x1p-32; };
  for (int i = 0; i < n_nodes; i++) {
    PickRow row;
    row.temperature = i % 7 == 6 ? 0.0f : i % 2 ? 0.7f : 1.0f;
    if (i % 4 == 1) row.top_k = 1 + int(random() % n_valid);
    if (i % 4 == 2) row.top_p = 0.9f;
    if (i % 4 == 3) row.min_p = 0.05f;
    if (i % 5 == 4) {
      row.repetition_penalty = 1.3f;
      row.history = kHistory.data();
      row.n_history = int(kHistory.size());
    }
    scene.rows.push_back(row);
    const int at = int(random() % kRows), first = int(scene.uniforms.size());
    scene.drawing.push_back({.row = at, .first = first, .n = 1 + i % kWidth, .again = i / 3 % 2});
    scene.verifying.push_back(
        {.row = at, .first = first, .n = 1 + i % kWidth, .uniform = uniform()});
    for (int c = 0; c <= i % kWidth; c++) scene.uniforms.push_back(uniform());
  }
  for (std::size_t c = 0; c < scene.uniforms.size(); c++)
    scene.candidates.push_back({int(random() % n_valid), uniform()});
  return scene;
}

/// Memory for as many distributions as a scene has nodes.
class DeviceDistributions {
 public:
  DeviceDistributions(Device& device, Scene& scene) : n_(scene.n_valid) {
    for (DrawNode& node : scene.drawing) {
      all_.emplace_back(device, std::size_t(n_) * 8, 8);
      node.distribution = static_cast<double*>(all_.back().data());
    }
  }
  DistributionOf read(int node) const {
    DistributionOf distribution(n_);
    all_[node].read(distribution.data());
    return distribution;
  }

 private:
  int n_;
  std::vector<DeviceMemory> all_;
};

struct DrawnOnDevice {
  std::vector<Drawn> nodes;
  std::vector<DrawnToken> tokens;
};
DrawnOnDevice draw_on_device(Device& device, const Scene& scene) {
  const DeviceFloats logits(device, scene.draft);
  DrawnOnDevice drawn;
  drawn.nodes.resize(scene.drawing.size());
  drawn.tokens.resize(scene.uniforms.size());
  device.ops().draw(device, logits.data(), scene.stride, scene.stride, scene.n_valid,
                    scene.rows.data(), scene.drawing.data(), int(scene.drawing.size()),
                    scene.uniforms.data(), drawn.nodes.data(), drawn.tokens.data());
  return drawn;
}

struct VerifiedOnDevice {
  std::vector<VerifiedNode> nodes;
  std::vector<VerifiedCandidate> candidates;
  std::vector<RejectionToken> rejection_tokens;
};
VerifiedOnDevice verify_on_device(Device& device, const Scene& scene, int n_rejection_tokens = 0) {
  const DeviceFloats logits(device, scene.target);
  VerifiedOnDevice verified;
  verified.nodes.resize(scene.verifying.size());
  verified.candidates.resize(scene.candidates.size());
  verified.rejection_tokens.resize(scene.verifying.size() * n_rejection_tokens);
  device.ops().verify(device, logits.data(), scene.stride, scene.stride, scene.n_valid,
                      scene.rows.data(), scene.verifying.data(), int(scene.verifying.size()),
                      scene.candidates.data(), int(scene.candidates.size()), verified.nodes.data(),
                      verified.candidates.data(), n_rejection_tokens,
                      verified.rejection_tokens.data());
  return verified;
}
/// Sets the candidates to the drawn tokens; a node has as many as were drawn.
void propose_drawn(Scene& scene, const DrawnOnDevice& drawn) {
  for (std::size_t i = 0; i < scene.verifying.size(); i++) {
    scene.verifying[i].n = drawn.nodes[i].n;
    scene.verifying[i].q = scene.drawing[i].distribution;
    for (int c = 0; c < drawn.nodes[i].n; c++)
      scene.candidates[scene.verifying[i].first + c].token =
          drawn.tokens[scene.verifying[i].first + c].id;
  }
}

struct DistributionsCase {
  std::string device;
  int n_valid;
};
std::vector<DistributionsCase> distributions_cases() {
  std::vector<DistributionsCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const int n_valid : {1, 2, 7, 33, 300, 1021}) all.push_back({device, n_valid});
  return all;
}
std::string name_of_distributions_case(const ::testing::TestParamInfo<DistributionsCase>& info) {
  return as_test_name(info.param.device + "_" + std::to_string(info.param.n_valid));
}

class CudaDistributions : public ::testing::TestWithParam<DistributionsCase> {};

TEST_P(CudaDistributions, are_sampled_on_the_device) {
  const auto& [name, n_valid] = GetParam();
  const OpenedCuda device(name);
  Scene scene = scene_of(n_valid, 14, std::uint32_t(n_valid));
  const DeviceDistributions distributions(*device, scene);
  const DrawnOnDevice drawn = draw_on_device(*device, scene);
  for (int i = 0; i < int(scene.drawing.size()); i++) {
    SCOPED_TRACE("node " + std::to_string(i));
    const DrawNode& node = scene.drawing[i];
    const DistributionOf distribution = scene.distribution(scene.draft, i),
                         there = distributions.read(i);
    for (int v = 0; v < n_valid; v++) ASSERT_NEAR(there[v], distribution[v], kRounding) << v;
    ASSERT_NEAR(drawn.nodes[i].largest, *std::ranges::max_element(distribution), kRounding);
    ASSERT_EQ(drawn.nodes[i].bad_index, -1);
    DistributionOf left = distribution;
    int n = 0;
    for (; n < node.n && sum_of(left) > 0; n++) {
      const DrawnToken& token = drawn.tokens[node.first + n];
      ASSERT_EQ(token.id, drawn_of(left, scene.uniforms[node.first + n]));
      ASSERT_NEAR(token.p, distribution[token.id], kRounding);
      if (!node.again) left[token.id] = 0;
    }
    ASSERT_EQ(drawn.nodes[i].n, n);
  }
}

class CudaVerify : public CudaDistributions {
 protected:
  static void expect_naive(Device& device,
                           const Scene& scene,
                           const DeviceDistributions* distributions) {
    const VerifiedOnDevice verified = verify_on_device(device, scene);
    for (int i = 0; i < int(scene.verifying.size()); i++) {
      SCOPED_TRACE("node " + std::to_string(i));
      const VerifyNode& node = scene.verifying[i];
      const DistributionOf distribution = scene.distribution(scene.target, i);
      const Verdict verdict = naive_verdict(
          distribution, distributions ? std::optional(distributions->read(i)) : std::nullopt, node,
          scene.candidates);
      ASSERT_EQ(verified.nodes[i].kept, verdict.kept);
      ASSERT_EQ(verified.nodes[i].token, verdict.token);
      ASSERT_NEAR(verified.nodes[i].p, distribution[verdict.token], kRounding);
      for (int c = 0; c < node.n; c++) {
        const VerifiedCandidate& found = verified.candidates[node.first + c];
        ASSERT_NEAR(found.p, distribution[scene.candidates[node.first + c].token], kRounding);
        // The residual is a scaled difference, so small parts have larger errors.
        ASSERT_NEAR(found.chance, verdict.chance[c], 1e-9) << "candidate " << c;
      }
    }
  }
};

TEST_P(CudaVerify, sampled_candidates_by_every_rule) {
  const auto& [name, n_valid] = GetParam();
  const OpenedCuda device(name);
  for (const AcceptanceRule rule : {AcceptanceRule::Without, AcceptanceRule::With,
                                    AcceptanceRule::KSeq, AcceptanceRule::Naive}) {
    SCOPED_TRACE(int(rule));
    Scene scene = scene_of(n_valid, 14, std::uint32_t(n_valid + 31 * int(rule)));
    for (DrawNode& node : scene.drawing) {
      node.again = rule != AcceptanceRule::Without;
      node.n = kWidth;
    }
    for (std::size_t i = 0; i < scene.drawing.size(); i++)
      scene.drawing[i].first = scene.verifying[i].first = kWidth * int(i);
    while (scene.uniforms.size() < kWidth * scene.drawing.size()) {
      scene.uniforms.push_back(scene.uniforms[scene.uniforms.size() / 2]);
      scene.candidates.push_back({0, scene.candidates[scene.uniforms.size() / 3].uniform});
    }
    // Mostly large uniforms, so that most candidates are rejected.
    for (Candidate& one : scene.candidates) one.uniform = 1 - one.uniform * one.uniform / 2;
    const DeviceDistributions distributions(*device, scene);
    propose_drawn(scene, draw_on_device(*device, scene));
    for (VerifyNode& node : scene.verifying) node.rule = rule;
    expect_naive(*device, scene, &distributions);
  }
}

TEST_P(CudaVerify, argmax_candidates_by_every_rule) {
  const auto& [name, n_valid] = GetParam();
  const OpenedCuda device(name);
  for (const AcceptanceRule rule :
       {AcceptanceRule::Without, AcceptanceRule::KSeq, AcceptanceRule::Naive}) {
    SCOPED_TRACE(int(rule));
    Scene scene = scene_of(n_valid, 14, std::uint32_t(n_valid + 7 * int(rule)));
    for (VerifyNode& node : scene.verifying) node.rule = rule;
    expect_naive(*device, scene, nullptr);
    // The first candidate of each node is the token of lowest probability, every further one the
    // argmax. Their uniforms are close to 0 or 1.
    for (int i = 0; i < int(scene.verifying.size()); i++) {
      const DistributionOf distribution = scene.distribution(scene.target, i);
      const auto best = std::ranges::max_element(distribution) - distribution.begin();
      const auto none = std::ranges::min_element(distribution) - distribution.begin();
      for (int c = 0; c < scene.verifying[i].n; c++) {
        Candidate& one = scene.candidates[scene.verifying[i].first + c];
        one = {int(c == 0 ? none : best), c == i % 2 ? 1e-9 : 1 - 1e-9};
      }
    }
    expect_naive(*device, scene, nullptr);
  }
}

TEST_P(CudaVerify, typical_acceptance_with_three_bonus_modes) {
  const auto& [name, n_valid] = GetParam();
  const OpenedCuda device(name);
  for (const ResidualChoice take :
       {ResidualChoice::Sample, ResidualChoice::Argmax, ResidualChoice::Typical}) {
    for (const double epsilon : {0.02, 0.9}) {
      SCOPED_TRACE(int(take));
      Scene scene = scene_of(n_valid, 14, std::uint32_t(n_valid + 3 * int(take)));
      for (std::size_t i = 0; i < scene.verifying.size(); i++) {
        VerifyNode& node = scene.verifying[i];
        node.rule = AcceptanceRule::Typical;
        node.choice = take;
        node.epsilon = epsilon;
        node.delta = i % 3 ? 0.3 : 40;  // with a large value no token passes the threshold
        if (i % 5 == 0) node.n = 0;
      }
      expect_naive(*device, scene, nullptr);
    }
  }
}

TEST_P(CudaVerify, nodes_are_batch_invariant) {
  const auto& [name, n_valid] = GetParam();
  const OpenedCuda device(name, emulation::Watch::Once);
  Scene scene = scene_of(n_valid, 12, std::uint32_t(n_valid) + 5);
  const DeviceDistributions distributions(*device, scene);
  propose_drawn(scene, draw_on_device(*device, scene));
  for (int i = 0; i < 12; i++) scene.verifying[i].rule = AcceptanceRule(i % 4);
  constexpr int kReported = 5;
  const VerifiedOnDevice all = verify_on_device(*device, scene, kReported);
  const auto expect_same = [&](const Scene& some, const std::vector<int>& which) {
    const VerifiedOnDevice found = verify_on_device(*device, some, kReported);
    for (std::size_t i = 0; i < which.size(); i++) {
      const auto from = std::size_t(which[i]);
      ASSERT_EQ(std::memcmp(&found.nodes[i], &all.nodes[from], sizeof(VerifiedNode)), 0) << from;
      ASSERT_EQ(
          std::memcmp(&found.rejection_tokens[i * kReported],
                      &all.rejection_tokens[from * kReported], kReported * sizeof(RejectionToken)),
          0);
      const VerifyNode& node = some.verifying[i];
      for (int c = node.first; c < node.first + node.n; c++)
        ASSERT_EQ(std::memcmp(&found.candidates[c], &all.candidates[c], sizeof(VerifiedCandidate)),
                  0);
    }
  };
  const auto some_of = [&](const std::vector<int>& which) {
    Scene some = scene;
    some.verifying.clear(), some.rows.clear();
    for (const int i : which) {
      some.verifying.push_back(scene.verifying[i]);
      some.rows.push_back(scene.rows[i]);
    }
    return some;
  };
  for (int i = 0; i < 12; i++) expect_same(some_of({i}), {i});
  const std::vector<int> mixed = {7, 3, 11, 0, 5};
  expect_same(some_of(mixed), mixed);
}

TEST_P(CudaVerify, reports_probabilities_of_token_candidates_and_mode) {
  const auto& [name, n_valid] = GetParam();
  const OpenedCuda device(name);
  Scene scene = scene_of(n_valid, 14, std::uint32_t(n_valid) + 9);
  const DeviceDistributions distributions(*device, scene);
  propose_drawn(scene, draw_on_device(*device, scene));
  for (int i = 0; i < 14; i++) {
    scene.verifying[i].rule = i % 2 ? AcceptanceRule::Without : AcceptanceRule::With;
    if (i % 3 == 0) scene.verifying[i].q = nullptr;
  }
  constexpr int kReported = 8;
  const VerifiedOnDevice verified = verify_on_device(*device, scene, kReported);
  for (int i = 0; i < 14; i++) {
    SCOPED_TRACE("node " + std::to_string(i));
    const VerifyNode& node = scene.verifying[i];
    const DistributionOf p = scene.distribution(scene.target, i),
                         q = node.q ? distributions.read(i) : DistributionOf(n_valid);
    const Verdict verdict =
        naive_verdict(p, node.q ? std::optional(q) : std::nullopt, node, scene.candidates);
    std::vector<int> reported{verdict.token};
    const auto add = [&](int id) {
      if (reported.size() < kReported && std::ranges::find(reported, id) == reported.end())
        reported.push_back(id);
    };
    for (int c = 0; c < node.n; c++) add(scene.candidates[node.first + c].token);
    std::vector<int> order(n_valid);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](int v) { return std::max(p[v], q[v]); });
    for (const int v : order)
      if (p[v] > 0 || q[v] > 0) add(v);
    for (int t = 0; t < kReported; t++) {
      const RejectionToken& found = verified.rejection_tokens[i * kReported + t];
      ASSERT_EQ(found.id, t < int(reported.size()) ? reported[t] : -1) << t;
      if (found.id < 0) continue;
      ASSERT_NEAR(found.p, p[found.id], 1e-7);
      ASSERT_NEAR(found.q, q[found.id], 1e-7);
      if (verdict.kept >= 0) continue;
      ASSERT_NEAR(found.residual, verdict.left[found.id], 1e-7);
    }
  }
}

TEST_P(CudaDistributions, invalid_distributions_are_named) {
  const auto& [name, n_valid] = GetParam();
  const OpenedCuda device(name);
  for (const float bad : {NAN, std::numeric_limits<float>::infinity()}) {
    Scene scene = scene_of(n_valid, 8, 3);
    const int at = n_valid / 2;
    for (std::vector<float>* logits : {&scene.draft, &scene.target})
      (*logits)[2 * scene.stride + at] = (*logits)[2 * scene.stride + n_valid - 1] = bad;
    for (int v = 0; v < n_valid; v++)
      scene.draft[3 * scene.stride + v] = scene.target[3 * scene.stride + v] =
          -std::numeric_limits<float>::infinity();
    for (int i = 0; i < 8; i++) scene.drawing[i].row = scene.verifying[i].row = i % kRows;
    const DeviceDistributions distributions(*device, scene);
    const DrawnOnDevice drawn = draw_on_device(*device, scene);
    const VerifiedOnDevice verified = verify_on_device(*device, scene, 3);
    for (int i = 0; i < 8; i++) {
      SCOPED_TRACE("node " + std::to_string(i));
      const bool is_distribution = i % kRows != 2 && i % kRows != 3;
      ASSERT_EQ(drawn.nodes[i].bad_index, i % kRows == 2 ? at : -1);
      ASSERT_EQ(drawn.nodes[i].largest > 0, is_distribution);
      ASSERT_EQ(verified.nodes[i].token >= 0, is_distribution);
      if (is_distribution) continue;
      ASSERT_EQ(drawn.nodes[i].n, 0);
      ASSERT_EQ(verified.nodes[i].kept, -1);
      ASSERT_EQ(verified.rejection_tokens[3 * i].id, -1);
    }
  }
}

// Four tokens have equal probability. The acceptance probability is 1/4 without q, and 1/2 where q
// is twice p.
TEST_P(CudaVerify, a_uniform_equal_to_the_acceptance_rate_rejects) {
  const auto& [name, n_valid] = GetParam();
  if (n_valid < 7) return;
  const OpenedCuda device(name);
  Scene scene = scene_of(n_valid, 2, 1);
  std::fill(scene.target.begin(), scene.target.end(), -std::numeric_limits<float>::infinity());
  for (int r = 0; r < kRows; r++)
    for (const int v : {1, 2, 4, 5}) scene.target[r * scene.stride + v] = 3;
  scene.draft = scene.target;
  for (int r = 0; r < kRows; r++)
    scene.draft[r * scene.stride + 1] = scene.draft[r * scene.stride + 2] = -90;
  scene.rows.assign(2, {.temperature = 1});
  const DeviceDistributions distributions(*device, scene);
  propose_drawn(scene, draw_on_device(*device, scene));
  scene.verifying[0].q = nullptr;
  scene.candidates = {{4, 0.25}, {4, 0.5}, {5, 0.5}};
  scene.verifying[1].n = 1, scene.verifying[1].first = 1;
  const VerifiedOnDevice verified = verify_on_device(*device, scene);
  EXPECT_EQ(verified.nodes[0].kept, -1);
  EXPECT_EQ(verified.candidates[0].chance, 0.25);
  EXPECT_EQ(verified.nodes[1].kept, -1);
  EXPECT_EQ(verified.candidates[1].chance, 0.5);
  scene.candidates[0].uniform = std::nextafter(0.25, 0),
  scene.candidates[1].uniform = std::nextafter(0.5, 0);
  const VerifiedOnDevice below = verify_on_device(*device, scene);
  EXPECT_EQ(below.nodes[0].kept, 0);
  EXPECT_EQ(below.nodes[1].kept, 0);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies,
                         CudaDistributions,
                         ::testing::ValuesIn(distributions_cases()),
                         name_of_distributions_case);
INSTANTIATE_TEST_SUITE_P(Vocabularies,
                         CudaVerify,
                         ::testing::ValuesIn(distributions_cases()),
                         name_of_distributions_case);

}  // namespace
}  // namespace kernels::test

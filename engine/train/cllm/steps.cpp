#include "engine/train/cllm/steps.h"

#include <algorithm>
#include <cmath>

#include "engine/train/run/run_parts.h"

namespace engine {
namespace {

constexpr int kShardRows = 1024;  // rows a shard carries through the layers at once, about

// Steps with activations of type T.
template <typename T>
class CpuCllmSteps : public CllmSteps {
 public:
  CpuCllmSteps(const CllmStart& start, int shards, Workers& workers)
      : recipe_(start.recipe),
        model_(start.model),
        target_(start.target),
        compute_(start.compute),
        rows_a_pass_(std::max(kShardRows, start.recipe.context)),
        layout_(start.model),
        state_(start.state),
        workers_(workers),
        math_(math_for<T>(start.compute)),
        weights_(start.model, layout_, state_.parameters, *math_) {
    for (int i = 0; i < shards; i++) {
      passes_.push_back(std::make_unique<TrainPass<T>>(model_, layout_, math_for<T>(compute_),
                                                       train_table(), rows_a_pass_));
      gradients_.emplace_back(static_cast<std::size_t>(layout_.n), 0.0f);
    }
    if (recipe_.frozen_teacher)
      frozen_ = std::make_unique<PackedWeights<T>>(model_, layout_, target_, *math_);
  }

  std::string name() const override {
    return std::string(name_of(compute_)) + " with " + std::to_string(passes_.size()) +
           " shards, elementwise " + train_table().name;
  }

  void refine(std::vector<GuidedRows>& segments) override;
  double update(const GuidedBatch& batch, std::int64_t step, double lr, PartSums& losses) override;
  void fetch() override {}

 private:
  std::vector<TokenId> picks_of(int shard,
                                PassRows& pass,
                                const std::vector<GuidedRows>& segments,
                                const std::vector<std::size_t>& in_pass);
  void shard_gradient(int shard, const GuidedBatch& batch, PartSums& losses);
  void pass_gradient(int shard, const GuidedBatch& batch, PassRows& pass, PartSums& losses);

  const CllmRecipe& recipe_;
  const ModelConfig& model_;
  const std::vector<float>& target_;
  Compute compute_;
  int rows_a_pass_;
  ParameterLayout layout_;
  TrainState state_;
  Workers& workers_;
  std::unique_ptr<LinearMath<T>> math_;
  PackedWeights<T> weights_;
  std::unique_ptr<PackedWeights<T>> frozen_;
  std::vector<std::unique_ptr<TrainPass<T>>> passes_;
  std::vector<std::vector<float>> gradients_;
};

template <typename T>
std::vector<TokenId> CpuCllmSteps<T>::picks_of(int shard,
                                               PassRows& pass,
                                               const std::vector<GuidedRows>& segments,
                                               const std::vector<std::size_t>& in_pass) {
  std::vector<TokenId> picks(pass.token.size());
  pass.pad(32);
  const auto n_vocab = static_cast<std::size_t>(model_.vocab_size);
  std::vector<float> logits(pass.token.size() * n_vocab);
  passes_[static_cast<std::size_t>(shard)]->forward(state_.parameters, weights_, pass.rows(),
                                                    logits);
  std::size_t row = 0;
  for (const std::size_t i : in_pass) {
    for (const std::uint8_t iterations : segments[i].iterations) {
      const auto of_row = std::span(logits).subspan(row * n_vocab, n_vocab);
      if (iterations > 0)
        picks[row] = static_cast<TokenId>(std::ranges::max_element(of_row) - of_row.begin());
      row++;
    }
  }
  return picks;
}

template <typename T>
void CpuCllmSteps<T>::refine(std::vector<GuidedRows>& segments) {
  const int n_shards = static_cast<int>(passes_.size());
  for (int iteration = 0; iteration < recipe_.fresh_iterations; iteration++) {
    workers_.run(n_shards, [&](int shard) {
      const auto send = [&](PassRows& pass, const std::vector<std::size_t>& in_pass) {
        refine_segments(segments, in_pass, picks_of(shard, pass, segments, in_pass), recipe_.loss);
      };
      in_passes(segments, shard, n_shards, rows_a_pass_, has_chains_to_refine, send);
    });
  }
}

template <typename T>
void CpuCllmSteps<T>::pass_gradient(int shard,
                                    const GuidedBatch& batch,
                                    PassRows& pass,
                                    PartSums& losses) {
  pass.pad(32);
  const std::vector<float> counted = pass.weight;
  pass.scale(batch.row_scale);
  TrainRows rows = pass.rows();
  TrainPass<T>& train = *passes_[static_cast<std::size_t>(shard)];
  std::vector<float> teacher;
  if (frozen_) {
    teacher.resize(pass.token.size() * static_cast<std::size_t>(model_.vocab_size));
    train.forward(target_, *frozen_, rows, teacher);
    rows.teacher_logits = teacher;
  }
  std::vector<float> loss(pass.token.size());
  train.forward_backward(state_.parameters, weights_, rows,
                         gradients_[static_cast<std::size_t>(shard)].data(), loss);
  for (std::size_t i = 0; i < loss.size(); i++) {
    if (pass.weight[i] != 0)
      losses[static_cast<std::size_t>(pass.part[i])] += static_cast<double>(counted[i]) * loss[i];
  }
}

// Segments are dealt to shards in turn; a shard's go through in passes, its gradient is their sum
// in that order.
template <typename T>
void CpuCllmSteps<T>::shard_gradient(int shard, const GuidedBatch& batch, PartSums& losses) {
  in_passes(batch.segments, shard, static_cast<int>(passes_.size()), rows_a_pass_, has_rows,
            [&](PassRows& pass, const auto&) { pass_gradient(shard, batch, pass, losses); });
}

template <typename T>
double CpuCllmSteps<T>::update(const GuidedBatch& batch,
                               std::int64_t step,
                               double lr,
                               PartSums& losses) {
  std::vector<PartSums> of_shards(passes_.size());
  workers_.run(static_cast<int>(passes_.size()), [&](int shard) {
    shard_gradient(shard, batch, of_shards[static_cast<std::size_t>(shard)]);
  });
  losses = {};
  for (std::size_t p = 0; p < kLossParts; p++)
    for (const PartSums& sums : of_shards) losses[p] += sums[p];
  if (!std::ranges::all_of(losses, [](double sum) { return std::isfinite(sum); }))
    return state_.optimizer.leave_out(gradients_, workers_);
  const double norm = state_.optimizer.update(state_.parameters, gradients_, step, lr, workers_);
  if (std::isfinite(norm))
    workers_.run(weights_.n_matrices(), [&](int i) { weights_.repack(i, *math_); });
  return norm;
}

}  // namespace

void PassRows::add(const GuidedRows& rows) {
  const int begin = n_rows();
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(token, rows.token);
  append(target, rows.target);
  append(weight, rows.weight);
  append(pos, rows.pos);
  append(views, rows.view);
  append(part, rows.part);
  for (RowGoal goal : rows.goal) {
    goal.teacher += begin;
    goals.push_back(goal);
  }
  segments.push_back({begin, n_rows()});
}

void PassRows::pad(int rows) {
  while (n_rows() % rows) {
    token.push_back(0);
    target.push_back(0);
    weight.push_back(0);
    pos.push_back(0);
    views.push_back({});
    goals.push_back({});
    part.push_back(LossPart::Autoregressive);
  }
}

void PassRows::scale(const std::array<float, kLossParts>& row_scale) {
  for (std::size_t i = 0; i < weight.size(); i++)
    weight[i] *= row_scale[static_cast<std::size_t>(part[i])];
}

bool has_rows(const GuidedRows& rows) {
  return rows.n_rows() > 0;
}

void in_passes(const std::vector<GuidedRows>& segments,
               int first,
               int stride,
               int most,
               bool (*wanted)(const GuidedRows&),
               const std::function<void(PassRows&, const std::vector<std::size_t>&)>& send) {
  PassRows pass;
  std::vector<std::size_t> in_pass;
  const auto send_off = [&] {
    if (in_pass.empty()) return;
    send(pass, in_pass);
    pass = {};
    in_pass.clear();
  };
  for (auto i = static_cast<std::size_t>(first); i < segments.size();
       i += static_cast<std::size_t>(stride)) {
    if (!wanted(segments[i])) continue;
    if (pass.n_rows() + segments[i].n_rows() > most) send_off();
    pass.add(segments[i]);
    in_pass.push_back(i);
  }
  send_off();
}

void refine_segments(std::vector<GuidedRows>& segments,
                     const std::vector<std::size_t>& in_pass,
                     std::span<const TokenId> picks,
                     const ConsistencyLoss& loss) {
  for (const std::size_t i : in_pass) {
    const auto n = static_cast<std::size_t>(segments[i].n_rows());
    refine_chains(segments[i], picks.first(n), loss);
    picks = picks.subspan(n);
  }
}

std::unique_ptr<CllmSteps> cpu_cllm_steps(const CllmStart& start, int shards, Workers& workers) {
  if (start.compute == Compute::F32)
    return std::make_unique<CpuCllmSteps<float>>(start, shards, workers);
  return std::make_unique<CpuCllmSteps<Bf16>>(start, shards, workers);
}

}  // namespace engine

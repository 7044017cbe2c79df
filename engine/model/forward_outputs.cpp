#include "engine/model/forward_outputs.h"
#include "engine/checkpoint/shared/output_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "kernels/sampling.h"

namespace engine {
namespace {

constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

bool has_verify_request(std::span<const BatchItem> items) {
  return std::ranges::any_of(items, [](const BatchItem& item) { return item.verify_request; });
}

}  // namespace

ForwardOutputs::ForwardOutputs(kernels::Device& device,
                               const ModelConfig& config,
                               int n_valid,
                               std::span<const TokenId> output_tokens,
                               std::string name,
                               kernels::DType dtype)
    : device_(device),
      ops_(device.ops()),
      n_valid_(n_valid),
      n_columns_(config.n_outputs()),
      n_valid_columns_(output_tokens.empty() ? n_valid : n_columns_),
      output_tokens_(output_tokens),
      dim_(config.dim),
      name_(std::move(name)),
      dtype_(dtype) {}

void ForwardOutputs::request(std::span<const BatchItem> items,
                             Wants wants,
                             const ForwardPlan& plan,
                             const float* logits,
                             const float* hidden,
                             std::vector<StepOutput>& outputs) {
  if (plan.n_picked() > 0) request_tokens(items, wants, plan, logits, outputs);
  if (wants.hidden) request_hidden(items, plan, hidden, outputs);
  if (items.front().hidden_of >= 0) request_hidden_row(hidden, outputs.front());
}

void ForwardOutputs::collect(std::span<const BatchItem> items,
                             Wants wants,
                             const ForwardPlan& plan,
                             std::vector<StepOutput>& outputs) {
  if (plan.n_picked() > 0 && wants.draws)
    collect_draws(items, outputs);
  else if (plan.n_picked() > 0 && wants.n_ranked > 0)
    collect_ranks(items, plan, wants.n_ranked, outputs);
  else if (plan.n_picked() > 0)
    collect_picks(items, plan, outputs);
  if (plan.n_picked() > 0 && wants.n_top > 0) collect_top(items, plan, wants.n_top, outputs);
  if (plan.n_picked() > 0 && wants.logits && !output_tokens_.empty())
    scatter_logits(items, plan, outputs);
  if (has_verify_request(items)) distributions_.deliver_verified(items, outputs);
  if (plan.n_picked() > 0 && wants.row_p) collect_row_p();
}

// The sampler's parameters of every picked row.
void ForwardOutputs::describe_picks(std::span<const BatchItem> items, const ForwardPlan& plan) {
  pick_rows_.resize(static_cast<std::size_t>(plan.n_picked()));
  std::size_t n_history = 0;
  for (std::size_t i = 0; i < items.size(); i++) {
    const BatchItem& item = items[i];
    if (!item.pick_rows) continue;
    for (int r = 0; r < item.tree->n_rows(); r++) {
      const int row = plan.row_begin(i) + r;
      const Sampling& s = item.sampling;
      const bool greedy =
          !item.greedy_rows.empty() && item.greedy_rows[static_cast<std::size_t>(r)] != 0;
      pick_rows_[static_cast<std::size_t>(row)] = {
          .temperature = greedy ? 0.0f : s.temperature,
          .top_k = s.top_k,
          .top_p = s.top_p,
          .min_p = s.min_p,
          .repetition_penalty = s.repetition_penalty,
          .seed = s.seed,
          .stream = static_cast<std::uint32_t>(item.stream),
          .position = static_cast<std::uint32_t>(plan.pos()[static_cast<std::size_t>(row)] + 1)};
      if (s.repetition_penalty != 1) n_history += item.prefix.size() + plan.chain(row).size();
    }
  }
  if (n_history == 0) return;

  // The penalty reads the prefix and the row's own chain, not its siblings.
  history_.clear();
  history_.reserve(n_history);
  for (std::size_t i = 0; i < items.size(); i++) {
    const BatchItem& item = items[i];
    if (!item.pick_rows || item.sampling.repetition_penalty == 1) continue;
    for (int r = 0; r < item.tree->n_rows(); r++) {
      const int row = plan.row_begin(i) + r;
      kernels::PickRow& p = pick_rows_[static_cast<std::size_t>(row)];
      const std::size_t begin = history_.size();
      p.history = history_.data() + begin;
      for (const TokenId token : item.prefix) add_to_history(token);
      for (const int ancestor : plan.chain(row))
        add_to_history(plan.token()[static_cast<std::size_t>(ancestor)]);
      p.n_history = static_cast<int>(history_.size() - begin);
    }
  }
}

// The history has columns of logits. A token without a column is left out.
void ForwardOutputs::add_to_history(TokenId token) {
  if (output_tokens_.empty()) return history_.push_back(token);
  if (const auto row = output_row(output_tokens_, token)) history_.push_back(*row);
}

void ForwardOutputs::check_output_tokens(std::span<const BatchItem> items, Wants wants) const {
  if (output_tokens_.empty()) return;
  ensure(!wants.draws && !wants.row_p && !has_verify_request(items),
         "forward: a model with output_tokens cannot draw, verify or report rows");
  const auto is_greedy = [](const kernels::PickRow& row) {
    return row.temperature < kernels::kGreedyTemperature;
  };
  ensure(wants.n_ranked > 0 || std::ranges::all_of(pick_rows_, is_greedy),
         "forward: a model with output_tokens cannot choose with noise");
}

void ForwardOutputs::request_tokens(std::span<const BatchItem> items,
                                    Wants wants,
                                    const ForwardPlan& plan,
                                    const float* logits,
                                    std::vector<StepOutput>& outputs) {
  describe_picks(items, plan);
  check_output_tokens(items, wants);
  const int n_rows = plan.n_picked();
  const DeviceLogits device_logits{device_, logits, n_columns_, n_valid_columns_,
                                   pick_rows_.data()};
  if (wants.draws) {
    distributions_.draw(device_logits, items, plan);
  } else if (wants.n_ranked > 0) {
    rankings_.resize(pick_rows_.size());
    ranked_.resize(pick_rows_.size() * static_cast<std::size_t>(wants.n_ranked));
    ops_.rank(device_, logits, n_columns_, n_rows, n_columns_, n_valid_columns_, pick_rows_.data(),
              wants.n_ranked, rankings_.data(), ranked_.data());
  } else {
    picked_.resize(pick_rows_.size());
    ops_.pick(device_, logits, n_columns_, n_rows, n_columns_, n_valid_columns_, pick_rows_.data(),
              picked_.data());
  }
  if (wants.n_top > 0) request_top(plan, wants.n_top, logits);
  if (has_verify_request(items)) distributions_.verify(device_logits, items, plan);
  if (wants.row_p) request_row_p(items, plan, logits, outputs);
  if (wants.logits) request_logits(items, plan, logits, outputs);
}

void ForwardOutputs::request_top(const ForwardPlan& plan, int n_top, const float* logits) {
  top_rows_.assign(static_cast<std::size_t>(plan.n_picked()), kernels::PickRow{.temperature = 0});
  top_.resize(top_rows_.size() * static_cast<std::size_t>(n_top));
  ops_.rank(device_, logits, n_columns_, plan.n_picked(), n_columns_, n_valid_columns_,
            top_rows_.data(), n_top, nullptr, top_.data());
}

// Requests for each row the logit of its token in its parent's row. The probability of the row's
// token follows from this logit and from the known logit and probability of the parent's picked
// token.
void ForwardOutputs::request_row_p(std::span<const BatchItem> items,
                                   const ForwardPlan& plan,
                                   const float* logits,
                                   std::vector<StepOutput>& outputs) {
  row_p_.clear();
  logit_at_.clear();
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    const TokenTree& tree = *items[i].tree;
    outputs[i].row_p.assign(tree.token.size(), -1);
    for (std::size_t r = 0; r < tree.token.size(); r++) {
      if (tree.parent[r] < 0) continue;
      const auto parent = static_cast<std::size_t>(plan.row_begin(i) + tree.parent[r]);
      const kernels::PickRow& how = pick_rows_[parent];
      const bool greedy = how.temperature < kernels::kGreedyTemperature;
      const bool filtered = how.top_k > 0 || how.top_p < 1 || how.min_p > 0;
      if (how.repetition_penalty != 1 || (filtered && !greedy)) continue;
      logit_at_.push_back(static_cast<std::int64_t>(parent) * n_columns_ + tree.token[r]);
      row_p_.push_back({&outputs[i].row_p[r], parent});
    }
  }
  logit_of_row_.resize(logit_at_.size());
  ops_.gather(device_, logits, logit_at_.data(), static_cast<int>(logit_at_.size()),
              logit_of_row_.data());
}

// Downloads the logits without the columns of padding tokens, or those of all output tokens to column_logits_.
void ForwardOutputs::request_logits(std::span<const BatchItem> items,
                                    const ForwardPlan& plan,
                                    const float* logits,
                                    std::vector<StepOutput>& outputs) {
  const auto width = static_cast<std::size_t>(n_valid_);
  const auto n_outputs = output_tokens_.size();
  column_logits_.resize(static_cast<std::size_t>(plan.n_picked()) * n_outputs);
  row_to_.assign(static_cast<std::size_t>(plan.n_picked()), nullptr);
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    const std::size_t n_rows = items[i].tree->token.size();
    outputs[i].logits.assign(n_rows * width, -std::numeric_limits<float>::infinity());
    for (std::size_t r = 0; r < n_rows; r++) {
      const std::size_t row = static_cast<std::size_t>(plan.row_begin(i)) + r;
      row_to_[row] =
          n_outputs > 0 ? &column_logits_[row * n_outputs] : &outputs[i].logits[r * width];
    }
  }
  ops_.download_rows(device_, row_to_.data(), logits, kFloatBytes * n_valid_columns_,
                     kFloatBytes * n_columns_, plan.n_picked());
}

void ForwardOutputs::request_hidden(std::span<const BatchItem> items,
                                    const ForwardPlan& plan,
                                    const float* hidden,
                                    std::vector<StepOutput>& outputs) {
  const auto width = static_cast<std::size_t>(dim_);
  row_to_.assign(static_cast<std::size_t>(plan.n_rows()), nullptr);
  for (std::size_t i = 0; i < items.size(); i++) {
    const std::size_t n_rows = items[i].tree->token.size();
    outputs[i].hidden.resize(n_rows * width);
    for (std::size_t r = 0; r < n_rows; r++)
      row_to_[static_cast<std::size_t>(plan.row_begin(i)) + r] = &outputs[i].hidden[r * width];
  }
  ops_.download_rows(device_, row_to_.data(), hidden, kFloatBytes * dim_, kFloatBytes * dim_,
                     plan.n_rows());
}

void ForwardOutputs::request_hidden_row(const float* hidden, StepOutput& output) {
  output.hidden.resize(static_cast<std::size_t>(dim_));
  row_to_.assign(1, output.hidden.data());
  ops_.download_rows(device_, row_to_.data(), hidden, kFloatBytes * dim_, kFloatBytes * dim_, 1);
}

void ForwardOutputs::collect_picks(std::span<const BatchItem> items,
                                   const ForwardPlan& plan,
                                   std::vector<StepOutput>& outputs) const {
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    const auto begin = picked_.begin() + plan.row_begin(i);
    outputs[i].picked.assign(begin, begin + items[i].tree->n_rows());
    for (int r = 0; r < items[i].tree->n_rows(); r++) {
      kernels::Picked& picked = outputs[i].picked[static_cast<std::size_t>(r)];
      if (picked.id < 0) refuse_logits(r, picked.bad_index);
      picked.id = token_of(picked.id);
    }
  }
}

// In this function and in collect_ranks() no tokens were chosen, so `picked` holds no ids.
void ForwardOutputs::collect_draws(std::span<const BatchItem> items,
                                   std::vector<StepOutput>& outputs) const {
  for (std::size_t i = 0; i < items.size(); i++)
    if (items[i].pick_rows) outputs[i].picked.resize(items[i].tree->token.size());
  distributions_.deliver_drawn(items, outputs,
                               [this](int row, int bad) { refuse_logits(row, bad); });
}

void ForwardOutputs::collect_ranks(std::span<const BatchItem> items,
                                   const ForwardPlan& plan,
                                   int k,
                                   std::vector<StepOutput>& outputs) const {
  const auto width = static_cast<std::size_t>(k);
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    outputs[i].picked.resize(items[i].tree->token.size());
    for (int r = 0; r < items[i].tree->n_rows(); r++) {
      const auto row = static_cast<std::size_t>(plan.row_begin(i) + r);
      if (rankings_[row].n == 0) refuse_logits(r, rankings_[row].bad_index);
      outputs[i].ranked.push_back(
          ranked_of(rankings_[row], &ranked_[row * width], pick_rows_[row].temperature));
      for (TokenId& token : outputs[i].ranked.back().token) token = token_of(token);
    }
  }
}

void ForwardOutputs::collect_top(std::span<const BatchItem> items,
                                 const ForwardPlan& plan,
                                 int n_top,
                                 std::vector<StepOutput>& outputs) const {
  const auto width = static_cast<std::size_t>(n_top);
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    const auto begin = static_cast<std::size_t>(plan.row_begin(i)) * width;
    const std::span own(&top_[begin], items[i].tree->token.size() * width);
    for (const kernels::RankedToken& token : own) outputs[i].top.push_back(token_of(token.id));
  }
}

void ForwardOutputs::scatter_logits(std::span<const BatchItem> items,
                                    const ForwardPlan& plan,
                                    std::vector<StepOutput>& outputs) const {
  const std::size_t width = static_cast<std::size_t>(n_valid_), n_outputs = output_tokens_.size();
  for (std::size_t i = 0; i < items.size(); i++) {
    if (!items[i].pick_rows) continue;
    for (std::size_t r = 0; r < items[i].tree->token.size(); r++) {
      const float* from =
          &column_logits_[(static_cast<std::size_t>(plan.row_begin(i)) + r) * n_outputs];
      for (std::size_t column = 0; column < n_outputs; column++)
        outputs[i].logits[r * width + static_cast<std::size_t>(output_tokens_[column])] =
            from[column];
    }
  }
}

void ForwardOutputs::collect_row_p() const {
  for (std::size_t i = 0; i < row_p_.size(); i++) {
    const kernels::Picked& picked = picked_[row_p_[i].parent];
    const float temperature = pick_rows_[row_p_[i].parent].temperature;
    const float below = (logit_of_row_[i] - picked.logit) /
                        (temperature < kernels::kGreedyTemperature ? 1 : temperature);
    *row_p_[i].p = std::min(1.0f, std::exp(picked.logp + below));
  }
}

void ForwardOutputs::refuse_logits(int row, int bad_index) const {
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: non-finite logits at row {}, first index {}; are the weights "
                          "damaged, or too large for {}?",
                          name_, row, bad_index, kernels::name_of(dtype_)));
}

}  // namespace engine

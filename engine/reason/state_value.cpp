#include "engine/reason/state_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "engine/data/arith/answers.h"
#include "engine/data/text.h"

namespace engine {
namespace {

constexpr std::array<const char*, 3> kNames = {"written", "expected", "likelihood"};
constexpr int kHighestScore = 10;

using Tokens = std::vector<TokenId>;

std::size_t n_equal(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

double logp_of(std::span<const float> logits, TokenId token) {
  const float top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float z : logits) sum += std::exp(static_cast<double>(z - top));
  return static_cast<double>(logits[static_cast<std::size_t>(token)] - top) - std::log(sum);
}

/// Log probabilities of continuations of one context.
class Continuations {
 public:
  /// @param known    a sequence whose keys and values are reused for the tokens that `context` begins with
  /// @param context  at least one token
  Continuations(LanguageModel& model, const Sequence& known, const Tokens& context)
      : model_(model), sequence_(begun(model, known, context)) {
    prefill(model_, sequence_);
    tree_.add(sequence_.last(), -1, RowTag{});
  }

  void add(std::span<const TokenId> tokens) {
    std::vector<Step> steps;
    int row = 0;
    for (std::size_t i = 0; i < tokens.size(); i++) {
      steps.push_back({row, tokens[i]});
      // The last token of a continuation needs no row: nothing follows it.
      if (i + 1 < tokens.size()) row = child(row, tokens[i]);
    }
    continuations_.push_back(std::move(steps));
  }

  /// One forward. @return  [continuations] the sum of the log probabilities of each one's tokens
  std::vector<double> logp() {
    const BatchItem item{.cache = &sequence_.cache(),
                         .tree = &tree_,
                         .prefix = sequence_.cached_tokens(),
                         .n_prompt = static_cast<int>(sequence_.prompt().size())};
    const auto out = model_.forward(std::span(&item, 1), Wants{.logits = true});
    std::vector<double> sums;
    for (const auto& steps : continuations_) {
      double sum = 0;
      for (const Step& step : steps) sum += logp_of(out[0].logits_of(step.row), step.token);
      sums.push_back(sum);
    }
    return sums;
  }

 private:
  struct Step {
    int row;  // after which the token comes
    TokenId token;
  };

  static Sequence begun(LanguageModel& model, const Sequence& known, const Tokens& context) {
    const std::size_t n = n_equal(known.tokens(), context);
    return n == 0 ? Sequence(context, model.make_cache())
                  : known.shortened(n).restarted(std::span(context).subspan(n));
  }

  int child(int parent, TokenId token) {
    const auto found = children_.find({parent, token});
    if (found != children_.end()) return found->second;
    const int row = tree_.add(token, parent, RowTag{});
    children_[{parent, token}] = row;
    return row;
  }

  LanguageModel& model_;
  Sequence sequence_;
  TokenTree tree_;
  std::map<std::pair<int, TokenId>, int> children_;
  std::vector<std::vector<Step>> continuations_;
};

/// The mean of the scores 1 to 10 that may follow the evaluation's text before its score.
std::optional<double> expected_score(LanguageModel& model,
                                     const Tokenizer& tokenizer,
                                     const StateEvaluation& evaluation) {
  const auto written = find_score(evaluation.text, evaluation.prompt.score);
  if (!written) return std::nullopt;
  const std::string before = evaluation.prompt.text + evaluation.text.substr(0, written->begin);
  std::vector<Tokens> texts;
  for (int score = 1; score <= kHighestScore; score++)
    texts.push_back(tokenizer.encode(before + std::to_string(score), evaluation.reading));
  std::size_t n_common = texts[0].size() - 1;
  for (const Tokens& text : texts)
    n_common = std::min({n_common, n_equal(text, texts[0]), text.size() - 1});
  Continuations scores(model, evaluation.end, {texts[0].begin(), texts[0].begin() + n_common});
  for (const Tokens& text : texts) scores.add(std::span(text).subspan(n_common));
  std::vector<double> p = scores.logp();
  for (double& logp : p) logp = std::exp(logp);
  // If the tokens of 10 begin with those of 1, the probability of those of 1 includes 10.
  if (n_equal(texts[0], texts[9]) == texts[0].size()) p[0] = std::max(0.0, p[0] - p[9]);
  double sum = 0, weighted = 0;
  for (int i = 0; i < kHighestScore; i++) {
    sum += p[static_cast<std::size_t>(i)];
    weighted += p[static_cast<std::size_t>(i)] * (i + 1);
  }
  return sum > 0 ? weighted / sum : written->value;
}

std::optional<double> thought_likelihood(LanguageModel& model,
                                         const Tokenizer& tokenizer,
                                         const StateEvaluation& evaluation) {
  const EvaluationPrompt& prompt = evaluation.prompt;
  const auto tokens_to = [&](std::size_t end) {
    return tokenizer.encode(std::string_view(prompt.text).substr(0, end), evaluation.reading);
  };
  const Tokens text = tokens_to(prompt.thought_end);
  const std::size_t n_before = n_equal(tokens_to(prompt.thought_begin), text);
  if (prompt.thought_begin == prompt.thought_end || n_before == 0 || n_before == text.size())
    return std::nullopt;
  Continuations thought(model, evaluation.end, {text.begin(), text.begin() + n_before});
  thought.add(std::span(text).subspan(n_before));
  const auto n = static_cast<double>(text.size() - n_before);
  return kHighestScore * std::exp(thought.logp()[0] / n);
}

}  // namespace

const char* name_of(ValueSource source) {
  return kNames[static_cast<std::size_t>(source)];
}

std::vector<std::string> value_source_names() {
  return {kNames.begin(), kNames.end()};
}

ValueSource value_source(const std::string& name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end())
    throw Error(ErrorCode::Usage, "value: found '" + name + "', expected one of " +
                                      joined(value_source_names(), ", "));
  return static_cast<ValueSource>(found - kNames.begin());
}

EvaluationPrompt evaluation_prompt(const TotPrompt& prompt,
                                   const Slots& slots,
                                   const Slots& thought) {
  EvaluationPrompt filled{.text = fill_template(prompt.text, slots), .score = prompt.score};
  std::size_t place = 0;
  for (const auto& [part, text] : thought) {
    const std::size_t at = prompt.text.rfind("{" + part + "}");
    if (at == std::string::npos || at < place) continue;
    place = at;
    filled.thought_begin = fill_template(prompt.text.substr(0, at), slots).size();
    filled.thought_end = filled.thought_begin + text.size();
  }
  return filled;
}

std::optional<double> state_value(ValueSource source,
                                  LanguageModel& model,
                                  const Tokenizer& tokenizer,
                                  const StateEvaluation& evaluation) {
  switch (source) {
    case ValueSource::Expected:
      return expected_score(model, tokenizer, evaluation);
    case ValueSource::Likelihood:
      return thought_likelihood(model, tokenizer, evaluation);
    case ValueSource::Written:
      break;
  }
  return read_score(evaluation.text, evaluation.prompt.score);
}

}  // namespace engine

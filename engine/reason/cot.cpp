#include "engine/reason/cot.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace engine {
namespace {

constexpr int kAnswerTokens = 10;
// A rationale ends at the first line end, because a model that saw examples writes another question
// after it.
const std::vector<std::string> kStops = {"\n"};

/// The token ids that the probe looks for to recognise an answer in FastCoT's window.
std::vector<TokenId> keywords_of(const Tokenizer& tokenizer, const Question& question) {
  std::vector<TokenId> ids;
  for (const std::string& text : question.answers) {
    const std::vector<TokenId> tokens = tokenizer.encode(text, false);
    // The token that distinguishes an option: the letter of "(B)", the first token of a word.
    for (const TokenId id : tokens) {
      const std::string piece = tokenizer.piece(id);
      if (piece.find_first_not_of(" ()") == std::string::npos) continue;
      ids.push_back(id);
      break;
    }
  }
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

/// One call of answer().
class ChainOfThought {
 public:
  ChainOfThought(Scheduler& scheduler,
                 const Model& model,
                 std::span<const Question> questions,
                 const CotSettings& settings,
                 const SchedulerWatch& watch)
      : scheduler_(scheduler),
        model_(model),
        tokenizer_(*model.tokenizer()),
        trigger_(tokenizer_.encode(kTrigger, TextReading{.add_special = false, .continues = true})),
        questions_(questions),
        settings_(settings),
        watch_(watch) {
    report_.n_shots = settings.n_shots >= 0
                          ? std::min(settings.n_shots, static_cast<int>(settings.exemplars.size()))
                          : shots_that_fit(model, settings, questions);
    const auto n_shots = static_cast<std::size_t>(report_.n_shots);
    shots_ = few_shot_text(std::span(settings.exemplars).first(n_shots));
  }

  CotReport run() {
    std::vector<Completion> rationales = write_rationales();
    report_.items.resize(rationales.size());
    answered_.assign(rationales.size(), false);
    report_.complete = rationales.size() == questions_.size();
    answer_all(rationales);
    std::vector<CotItem> answered;
    for (std::size_t i = 0; i < report_.items.size(); i++)
      if (answered_[i]) answered.push_back(std::move(report_.items[i]));
    report_.complete &= answered.size() == questions_.size();
    report_.items = std::move(answered);
    return std::move(report_);
  }

 private:
  SchedulerWatch watch_from(RunId first_run, int n_before) const {
    SchedulerWatch watch = watch_;
    watch.first_run = first_run;
    const int n_all = 2 * static_cast<int>(questions_.size());
    if (watch_.ended)
      watch.ended = [this, n_before, n_all](int done, int) {
        watch_.ended(n_before + done, n_all);
      };
    return watch;
  }

  /// @throws Error(BadInput)  if question, rationale, trigger and answer exceed the context
  void check_fits(const RunRequest& run) const {
    const int n =
        static_cast<int>(run.prompt_tokens.size()) + settings_.max_tokens + 2 * kAnswerTokens;
    if (n <= model_.max_seq_len()) return;
    throw Error(ErrorCode::BadInput,
                run.prompt_id + ": " + std::to_string(run.prompt_tokens.size()) +
                    " tokens, a rationale of " + std::to_string(settings_.max_tokens) +
                    " and an answer of " + std::to_string(2 * kAnswerTokens) + " need " +
                    std::to_string(n) + ", but the context holds " +
                    std::to_string(model_.max_seq_len()) +
                    "; lower --max-tokens or --shots, or set a longer context with --context N");
  }

  std::vector<Completion> write_rationales() {
    std::vector<CompletionRequest> requests;
    for (const Question& question : questions_) {
      CompletionRequest request;
      RunRequest& run = request.run;
      run.prompt_id = question.record.id;
      run.prompt = shots_ + question.record.prompt;
      run.no_special = settings_.no_special;
      set_prompt(run, prompt_tokens_of(model_, {.text = run.prompt,
                                                .chat = settings_.chat,
                                                .system = settings_.system,
                                                .symbols = !run.no_special}));
      check_fits(run);
      run.decoder = settings_.decoder;
      run.options = settings_.options;
      run.sampling = settings_.sampling;
      run.max_tokens = settings_.max_tokens;
      run.probe = {trigger_, keywords_of(tokenizer_, question)};
      request.stop_texts = kStops;
      requests.push_back(std::move(request));
    }
    return scheduler_.run(requests, watch_from(watch_.first_run, 0));
  }

  /// The approximate tokens that the prompt of the answer contains. They end before the first end
  /// token, line end or trigger.
  std::vector<TokenId> approximate_of(const RunResult& result) const {
    std::vector<TokenId> used;
    if (!settings_.keep_approximate) return used;
    for (const TokenId token : result.approximate) {
      if (std::ranges::find(model_.config().eos_ids, token) != model_.config().eos_ids.end()) break;
      used.push_back(token);
      const std::string text = text_of(result, used);
      const std::size_t end = std::min(text.find('\n'), text.find(kTrigger));
      if (end == std::string::npos) continue;
      // Removes the tokens that contain the line end or the trigger: the prompt appends the trigger
      // itself.
      while (!used.empty() && text_of(result, used).size() > end) used.pop_back();
      break;
    }
    return used;
  }
  /// The text of the tokens `more` if they follow the prompt and the tokens of the run.
  std::string text_of(const RunResult& result, std::span<const TokenId> more) const {
    std::vector<TokenId> before = result.request.prompt_tokens;
    before.insert(before.end(), result.tokens.begin(), result.tokens.end());
    return continuation_text(tokenizer_, before, more);
  }

  /// The prompt of the answer. It keeps the KV cache of the rationale.
  Sequence answer_prompt(const Completion& rationale, std::span<const TokenId> approximate) const {
    std::vector<TokenId> more(approximate.begin(), approximate.end());
    more.insert(more.end(), trigger_.begin(), trigger_.end());
    return rationale.end.restarted(more);
  }

  void answer_all(std::vector<Completion>& rationales) {
    std::vector<Sequence> prompts;
    std::vector<std::size_t> items;
    prompts.reserve(rationales.size());
    for (std::size_t i = 0; i < rationales.size(); i++) {
      CotItem& item = report_.items[i] = item_of(rationales[i].result, questions_[i]);
      const bool stopped = item.stop_reason == "stopped";
      if (stopped) report_.complete = false;
      if (has_trigger(item) && (item.stop_reason == "eos" || item.stop_reason == "text")) {
        item.correct = is_right_answer(questions_[i].record, item.answer);
        answered_[i] = true;
      } else if (!stopped) {
        prompts.push_back(prompt_of(rationales[i], item));
        items.push_back(i);
      }
    }
    finish(prompts, items);
  }

  static void add_times(CotItem& item, const RunResult& result) {
    item.seconds += (result.prefill_ms + result.decode_ms) * 1e-3;
    item.prefill_seconds += result.prefill_ms * 1e-3;
    item.times += result.times;
  }

  /// Fills an item from the run of the rationale. If the rationale contains the trigger, the text
  /// after it is the answer, which the token limit may have truncated.
  static CotItem item_of(const RunResult& result, const Question& question) {
    CotItem item;
    item.id = question.record.id;
    item.question = question.record.prompt;
    item.expected = question.record.answer;
    item.exact = rationale_of(result.text);
    item.text = result.text;
    item.n_steps = result.n_steps;
    item.n_tokens = static_cast<int>(result.tokens.size());
    add_times(item, result);
    item.stop_reason = result.stop_reason;
    item.counts = result.counts;
    if (has_trigger(item))
      item.answer = item.text.substr(item.exact.size() + std::string(kTrigger).size());
    return item;
  }
  static bool has_trigger(const CotItem& item) { return item.exact.size() < item.text.size(); }

  /// The prompt of the item's answer, or of the rest of a truncated answer.
  Sequence prompt_of(const Completion& rationale, CotItem& item) const {
    if (has_trigger(item)) return rationale.end.restarted();
    const std::vector<TokenId> approximate = approximate_of(rationale.result);
    item.approximate = text_of(rationale.result, approximate);
    item.n_approximate = static_cast<int>(approximate.size());
    item.text += item.approximate + kTrigger;
    return answer_prompt(rationale, approximate);
  }

  void finish(const std::vector<Sequence>& prompts, const std::vector<std::size_t>& items) {
    std::vector<CompletionRequest> requests;
    for (std::size_t i = 0; i < prompts.size(); i++) {
      CompletionRequest request;
      // The prompt's id says that the prompt has approximate tokens; first_approximate and
      // n_approximate say where.
      const CotItem& item = report_.items[items[i]];
      request.run.prompt_id =
          item.id + (item.n_approximate > 0 ? "/answer-behind-approximate" : "/answer");
      const auto tokens = prompts[i].tokens();
      request.run.prompt_tokens.assign(tokens.begin(), tokens.end());
      request.run.prompt = tokenizer_.decode(tokens);
      if (item.n_approximate > 0) {
        request.run.n_approximate = item.n_approximate;
        request.run.first_approximate =
            static_cast<int>(std::ssize(tokens) - std::ssize(trigger_)) - item.n_approximate;
      }
      request.run.sampling = settings_.sampling;
      request.run.max_tokens = kAnswerTokens;
      request.stop_texts = kStops;
      request.from = &prompts[i];
      requests.push_back(std::move(request));
    }
    const int n_settled = static_cast<int>(2 * questions_.size() - requests.size());
    const auto answers = scheduler_.run(
        requests, watch_from(watch_.first_run + static_cast<RunId>(questions_.size()), n_settled));
    report_.complete &= answers.size() == requests.size();
    for (std::size_t i = 0; i < answers.size(); i++) {
      CotItem& item = report_.items[items[i]];
      const RunResult& result = answers[i].result;
      item.answer += result.text;
      item.text += result.text;
      item.n_steps += result.n_steps;
      item.n_tokens += static_cast<int>(result.tokens.size());
      add_times(item, result);
      item.correct = is_right_answer(questions_[items[i]].record, item.answer);
      answered_[items[i]] = result.stop_reason != "stopped";
    }
  }

  Scheduler& scheduler_;
  const Model& model_;
  const Tokenizer& tokenizer_;
  const std::vector<TokenId> trigger_;
  std::span<const Question> questions_;
  const CotSettings& settings_;
  const SchedulerWatch& watch_;
  std::string shots_;
  CotReport report_;
  std::vector<bool> answered_;  // [report_.items]
};

}  // namespace

int CotReport::n_correct() const {
  return static_cast<int>(std::ranges::count(items, true, &CotItem::correct));
}

double CotReport::seconds() const {
  double sum = 0;
  for (const CotItem& item : items) sum += item.seconds;
  return sum;
}

double CotReport::prefill_seconds() const {
  double sum = 0;
  for (const CotItem& item : items) sum += item.prefill_seconds;
  return sum;
}

StepTimes CotReport::times() const {
  StepTimes sum;
  for (const CotItem& item : items) sum += item.times;
  return sum;
}

namespace {

/// Number of tokens that the chat template adds to a question, with the system message.
std::size_t template_tokens(const Model& model,
                            const CotSettings& settings,
                            const std::string& question,
                            std::size_t n_question_tokens) {
  if (settings.chat != ChatMode::Chat) return 0;
  const std::size_t n =
      prompt_tokens_of(model, {.text = question, .chat = settings.chat, .system = settings.system})
          .tokens.size();
  return n - std::min(n, n_question_tokens);
}

}  // namespace

int shots_that_fit(const Model& model,
                   const CotSettings& settings,
                   std::span<const Question> questions) {
  const TextReading reading{.symbols = !settings.no_special};
  std::size_t longest = 0;
  std::string longest_question;
  for (const Question& question : questions) {
    const std::size_t n = model.tokenizer()->encode(question.record.prompt, reading).size();
    if (n > longest) longest = n, longest_question = question.record.prompt;
  }
  longest += template_tokens(model, settings, longest_question, longest);
  const auto tail = static_cast<std::size_t>(settings.max_tokens + 2 * kAnswerTokens);
  int n = 0;
  for (std::size_t i = 1; i <= settings.exemplars.size(); i++) {
    const std::string shots = few_shot_text(std::span(settings.exemplars).first(i));
    const std::size_t all = model.tokenizer()->encode(shots, reading).size() + longest + tail;
    if (all > static_cast<std::size_t>(model.max_seq_len())) break;
    n = static_cast<int>(i);
  }
  return n;
}

CotReport answer(Scheduler& scheduler,
                 const Model& model,
                 std::span<const Question> questions,
                 const CotSettings& settings,
                 const SchedulerWatch& watch) {
  ensure(model.tokenizer() != nullptr, "chain of thought needs a tokenizer");
  return ChainOfThought(scheduler, model, questions, settings, watch).run();
}

BoundSearch find_bound(Scheduler& scheduler,
                       const Model& model,
                       std::span<const Question> questions,
                       CotSettings settings,
                       double tolerance,
                       const std::function<bool(const BoundTrial&)>& on_trial,
                       const SchedulerWatch& watch) {
  BoundSearch search;
  const auto tried = [&](int bound) -> std::optional<BoundTrial> {
    settings.options["stop"] = bound > 0 ? "bound" : "none";
    if (bound > 0) settings.options["bound"] = std::to_string(bound);
    const CotReport report = answer(scheduler, model, questions, settings, watch);
    if (!report.complete) return std::nullopt;
    search.trials.push_back({bound, report.accuracy(), report.seconds()});
    if (on_trial && !on_trial(search.trials.back())) return std::nullopt;
    return search.trials.back();
  };
  const auto whole = tried(0);
  if (!whole) return search;
  const auto keeps = [&](const BoundTrial& trial) {
    constexpr double kRounding = 1e-9;  // a loss equal to the tolerance is accepted
    return trial.accuracy >= whole->accuracy - tolerance - kRounding;
  };
  int too_few = 0;
  for (const int bound : {2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160}) {
    if (bound >= settings.max_tokens) break;
    const auto trial = tried(bound);
    if (!trial) return search;
    if (keeps(*trial)) {
      search.bound = bound;
      break;
    }
    too_few = bound;
  }
  while (search.bound - too_few > 1) {
    const int bound = too_few + (search.bound - too_few) / 2;
    const auto trial = tried(bound);
    if (!trial) return search;
    (keeps(*trial) ? search.bound : too_few) = bound;
  }
  return search;
}

}  // namespace engine

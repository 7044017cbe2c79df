#include "engine/reason/tot.h"

#include <algorithm>
#include <cmath>

#include "engine/data/random.h"
#include "engine/data/text.h"
#include "engine/decode/registry.h"
#include "engine/event/clock.h"
#include "engine/reason/early_stop.h"
#include "engine/run/completion_job.h"

namespace engine {
namespace {

using Use = TotPrompt::Use;

const char* name_of(Use use) {
  if (use == Use::Value) return "values";
  return use == Use::Answer ? "answer" : "thoughts";
}

void add_run(TotCost& cost, const RunResult& result, const RunRequest& request) {
  const auto metric = [&](const char* name) {
    const auto found = result.metrics.find(name);
    return found == result.metrics.end() ? 0.0 : found->second;
  };
  const auto count = [&](const char* name) { return std::llround(metric(name)); };
  cost.n_calls++;
  cost.n_tokens += std::ssize(result.tokens);
  cost.n_steps += result.n_steps;
  cost.n_rows += result.n_rows;
  cost.n_proposed += count("proposed");
  cost.n_accepted += count("accepted");
  cost.n_rejected += count("rejected");
  cost.n_requested_depth += full_path_tokens(*parse_options(request.decoder, request.options),
                                             result.n_steps, result.counts);
  cost.n_draft_depth += count("draft_depth");
  cost.n_kept_of_depth += std::llround(metric("depth_accepted") * metric("draft_depth"));
  cost.seconds += (result.prefill_ms + result.decode_ms) * 1e-3;
}

/// A run and its text.
struct Generated {
  RunId run = 0;
  std::string text;
  Sequence end;  // the prompt and the text
};

/// The search for one question: breadth-first search over thoughts (Yao et al. 2023, algorithm 1).
class Search {
 public:
  Search(Scheduler& scheduler,
         Model& model,
         const Record& record,
         const TotSettings& settings,
         const SchedulerWatch& watch,
         SearchId id,
         RunId& next_run,
         TotProgress& progress,
         const std::function<void(const TotProgress&)>& on_progress)
      : scheduler_(scheduler),
        model_(model),
        task_(tot_task(record.task)),
        record_(record),
        settings_(settings),
        watch_(watch),
        id_(id),
        next_run_(next_run),
        progress_(progress),
        on_progress_(on_progress) {
    item_.id = record.id;
    item_.question = task_.question(record);
    item_.nodes.emplace_back();
    thought_runs_.emplace_back();
  }

  /// @return  nothing if the search was stopped
  std::optional<TotItem> run() {
    push(SearchBegun{.t = now_ns(),
                     .search = id_,
                     .id = item_.id,
                     .task = record_.task,
                     .question = item_.question,
                     .depth = settings_.depth,
                     .n_thoughts = settings_.n_thoughts,
                     .beam = settings_.beam});
    std::vector<int> beam = {0};
    for (int depth = 1; depth <= settings_.depth && !stopped_; depth++)
      if (!search_level(depth, beam)) break;
    if (!stopped_) write_answer(beam.front());
    push(SearchEnded{.t = now_ns(),
                     .search = id_,
                     .node = stopped_ ? 0 : item_.node,
                     .by = answered_by_,
                     .answer = item_.answer,
                     .correct = item_.correct,
                     .reason = item_.reason,
                     .stopped = stopped_});
    if (stopped_) return std::nullopt;
    return std::move(item_);
  }

 private:
  TotNode& node(int index) { return item_.nodes[static_cast<std::size_t>(index)]; }
  const TotNode& node(int index) const { return item_.nodes[static_cast<std::size_t>(index)]; }
  void push(Event event) {
    if (watch_.events) watch_.events->push(std::move(event));
  }

  /// One level: proposes thoughts for every incomplete node of the beam, evaluates them and selects the
  /// next beam.
  /// @return  false if the search ends with this level; the beam is then unchanged
  bool search_level(int depth, std::vector<int>& beam) {
    progress_.depth = depth;
    const std::vector<int> made = propose_thoughts(depth, beam);
    if (made.empty() || stopped_) return false;
    evaluate_states(depth, made);
    std::vector<int> candidates;
    for (const int one : beam)
      if (node(one).complete) candidates.push_back(one);
    for (const int one : made)
      if (node(one).readable) candidates.push_back(one);
    const auto by_value = [&](int a, int b) { return value_of(a) > value_of(b); };
    std::ranges::stable_sort(candidates, by_value);
    const std::vector<int> kept = select_beam(depth, candidates);
    if (stopped_) return false;
    report_selection(candidates, made, kept);
    if (kept.empty()) return false;
    beam = kept;
    return true;
  }

  std::vector<const TotPrompt*> prompts(Use use, int depth) const {
    return prompts_for(settings_.prompts, use, depth);
  }

  std::vector<int> propose_thoughts(int depth, const std::vector<int>& beam) {
    const auto parts = prompts(Use::Thought, depth);
    std::vector<int> made;
    if (parts.empty()) return made;
    for (const int parent : beam) {
      if (node(parent).complete) continue;
      for (int i = 0; i < settings_.n_thoughts; i++) {
        made.push_back(static_cast<int>(item_.nodes.size()));
        item_.nodes.push_back({.parent = parent, .depth = depth});
        thought_runs_.emplace_back();
      }
    }
    for (const TotPrompt* prompt : parts) write(*prompt, made, thought_runs_);
    if (stopped_) return made;
    for (const int one : made) {
      push(ThoughtMade{.t = now_ns(),
                       .search = id_,
                       .node = one,
                       .parent = node(one).parent,
                       .depth = depth,
                       .text = text_of(node(one).parts, settings_.prompts),
                       .runs = thought_runs_[static_cast<std::size_t>(one)],
                       .readable = node(one).readable,
                       .complete = node(one).complete});
    }
    return made;
  }

  /// Generates one part of the thought of every node that could be parsed so far and is not
  /// complete.
  void write(const TotPrompt& prompt,
             const std::vector<int>& nodes,
             std::vector<std::vector<RunId>>& runs) {
    std::vector<int> waiting;
    for (const int one : nodes)
      if (node(one).readable && !node(one).complete) waiting.push_back(one);
    const auto written = generate(prompt, waiting, item_.thoughts);
    if (stopped_) return;
    for (std::size_t i = 0; i < waiting.size(); i++) {
      TotNode& at = node(waiting[i]);
      at.readable = written[i].has_value();
      if (!written[i]) continue;
      runs[static_cast<std::size_t>(waiting[i])].push_back(written[i]->run);
      const auto read = task_.parse(prompt.part, written[i]->text);
      at.readable = read.has_value();
      at.parts[prompt.part] = read ? *read : std::string(completion_body(written[i]->text));
      if (read) at.complete = task_.is_complete(record_, chain_to(waiting[i]));
    }
  }

  void evaluate_states(int depth, const std::vector<int>& made) {
    const auto scores = prompts(Use::Value, depth);
    if (scores.empty() || stopped_) return;
    std::vector<int> waiting;
    for (const int one : made)
      if (node(one).readable) waiting.push_back(one);
    const auto written = generate(*scores.front(), waiting, item_.values);
    if (stopped_) return;
    for (std::size_t i = 0; i < waiting.size(); i++) {
      ThoughtValued valued{.t = now_ns(), .search = id_, .node = waiting[i]};
      if (written[i]) {
        const auto score = value_written(*scores.front(), waiting[i], *written[i]);
        valued.by = written[i]->run;
        valued.value = score.value_or(0);
        valued.read = score.has_value();
        valued.text = completion_body(written[i]->text);
      }
      node(waiting[i]).valued = valued;
      push(valued);
    }
  }

  std::optional<double> value_written(const TotPrompt& prompt,
                                      int index,
                                      const Generated& written) {
    const Nanoseconds start = now_ns();
    const auto filled = evaluation_prompt(prompt, slots_at(index), node(index).parts);
    const auto value = state_value(settings_.value_source, model_, *model_.tokenizer(),
                                   {filled, written.end, written.text, reading()});
    const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
    item_.values.seconds += seconds;
    item_.values.wall_seconds += seconds;
    return value;
  }

  /// Selects the best candidates. Writes the state after each selected thought; if that text cannot be
  /// parsed, the next candidate takes its place.
  /// @param candidates  best first
  std::vector<int> select_beam(int depth, const std::vector<int>& candidates) {
    const auto wanted = static_cast<std::size_t>(settings_.beam);
    std::vector<int> kept;
    std::size_t next = 0;
    kept_runs_.assign(item_.nodes.size(), {});
    while (kept.size() < wanted && next < candidates.size() && !stopped_) {
      std::vector<int> taken;
      while (kept.size() + taken.size() < wanted && next < candidates.size())
        taken.push_back(candidates[next++]);
      for (const TotPrompt* prompt : prompts(Use::Kept, depth)) write(*prompt, taken, kept_runs_);
      for (const int one : taken)
        if (node(one).readable) kept.push_back(one);
    }
    return kept;
  }

  void report_selection(const std::vector<int>& candidates,
                        const std::vector<int>& made,
                        const std::vector<int>& kept) {
    std::vector<int> reported = candidates;
    for (const int one : made)
      if (std::ranges::find(candidates, one) == candidates.end()) reported.push_back(one);
    std::ranges::sort(reported);
    for (const int one : reported) {
      TotNode& at = node(one);
      const bool stays = std::ranges::find(kept, one) != kept.end();
      at.fate = stays         ? ThoughtFate::Kept
                : at.readable ? ThoughtFate::Pruned
                              : ThoughtFate::Unreadable;
      push(ThoughtJudged{.t = now_ns(),
                         .search = id_,
                         .node = one,
                         .fate = at.fate,
                         .text = text_of(at.parts, settings_.prompts, Use::Kept),
                         .runs = kept_runs_[static_cast<std::size_t>(one)],
                         .complete = at.complete});
    }
  }

  /// The state evaluator's value. A node without a value inherits its parent's.
  double value_of(int index) const {
    const TotNode& at = node(index);
    if (at.valued) return at.valued->value;
    return at.parent < 0 ? 0 : value_of(at.parent);
  }

  void write_answer(int found) {
    item_.node = found;
    const ThoughtChain chain = chain_to(found);
    std::string text;
    if (const auto last = prompts(Use::Answer, node(found).depth); !last.empty()) {
      const std::vector<int> one = {found};
      const auto written = generate(*last.front(), one, item_.answers);
      if (stopped_) return;
      if (written[0]) {
        text = written[0]->text;
        answered_by_ = written[0]->run;
      }
    }
    item_.answer = task_.answer(chain, text);
    const CheckResult result = task_.check(record_, chain, text);
    item_.correct = result.correct;
    item_.reason = result.reason;
  }

  ThoughtChain chain_to(int index) const {
    ThoughtChain chain;
    for (const int one : item_.path_to(index)) chain.push_back(node(one).parts);
    return chain;
  }

  std::string prompt_text(const TotPrompt& prompt, int index) const {
    if (prompt.use == Use::Answer)
      return fill_template(prompt.text, task_.slots(record_, chain_to(index)));
    return fill_template(prompt.text, slots_at(index));
  }
  /// The slots of the task before a thought, and the thought's parts.
  Slots slots_at(int index) const {
    Slots slots = task_.slots(record_, chain_to(node(index).parent));
    for (const auto& [part, text] : node(index).parts) slots[part] = text;
    return slots;
  }
  TextReading reading() const { return {.symbols = !settings_.no_special}; }

  /// Every text has its own seed, which does not depend on other runs or on the decoder.
  Sampling sampling_of(const TotPrompt& prompt, int index, const std::string& what) const {
    Sampling sampling = settings_.thoughts;
    if (prompt.use != Use::Thought)
      sampling.temperature = prompt.use == Use::Value ? settings_.temperature_of_values() : 0;
    sampling.seed = fnv1a(std::to_string(settings_.thoughts.seed) + "/" + record_.id + "/" +
                          std::to_string(index) + "/" + what);
    return sampling;
  }

  std::optional<CompletionRequest> request_for(const TotPrompt& prompt, int index) const {
    const std::string what = !prompt.part.empty()       ? prompt.part
                             : prompt.use == Use::Value ? "value"
                                                        : "final";
    CompletionRequest request;
    RunRequest& run = request.run;
    run.prompt_id = record_.id + "/" + std::to_string(index) + "/" + what;
    run.prompt = prompt_text(prompt, index);
    run.no_special = settings_.no_special;
    run.prompt_tokens = model_.tokenizer()->encode(run.prompt, reading());
    const int n = static_cast<int>(run.prompt_tokens.size());
    if (n >= model_.max_seq_len()) {
      if (node(index).parent > 0 || prompt.use != Use::Thought) return std::nullopt;
      throw Error(ErrorCode::BadInput, run.prompt_id + ": found a prompt of " + std::to_string(n) +
                                           " tokens, expected fewer than the " +
                                           std::to_string(model_.max_seq_len()) +
                                           " of the context; set a longer context with "
                                           "--context N");
    }
    run.decoder = settings_.decoder;
    run.options = settings_.options;
    run.sampling = sampling_of(prompt, index, what);
    run.max_tokens = prompt.max_tokens;
    request.stop_texts = prompt.stop_texts;
    request.value = value_of(index);
    return request;
  }

  /// Runs one completion for each node.
  /// @return  [nodes] nullopt for a node whose prompt exceeds the context, and for every node if
  ///          the search was stopped
  std::vector<std::optional<Generated>> generate(const TotPrompt& prompt,
                                                 std::span<const int> nodes,
                                                 TotCost& cost) {
    std::vector<std::optional<Generated>> written(nodes.size());
    if (stopped_) return written;
    std::vector<CompletionRequest> requests;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < nodes.size(); i++) {
      auto request = request_for(prompt, nodes[i]);
      if (!request) continue;
      requests.push_back(std::move(*request));
      places.push_back(i);
    }
    if (requests.empty()) return written;
    SchedulerWatch watch = watch_;
    watch.first_run = next_run_;
    progress_.use = name_of(prompt.use);
    watch.ended = [this](int done, int n) {
      progress_.done = done;
      progress_.n = n;
      if (on_progress_) on_progress_(progress_);
    };
    const Nanoseconds start = now_ns();
    auto completions = scheduler_.run(requests, watch);
    cost.wall_seconds += static_cast<double>(now_ns() - start) * 1e-9;
    stopped_ = completions.size() < requests.size();
    for (std::size_t i = 0; i < completions.size(); i++) {
      const RunResult& result = completions[i].result;
      add_run(cost, result, requests[i].run);
      item_.text += result.text + "\n";
      stopped_ |= result.stop_reason == "stopped";
      if (!stopped_)
        written[places[i]].emplace(Generated{next_run_ + static_cast<RunId>(i), result.text,
                                             std::move(completions[i].end)});
    }
    next_run_ += static_cast<RunId>(requests.size());
    return written;
  }

  Scheduler& scheduler_;
  Model& model_;
  const TotTask& task_;
  const Record& record_;
  const TotSettings& settings_;
  const SchedulerWatch& watch_;
  SearchId id_;
  RunId& next_run_;  // owned by the caller, counts over all searches
  TotProgress& progress_;
  const std::function<void(const TotProgress&)>& on_progress_;
  TotItem item_;
  std::vector<std::vector<RunId>> thought_runs_;  // [nodes] runs that wrote the thought
  // [nodes] runs that wrote its Use::Kept parts on this level
  std::vector<std::vector<RunId>> kept_runs_;
  RunId answered_by_ = 0;
  bool stopped_ = false;
};

}  // namespace

TotCost& TotCost::operator+=(const TotCost& more) {
  n_calls += more.n_calls;
  n_tokens += more.n_tokens;
  n_steps += more.n_steps;
  n_rows += more.n_rows;
  n_proposed += more.n_proposed;
  n_accepted += more.n_accepted;
  n_rejected += more.n_rejected;
  n_requested_depth += more.n_requested_depth;
  n_draft_depth += more.n_draft_depth;
  n_kept_of_depth += more.n_kept_of_depth;
  seconds += more.seconds;
  wall_seconds += more.wall_seconds;
  return *this;
}

std::vector<int> TotItem::path_to(int index) const {
  std::vector<int> path;
  for (int at = index; at > 0; at = nodes[static_cast<std::size_t>(at)].parent) path.push_back(at);
  std::ranges::reverse(path);
  return path;
}

int TotReport::n_correct() const {
  return static_cast<int>(std::ranges::count(items, true, &TotItem::correct));
}

std::string text_of(const Thought& thought, std::span<const TotPrompt> prompts, Use use) {
  std::string text;
  for (const TotPrompt& prompt : prompts) {
    const auto found = thought.find(prompt.part);
    if (prompt.use == use && found != thought.end())
      text += (text.empty() ? "" : " ") + found->second;
  }
  return text;
}

TotReport search(Scheduler& scheduler,
                 Model& model,
                 std::span<const Record> questions,
                 const TotSettings& settings,
                 const SchedulerWatch& watch,
                 const std::function<void(const TotProgress&)>& on_progress,
                 SearchId first_search) {
  ensure(model.tokenizer() != nullptr, "a tree of thoughts needs a tokenizer");
  ensure(settings.n_thoughts > 0 && settings.beam > 0,
         "a tree of thoughts needs n_thoughts >= 1 and beam >= 1");
  refuse_early_stop(settings.decoder, settings.options);
  TotReport report;
  TotProgress progress{.n_questions = static_cast<int>(questions.size())};
  RunId next_run = watch.first_run;
  for (std::size_t i = 0; i < questions.size(); i++) {
    if (watch.stop && watch.stop()) break;
    progress.question = static_cast<int>(i);
    Search one(scheduler, model, questions[i], settings, watch,
               first_search + static_cast<SearchId>(i), next_run, progress, on_progress);
    auto item = one.run();
    if (!item) break;
    report.items.push_back(std::move(*item));
  }
  report.complete = report.items.size() == questions.size();
  return report;
}

}  // namespace engine

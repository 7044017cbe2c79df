#include "engine/lesson/lesson_query.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/base/types.h"
#include "engine/event/timeline/schedule_turns.h"
#include "engine/event/timeline/timeline.h"
#include "engine/lab/what_if.h"

namespace engine {
namespace {

[[noreturn]] void none(const std::string& why) {
  throw Error(ErrorCode::BadInput, why);
}

// The arguments of a query, looked up in the recording.
struct Arguments {
  const Timeline& recording;
  const LessonQuery& query;
  const RunRecord* run = nullptr;
  const RunRecord* than = nullptr;
  StepRecord step = {};
};

const RunRecord& run_named(const Timeline& recording, RunId id) {
  const RunRecord* run = recording.run(id);
  if (!run) none(fmt::format("the recording has no run {}", id));
  return *run;
}

StepRecord step_named(const RunRecord& run, StepId id) {
  for (const StepRecord& step : run.steps)
    if (step.begun.step == id && step.complete) return step;
  none(fmt::format("run {} has no complete step {}; it has {}", run.id(), id,
                   counted(std::ssize(run.steps), "step")));
}

double median(std::vector<double> values) {
  if (values.empty()) none("the run has no complete step");
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

double own_ms(const StepEnded& ended) {
  return static_cast<double>(ended.propose + ended.forward + ended.verify + ended.commit) / 1e6;
}

double median_of_steps(const RunRecord& run, const std::function<double(const StepEnded&)>& value) {
  std::vector<double> values;
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    if (const StepHead head = run.steps.head(i); head.complete) values.push_back(value(head.ended));
  return median(std::move(values));
}

double forward_ms(const StepEnded& ended) {
  return static_cast<double>(ended.forward) / 1e6;
}

// Rows of a step that propose a token.
std::vector<int> proposals_of(const StepRecord& step) {
  std::vector<int> rows;
  for (std::size_t i = 0; i < step.verified.fate.size(); ++i) {
    const RowFate fate = step.verified.fate[i];
    if (fate != RowFate::Context && fate != RowFate::Window) rows.push_back(static_cast<int>(i));
  }
  if (rows.empty()) none(fmt::format("step {} proposed no token", step.begun.step));
  return rows;
}

std::size_t proposal_named(const Arguments& a) {
  const std::vector<int> rows = proposals_of(a.step);
  if (a.query.token < 1 || a.query.token > std::ssize(rows))
    none(fmt::format("step {} has no proposal {}; it has {}", a.step.begun.step, a.query.token,
                     rows.size()));
  return static_cast<std::size_t>(rows[static_cast<std::size_t>(a.query.token) - 1]);
}

RowFate fate_of(const StepRecord& step, int row) {
  return step.verified.fate[static_cast<std::size_t>(row)];
}

LessonAnswer number(double value, const char* unit = "") {
  return {.kind = AnswerKind::Number, .number = value, .text = number_words(value, unit)};
}

LessonAnswer percent_at(const Arguments& a, const std::vector<float>& values, const char* what) {
  const std::size_t row = proposal_named(a);
  if (row >= values.size() || values[row] < 0)
    none(fmt::format("{} of proposal {} of step {} was not recorded", what, a.query.token,
                     a.step.begun.step));
  return number(std::round(1000.0 * values[row]) / 10, " %");
}

LessonAnswer yes_no(bool yes) {
  return {.kind = AnswerKind::YesNo, .number = yes ? 1.0 : 0.0, .text = yes ? "yes" : "no"};
}

LessonAnswer words(std::string text) {
  return {.kind = AnswerKind::Text, .text = std::move(text)};
}

LessonAnswer which(std::vector<std::string> options, std::vector<std::size_t> right) {
  if (options.size() < 2) none("there are fewer than two options to choose from");
  if (right.empty()) none("none of the options is right");
  LessonAnswer answer{
      .kind = AnswerKind::Which, .options = std::move(options), .right = std::move(right)};
  for (const std::size_t i : answer.right)
    answer.text += (answer.text.empty() ? "" : ", ") + answer.options[i];
  return answer;
}

std::string quoted(const std::string& text) {
  return '"' + printable(text) + '"';
}

std::string piece(const Arguments& a, TokenId id) {
  return quoted(a.recording.name_of(*a.run, id));
}

std::string text_of_rows(const Arguments& a, const std::vector<int>& rows) {
  std::vector<TokenId> ids;
  for (const int row : rows)
    ids.push_back(a.step.drafted.tree.token[static_cast<std::size_t>(row)]);
  return quoted(a.recording.text_of(*a.run, ids));
}

// Branches of the proposals, from the first level to each leaf.
std::vector<std::vector<int>> branches_of(const StepRecord& step) {
  const TokenTree& tree = step.drafted.tree;
  const std::vector<int> rows = proposals_of(step);
  std::vector<std::vector<int>> branches;
  for (const int row : rows) {
    const bool is_leaf = std::ranges::none_of(
        rows, [&](int other) { return tree.parent[static_cast<std::size_t>(other)] == row; });
    if (!is_leaf) continue;
    std::vector<int> branch;
    for (int at = row; at >= 0; at = tree.parent[static_cast<std::size_t>(at)])
      if (std::ranges::binary_search(rows, at)) branch.push_back(at);
    std::ranges::reverse(branch);
    branches.push_back(std::move(branch));
  }
  return branches;
}

std::ptrdiff_t n_accepted_in(const StepRecord& step, const std::vector<int>& branch) {
  return std::ranges::count_if(branch,
                               [&](int row) { return fate_of(step, row) == RowFate::Accepted; });
}

LessonAnswer surviving_path(const Arguments& a) {
  const auto branches = branches_of(a.step);
  std::vector<std::string> options;
  std::ptrdiff_t most = 0;
  for (const std::vector<int>& branch : branches) {
    options.push_back(text_of_rows(a, branch));
    most = std::max(most, n_accepted_in(a.step, branch));
  }
  std::vector<std::size_t> right;
  for (std::size_t i = 0; most > 0 && i < branches.size(); ++i)
    if (n_accepted_in(a.step, branches[i]) == most) right.push_back(i);
  return which(std::move(options), std::move(right));
}

LessonAnswer first_rejected(const Arguments& a) {
  std::vector<std::string> options;
  std::vector<std::size_t> right;
  for (const int row : proposals_of(a.step)) {
    if (fate_of(a.step, row) == RowFate::Rejected && right.empty()) right.push_back(options.size());
    options.push_back(piece(a, a.step.drafted.tree.token[static_cast<std::size_t>(row)]));
  }
  return which(std::move(options), std::move(right));
}

// A block that a step refined, and all states of the block.
struct Block {
  std::vector<std::vector<TokenId>> states;  // until the block has converged
  std::size_t at = 0;                        // the state after the step
  int n_iterations = 0;                      // until the block has converged
};

Block block_of(const Arguments& a) {
  if (a.step.blocks.empty()) none(fmt::format("step {} refined no block", a.step.begun.step));
  const BlockRefined& wanted = a.step.blocks.back();
  Block block;
  bool converged = false;
  const auto take = [&](const BlockRefined& state) {
    if (state.block != wanted.block || converged) return;
    if (state.first_pos != wanted.first_pos || state.tokens.size() != wanted.tokens.size())
      none(fmt::format("block {} moves with each step, so its states cannot be compared",
                       wanted.block));
    if (state.iteration == wanted.iteration) block.at = block.states.size();
    block.states.push_back(state.tokens);
    converged = state.converged;
    block.n_iterations = state.iteration;
  };
  for (const BlockRefined& state : a.run->early_blocks) take(state);
  for (const StepRecord& step : a.run->steps)
    for (const BlockRefined& state : step.blocks) take(state);
  if (!converged) none(fmt::format("block {} did not converge", wanted.block));
  return block;
}

LessonAnswer already_final(const Arguments& a) {
  const Block block = block_of(a);
  const std::vector<TokenId>&now = block.states[block.at], &last = block.states.back();
  std::vector<std::string> options;
  std::vector<std::size_t> right;
  bool prefix_is_correct = true;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const bool correct = now[i] == last[i];
    if (prefix_is_correct && correct) continue;  // proved by agreement of the prefix
    prefix_is_correct = false;
    if (correct) right.push_back(options.size());
    options.push_back(fmt::format("{} at position {}", piece(a, now[i]), i + 1));
  }
  return which(std::move(options), std::move(right));
}

int n_correct_prefix(const std::vector<TokenId>& state, const std::vector<TokenId>& last) {
  return static_cast<int>(std::ranges::mismatch(state, last).in1 - state.begin());
}

LessonAnswer fast_forward(const Arguments& a) {
  const Block block = block_of(a);
  if (block.at == 0) none("the step has no earlier state of the block");
  const std::vector<TokenId>& last = block.states.back();
  return number(n_correct_prefix(block.states[block.at], last) -
                n_correct_prefix(block.states[block.at - 1], last));
}

LessonAnswer block_iterations(const Arguments& a) {
  return number(block_of(a).n_iterations);
}

// The n-grams that a step took from the pool, with the accepted tokens of each.
struct Candidate {
  std::string text;
  int n_accepted = 0;
};

std::vector<Candidate> candidates_of(const Arguments& a) {
  std::map<int, std::vector<int>> rows;  // by n-gram
  for (const int row : proposals_of(a.step)) {
    const RowTag& tag = a.step.drafted.tree.tag[static_cast<std::size_t>(row)];
    if (tag.kind == RowTag::Kind::Guess) rows[tag.a].push_back(row);
  }
  std::vector<Candidate> candidates;
  for (const auto& [ngram, of] : rows)
    candidates.push_back({text_of_rows(a, of), static_cast<int>(n_accepted_in(a.step, of))});
  if (candidates.empty())
    none(fmt::format("step {} took no n-gram from the pool", a.step.begun.step));
  return candidates;
}

LessonAnswer hitting_ngram(const Arguments& a) {
  std::vector<std::string> options;
  std::vector<std::size_t> right;
  for (const Candidate& candidate : candidates_of(a)) {
    if (candidate.n_accepted > 0) right.push_back(options.size());
    options.push_back(candidate.text);
  }
  return which(std::move(options), std::move(right));
}

LessonAnswer hits(const Arguments& a) {
  return yes_no(
      std::ranges::any_of(candidates_of(a), [](const Candidate& c) { return c.n_accepted > 0; }));
}

LessonAnswer rows_of_kind(const Arguments& a, RowTag::Kind kind) {
  return number(
      static_cast<double>(std::ranges::count(a.step.drafted.tree.tag, kind, &RowTag::kind)));
}

// Guesses that were left unverified, beside the tokens of the other run at the same positions.
struct Unverified {
  std::vector<std::string> options;
  std::vector<std::size_t> wrong, right;
};

Unverified unverified_of(const Arguments& a) {
  if (!a.run->finished || a.run->finished->approximate.empty())
    none(fmt::format("run {} left no unverified token", a.run->id()));
  if (a.run->started.prompt_tokens != a.than->started.prompt_tokens)
    none(fmt::format("runs {} and {} have different prompts", a.run->id(), a.than->id()));
  Unverified all;
  std::size_t at = a.run->tokens.size();
  for (const TokenId id : a.run->finished->approximate) {
    if (at >= a.than->tokens.size())
      none(fmt::format("run {} is too short: it has no token {}", a.than->id(), at + 1));
    (a.than->tokens[at].id == id ? all.right : all.wrong).push_back(all.options.size());
    all.options.push_back(piece(a, id));
    ++at;
  }
  return all;
}

LessonAnswer longest_part(const Arguments& a) {
  static constexpr const char* kParts[] = {"proposing tokens", "the forward pass of the model",
                                           "verifying the proposals", "committing the tokens"};
  const std::array<double, 4> ms{
      median_of_steps(*a.run, [](const StepEnded& e) { return double(e.propose); }),
      median_of_steps(*a.run, [](const StepEnded& e) { return double(e.forward); }),
      median_of_steps(*a.run, [](const StepEnded& e) { return double(e.verify); }),
      median_of_steps(*a.run, [](const StepEnded& e) { return double(e.commit); })};
  const auto longest = static_cast<std::size_t>(std::ranges::max_element(ms) - ms.begin());
  return which({std::begin(kParts), std::end(kParts)}, {longest});
}

// Share of the time from the first turn to the last forward in which the target computed or verified.
LessonAnswer target_busy(const Arguments& a) {
  const Schedule schedule = schedule_of(a.recording.runs());
  if (schedule.forwards.empty()) none("no run took part in a schedule");
  Nanoseconds begin = schedule.forwards.front().begin, worked = 0;
  const Nanoseconds end = schedule.forwards.back().ended;
  for (const ScheduleTurn& turn : schedule.turns)
    if (turn.may_draft >= 0) begin = std::min(begin, turn.may_draft);
  for (const ScheduleForward& forward : schedule.forwards) worked += forward.ended - forward.begin;
  if (end <= begin) none("the schedule has no duration");
  return number(std::round(100.0 * double(worked) / double(end - begin)), " %");
}

LessonAnswer n_branches(const Arguments& a) {
  const Schedule schedule = schedule_of(a.recording.runs());
  if (schedule.empty()) none("no run took part in a schedule");
  return number(schedule.n_branches);
}

LessonAnswer speedup(const Arguments& a) {
  const std::optional<double> value = a.recording.speedup(*a.run);
  if (const std::string why = a.recording.why_other_load(*a.run); !why.empty())
    none(fmt::format("run {}: {}. {}", a.run->id(), kOtherLoad, why));
  if (!value) none(fmt::format("run {} has no plain run beside it to compare with", a.run->id()));
  return number(std::round(*value * 100) / 100);
}

LessonAnswer same_text(const Arguments& a) {
  return yes_no(
      std::ranges::equal(a.run->tokens, a.than->tokens, {}, &TokenRecord::id, &TokenRecord::id));
}

double weights_mb(const Arguments& a) {
  const ModelLoaded* model = a.recording.model(a.run->started.model);
  if (!model || model->weight_bytes <= 0) none("the size of the weights was not recorded");
  return std::round(static_cast<double>(model->weight_bytes) / 1e6);
}

LessonAnswer option_of(const Arguments& a) {
  const auto found = a.run->started.options.find(a.query.option);
  if (found == a.run->started.options.end())
    none(fmt::format("the decoder of run {} has no option {}", a.run->id(),
                     in_quotes(a.query.option)));
  return words(found->second);
}

LessonAnswer committed_text(const Arguments& a) {
  std::vector<TokenId> ids = a.step.committed.tokens;
  if (ids.empty()) none(fmt::format("step {} committed no token", a.step.begun.step));
  return words(quoted(a.recording.text_of(*a.run, ids)));
}

// The speed-up of a run with other numbers of proposals after one another, derived from its acceptances and step costs.
std::vector<double> speedups_by_depth(const Arguments& a) {
  const RecordedShape shape = recorded_shape(a.recording, *a.run);
  if (!shape.why.empty()) none(shape.why);
  if (largest(shape, Knob::Depth) == 0) none(fmt::format("run {} proposed nothing", a.run->id()));
  return speedups_over(shape, Knob::Depth, shape.recorded, RowCost::Recorded);
}

LessonAnswer best_depth(const Arguments& a) {
  const std::vector<double> speedups = speedups_by_depth(a);
  return number(static_cast<double>(std::ranges::max_element(speedups) - speedups.begin()));
}

LessonAnswer slower_from_depth(const Arguments& a) {
  const auto from = below_one_from(speedups_by_depth(a));
  if (!from) none(fmt::format("run {} would have been faster with any number", a.run->id()));
  return number(static_cast<double>(*from));
}

double mean_rows(const Arguments& a) {
  if (a.run->totals.n_steps == 0) none("the run has no complete step");
  return std::round(10.0 * double(a.run->totals.n_rows) / double(a.run->totals.n_steps)) / 10;
}

struct Entry {
  LessonQueryInfo info;
  LessonAnswer (*answer)(const Arguments&);
};

using K = AnswerKind;
// Columns: name, kind; needs run, than, step, token, option; unit, phrase.
// clang-format off
const Entry kEntries[] = {
    {{"steps", K::Number, true, false, false, false, false, "", "steps of the run"},
     [](const Arguments& a) { return number(double(a.run->totals.n_steps)); }},
    {{"tokens", K::Number, true, false, false, false, false, "", "tokens that the run generated"},
     [](const Arguments& a) { return number(double(a.run->tokens.size())); }},
    {{"tokens_per_step", K::Number, true, false, false, false, false, "", "mean number of tokens per step"},
     [](const Arguments& a) { return number(std::round(a.run->tokens_per_step() * 100) / 100); }},
    {{"mean_rows", K::Number, true, false, false, false, false, "", "mean number of rows per step"},
     [](const Arguments& a) { return number(mean_rows(a)); }},
    {{"speedup", K::Number, true, false, false, false, false, "", "time of the plain run / time of the run"},
     speedup},
    {{"faster", K::YesNo, true, false, false, false, false, "", "if the run took less time than the plain run"},
     [](const Arguments& a) { return yes_no(speedup(a).number > 1); }},
    {{"step_ms", K::Number, true, false, false, false, false, " ms", "median time of a step"},
     [](const Arguments& a) { return number(std::round(median_of_steps(*a.run, own_ms) * 10) / 10, " ms"); }},
    {{"forward_cost", K::Number, true, true, false, false, false, "", "median time of a forward pass / that of run `than`"},
     [](const Arguments& a) {
       return number(std::round(median_of_steps(*a.run, forward_ms) / median_of_steps(*a.than, forward_ms) * 100) / 100);
     }},
    {{"longest_part", K::Which, true, false, false, false, false, "", "the part of a step that takes longest"},
     longest_part},
    {{"weights_mb", K::Number, true, false, false, false, false, " MB", "size of the model's weights"},
     [](const Arguments& a) { return number(weights_mb(a), " MB"); }},
    {{"same_text", K::YesNo, true, true, false, false, false, "", "if both runs generated the same tokens"},
     same_text},
    {{"rows", K::Number, true, false, true, false, false, "", "rows of the step's forward pass"},
     [](const Arguments& a) { return number(double(a.step.drafted.tree.n_rows())); }},
    {{"window_rows", K::Number, true, false, true, false, false, "", "rows of the step that belong to Lookahead's window"},
     [](const Arguments& a) { return rows_of_kind(a, RowTag::Kind::Window); }},
    {{"proposed", K::Number, true, false, true, false, false, "", "tokens that the step proposed"},
     [](const Arguments& a) { return number(double(proposals_of(a.step).size())); }},
    {{"accepted", K::Number, true, false, true, false, false, "", "proposals that the step accepted"},
     [](const Arguments& a) { proposals_of(a.step); return number(a.step.verified.n_accepted); }},
    {{"committed", K::Number, true, false, true, false, false, "", "tokens that the step added to the answer"},
     [](const Arguments& a) { return number(double(a.step.committed.tokens.size())); }},
    {{"first_rejected", K::Which, true, false, true, false, false, "", "the proposal that the step rejected first"},
     first_rejected},
    {{"target_probability", K::Number, true, false, true, true, false, " %", "the target's probability of a proposal"},
     [](const Arguments& a) { return percent_at(a, a.step.verified.p, "the target's probability"); }},
    {{"draft_probability", K::Number, true, false, true, true, false, " %", "the draft's probability of a proposal"},
     [](const Arguments& a) { return percent_at(a, a.step.drafted.q, "the draft's probability"); }},
    {{"keep_probability", K::Number, true, false, true, true, false, " %", "the probability that a proposal is accepted"},
     [](const Arguments& a) { return percent_at(a, a.step.verified.keep, "the acceptance probability"); }},
    {{"draw", K::Number, true, false, true, true, false, " %", "the random number that was drawn for a proposal"},
     [](const Arguments& a) { return percent_at(a, a.step.verified.uniform, "the random number"); }},
    {{"kept", K::YesNo, true, false, true, true, false, "", "if a proposal was accepted"},
     [](const Arguments& a) { return yes_no(a.step.verified.fate[proposal_named(a)] == RowFate::Accepted); }},
    {{"fast_forward", K::Number, true, false, true, false, false, "", "tokens that joined the correct prefix of the block in the step"},
     fast_forward},
    {{"iterations", K::Number, true, false, true, false, false, "", "iterations until the step's block converged"},
     block_iterations},
    {{"already_final", K::Which, true, false, true, false, false, "", "tokens after the first wrong one of the block that are final already"},
     already_final},
    {{"candidates", K::Number, true, false, true, false, false, "", "n-grams of the pool that the step verified"},
     [](const Arguments& a) { return number(double(candidates_of(a).size())); }},
    {{"hits", K::YesNo, true, false, true, false, false, "", "if a token of one of these n-grams was accepted"},
     hits},
    {{"hitting_ngram", K::Which, true, false, true, false, false, "", "the n-gram of which a token was accepted"},
     hitting_ngram},
    {{"paths", K::Number, true, false, true, false, false, "", "paths of the step's tree"},
     [](const Arguments& a) { return number(double(branches_of(a.step).size())); }},
    {{"surviving_path", K::Which, true, false, true, false, false, "", "the path of the tree with the most accepted tokens"},
     surviving_path},
    {{"unverified", K::Number, true, true, false, false, false, "", "tokens that the run left unverified"},
     [](const Arguments& a) { return number(double(unverified_of(a).options.size())); }},
    {{"wrong_unverified", K::Number, true, true, false, false, false, "", "unverified tokens that differ from those of run `than`"},
     [](const Arguments& a) { return number(double(unverified_of(a).wrong.size())); }},
    {{"wrong_token", K::Which, true, true, false, false, false, "", "the unverified tokens that differ from those of run `than`"},
     [](const Arguments& a) { Unverified all = unverified_of(a); return which(std::move(all.options), std::move(all.wrong)); }},
    {{"branches", K::Number, false, false, false, false, false, "", "sequences that SEED decoded at once"},
     n_branches},
    {{"target_busy", K::Number, false, false, false, false, false, " %", "share of the schedule in which the target computed"},
     target_busy},
    {{"best_depth", K::Number, true, false, false, false, false, "", "proposals after one another with which the run would have been fastest (derived, as in What if)"},
     best_depth},
    {{"slower_from_depth", K::Number, true, false, false, false, false, "", "proposals after one another from which on the run would have been slower than the plain run (derived)"},
     slower_from_depth},
    {{"right_token", K::Which, true, true, false, false, false, "", "the unverified tokens that equal those of run `than`"},
     [](const Arguments& a) { Unverified all = unverified_of(a); return which(std::move(all.options), std::move(all.right)); }},
    {{"prompt", K::Text, true, false, false, false, false, "", "the prompt"},
     [](const Arguments& a) { return words(quoted(a.run->started.prompt)); }},
    {{"answer_text", K::Text, true, false, false, false, false, "", "the text that the run generated"},
     [](const Arguments& a) { return words(quoted(a.recording.generated_text(*a.run, 0, a.run->tokens.size()))); }},
    {{"option", K::Text, true, false, false, false, true, "", "the value of an option of the run's decoder"},
     option_of},
    {{"proposed_text", K::Text, true, false, true, false, false, "", "the tokens that the step proposed, as text"},
     [](const Arguments& a) { return words(text_of_rows(a, proposals_of(a.step))); }},
    {{"proposal", K::Text, true, false, true, true, false, "", "one proposal, as text"},
     [](const Arguments& a) { return words(piece(a, a.step.drafted.tree.token[proposal_named(a)])); }},
    {{"committed_text", K::Text, true, false, true, false, false, "", "the tokens that the step added, as text"},
     committed_text},
};
// clang-format on

}  // namespace

std::span<const LessonQueryInfo> lesson_queries() {
  static const auto infos = [] {
    std::vector<LessonQueryInfo> all;
    for (const Entry& entry : kEntries) all.push_back(entry.info);
    return all;
  }();
  return infos;
}

const LessonQueryInfo* lesson_query(const std::string& name) {
  for (const LessonQueryInfo& info : lesson_queries())
    if (name == info.name) return &info;
  return nullptr;
}

LessonAnswer answer_of(const LessonQuery& query, const Timeline& recording) {
  const Entry* entry = nullptr;
  for (const Entry& candidate : kEntries)
    if (query.name == candidate.info.name) entry = &candidate;
  if (!entry) none(fmt::format("there is no query {}", in_quotes(query.name)));
  Arguments arguments{recording, query};
  if (entry->info.needs_run) arguments.run = &run_named(recording, query.run);
  if (entry->info.needs_than) arguments.than = &run_named(recording, query.than);
  if (entry->info.needs_step) arguments.step = step_named(*arguments.run, query.step);
  return entry->answer(arguments);
}

std::string number_words(double value, const char* unit) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + unit;
}

}  // namespace engine

#include "ui/prepare/tokens/describe_place.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/timeline/proposals.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/describe.h"
#include "ui/prepare/tokens/row_origin.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/token_tree.h"

namespace ui {
namespace {

const char* word_of(engine::RowFate fate) {
  static constexpr const char* kWords[] = {"context", "accepted", "rejected",
                                           "unused (not verified)", "window cell"};
  return kWords[static_cast<int>(fate)];
}

Mean mean_of_fate(engine::RowFate fate, engine::RowTag::Kind kind) {
  if (fate == engine::RowFate::Accepted) return Mean::Accepted;
  if (fate == engine::RowFate::Rejected) return Mean::Rejected;
  if (fate == engine::RowFate::Unused) return Mean::Unused;
  return mean_of(kind);
}

const engine::TokenRecord* token_at(const engine::RunRecord& run, int position) {
  if (run.tokens.empty() || position < run.tokens.front().pos) return nullptr;
  const auto i = static_cast<std::size_t>(position - run.tokens.front().pos);
  return i < run.tokens.size() ? &run.tokens[i] : nullptr;
}

// Returns the meaning of a token of the prompt.
Mean mean_in_prompt(const engine::RunRecord& run, int position) {
  return run.is_approximate_in_prompt(position) ? Mean::Approximate : Mean::Prefix;
}

// Returns the guess at a position that the run kept after its text without verification; nullptr if there is none.
const engine::TokenId* approximate_at(const engine::RunRecord& run, int position) {
  if (!run.finished) return nullptr;
  const int first = run.tokens.empty() ? run.first_generated() : run.tokens.back().pos + 1;
  const auto i = static_cast<std::size_t>(position - first);
  if (position < first || i >= run.finished->approximate.size()) return nullptr;
  return &run.finished->approximate[i];
}

std::string probe_words(float score) {
  return fmt::format("{:.2f} x the mean of the window", score);
}

// Adds the row that the answer probe attends to most.
void add_probe_rows(PlaceFacts& facts, const engine::Verified& v) {
  const auto most = std::ranges::max_element(v.probe);
  if (most == v.probe.end() || *most < 0) return;
  facts.rows.emplace_back("probe attends most to",
                          fmt::format("row {}, {}", most - v.probe.begin(), probe_words(*most)));
}

// Adds the decoder's choice of the step's size, with its expected result.
void add_size_rows(PlaceFacts& facts, const engine::SizeDecision& chosen) {
  if (chosen.plain_ms <= 0) return;
  const auto time = [](float ms) { return short_time(static_cast<double>(ms) * 1e6); };
  facts.rows.emplace_back("size chosen",
                          fmt::format("{}{}", chosen.size == 0 ? "none" : with_commas(chosen.size),
                                      chosen.probe ? ", to learn from it" : ""));
  facts.rows.emplace_back("expected",
                          fmt::format("{:.2f} tokens in {}; a plain step {}", chosen.tokens,
                                      time(chosen.ms), time(chosen.plain_ms)));
}

void add_step_rows(PlaceFacts& facts, const engine::StepRecord& step) {
  auto& rows = facts.rows;
  if (step.has_drafted) add_size_rows(facts, step.drafted.decision);
  if (step.has_verified) {
    const engine::Verified& v = step.verified;
    rows.emplace_back("rows, proposed",
                      fmt::format("{}, {}", std::max(step.begun.n_rows, step.drafted.tree.n_rows()),
                                  v.n_proposed));
    rows.emplace_back("accepted, rejected, unused",
                      fmt::format("{}, {}, {}", v.n_accepted, v.n_rejected, v.n_unused));
    add_probe_rows(facts, v);
  }
  if (step.has_committed)
    rows.emplace_back("committed", fmt::format("+{}", step.committed.tokens.size()));
  if (!step.complete) return;
  const engine::StepEnded& e = step.ended;
  rows.emplace_back("forward", short_time(static_cast<double>(e.forward)));
  rows.emplace_back("propose", short_time(static_cast<double>(e.propose)));
  rows.emplace_back("verify, commit",
                    fmt::format("{}, {}", short_time(static_cast<double>(e.verify)),
                                short_time(static_cast<double>(e.commit))));
  rows.emplace_back("kv length", fmt::format("{}", e.kv_len));
  if (const std::size_t n = step.committed.tokens.size(); n > 0)
    rows.emplace_back("time per token",
                      short_time(static_cast<double>(e.propose + e.forward + e.verify + e.commit) /
                                 static_cast<double>(n)),
                      Truth::Derived);
}

// Returns the row that proposed a committed token; -1 if there is none.
int row_of(const engine::StepRecord& step, const engine::TokenRecord& token) {
  const engine::TokenTree& tree = step.drafted.tree;
  for (int row = 0; row < tree.n_rows(); ++row) {
    const engine::RowTag tag = tree.tag[row];
    const bool taken = static_cast<std::size_t>(row) < step.verified.fate.size() &&
                       step.verified.fate[row] == engine::RowFate::Accepted;
    if (taken && tag.kind == token.origin.kind && tag.a == token.origin.a &&
        tag.b == token.origin.b && tree.token[row] == token.id)
      return row;
  }
  return -1;
}

// Adds the origin of a row and, if it was copied, how often its token followed there.
void add_origin(PlaceFacts& facts,
                const engine::RunRecord& run,
                const engine::StepRecord& step,
                int row) {
  facts.rows.emplace_back("from", row_origin(run, step, row));
  const engine::GuessSource* source = source_of(step, row);
  if (const std::string seen = source ? seen_words(*source) : ""; !seen.empty())
    facts.rows.emplace_back("followed there", seen);
}

void add_token_rows(PlaceFacts& facts,
                    const engine::RunRecord& run,
                    const engine::TokenRecord& token,
                    const engine::StepRecord* step) {
  facts.token = token.id;
  facts.mean = mean_of(token.status);
  if (facts.mean == Mean::Accepted) facts.origin = mean_of(token.origin.kind);
  const int row = step ? row_of(*step, token) : -1;
  if (row >= 0)
    add_origin(facts, run, *step, row);
  else
    facts.rows.emplace_back("from", row_origin(token.origin, proposer_of(run)));
  facts.rows.emplace_back("result", look(facts.mean).name);
  facts.rows.emplace_back("p (target)", fmt::format("{:.3f}", std::exp(token.logp)));
  facts.rows.emplace_back("token id", fmt::format("{}", token.id));
  if (run.agreement)
    facts.rows.emplace_back(
        "agreement",
        run.agreement->first_difference < 0 ||
                token.pos - run.tokens.front().pos < run.agreement->first_difference
            ? "as plain decoding"
            : "after the first difference",
        Truth::Hindsight);
}

// Adds q and p of a proposal.
void add_probabilities(PlaceFacts& facts, const engine::StepRecord& step, int row) {
  if (!is_proposal(step.drafted.tree.tag[row].kind)) return;
  const float q = engine::value_at(step.drafted.q, row), p = engine::value_at(step.verified.p, row);
  if (q >= 0) facts.rows.emplace_back("q (proposal)", fmt::format("{:.3f}", q));
  if (p >= 0) facts.rows.emplace_back("p (target)", fmt::format("{:.3f}", p));
  if (q > 0 && p >= 0)
    facts.rows.emplace_back("p / q", fmt::format("{:.2f}", p / q), Truth::Derived);
}

// Adds the number, rows and time of the draft model's forwards.
void add_draft_rows(PlaceFacts& facts, const engine::StepRecord& step) {
  if (step.drafted.forwards.empty()) return;
  double sum = 0;
  int n_rows = 0;
  for (const engine::DraftForward& forward : step.drafted.forwards) {
    sum += static_cast<double>(forward.ended - forward.begun);
    n_rows += forward.n_rows;
  }
  facts.rows.emplace_back("draft forwards, rows",
                          fmt::format("{}, {}", step.drafted.forwards.size(), n_rows));
  facts.rows.emplace_back("draft's time", short_time(sum));
}

void add_row_rows(PlaceFacts& facts,
                  const engine::RunRecord& run,
                  const engine::StepRecord& step,
                  int row) {
  const engine::TokenTree& tree = step.drafted.tree;
  if (row < 0 || row >= tree.n_rows()) return;
  facts.token = tree.token[row];
  facts.mean = mean_of(tree.tag[row].kind);
  add_origin(facts, run, step, row);
  if (!tree.owner.empty())
    facts.rows.emplace_back("computed by", fmt::format("rank {}", tree.owner[row]));
  if (static_cast<std::size_t>(row) < step.verified.fate.size()) {
    const engine::RowFate fate = step.verified.fate[row];
    facts.mean = mean_of_fate(fate, tree.tag[row].kind);
    facts.rows.emplace_back("result", word_of(fate));
  }
  if (static_cast<std::size_t>(row) < step.verified.uniform.size() &&
      step.verified.uniform[row] >= 0) {
    const float u = step.verified.uniform[row], keep = step.verified.keep[row];
    facts.rows.emplace_back("acceptance probability", fmt::format("{:.3f}", keep));
    facts.rows.emplace_back(
        "uniform draw",
        fmt::format("{:.3f}, {}", u, u < keep ? "below: accepted" : "not below: rejected"));
  }
  add_probabilities(facts, step, row);
  if (const float score = engine::value_at(step.verified.probe, row); score >= 0)
    facts.rows.emplace_back("probe's attention", probe_words(score));
  facts.rows.emplace_back(
      "parent row", tree.parent[row] < 0 ? "the prefix" : fmt::format("{}", tree.parent[row]));
}

}  // namespace

std::optional<engine::StepRecord> step_of(const engine::RunRecord& run, engine::StepId step) {
  // Steps are numbered from 0 without gaps: the timeline fills those that a recording lost.
  if (step < 0 || static_cast<std::size_t>(step) >= run.steps.size()) return std::nullopt;
  return run.steps[step];
}

std::string describe_step(const engine::Timeline& timeline,
                          const engine::RunRecord& run,
                          const engine::StepRecord& step) {
  // A step begins before its draft is computed, so its rows are unknown until the draft is complete.
  if (!step.has_committed && step.begun.n_rows == 0)
    return fmt::format("Step {} is running: drafting.", step.begun.step);
  if (!step.has_committed)
    return fmt::format("Step {} is running: {} rows.", step.begun.step, step.begun.n_rows);
  std::string text = fmt::format("Step {}: ", step.begun.step);
  const engine::Verified& v = step.verified;
  if (step.has_verified && v.n_proposed > 0)
    text += fmt::format("{} proposed, {} accepted, {} rejected, {} unused; ", v.n_proposed,
                        v.n_accepted, v.n_rejected, v.n_unused);
  const std::int64_t n = std::ssize(step.committed.tokens);
  if (n > 0 && !step.committed.status.empty() &&
      step.committed.status.back() == engine::TokenStatus::Bonus)
    text += fmt::format("bonus \"{}\"; ", cell_text(timeline, run, step.committed.tokens.back()));
  text += engine::counted(n, "token");
  if (step.complete) {
    const engine::StepEnded& e = step.ended;
    text += " in " + short_time(static_cast<double>(e.propose + e.forward + e.verify + e.commit));
  }
  return text + ".";
}

PlaceFacts describe_place(const engine::Timeline& timeline,
                          const engine::RunRecord& run,
                          const Place& place) {
  PlaceFacts facts;
  std::optional<engine::StepRecord> step = step_of(run, place.step);
  const engine::TokenRecord* token = place.row < 0 ? token_at(run, place.position) : nullptr;
  if (token && !step) step = step_of(run, token->step);
  if (step) facts.title = fmt::format("step {}", step->begun.step);
  if (place.position >= 0)
    facts.title +=
        fmt::format("{}position {}", facts.title.empty() ? "" : " \xC2\xB7 ", place.position);
  if (token && (place.step < 0 || token->step == place.step || place.row < 0)) {
    add_token_rows(facts, run, *token, step ? &*step : nullptr);
    if (const int row = step ? row_of(*step, *token) : -1; row >= 0 && !step->drafted.q.empty())
      facts.rows.emplace_back("q (proposal)",
                              fmt::format("{:.3f}", engine::value_at(step->drafted.q, row)));
  } else if (place.position >= 0 && place.row < 0 &&
             place.position < static_cast<int>(run.started.prompt_tokens.size())) {
    facts.token = run.started.prompt_tokens[place.position];
    facts.rows.emplace_back("from", "the prompt");
    facts.mean = mean_in_prompt(run, place.position);
    if (facts.mean == Mean::Approximate)
      facts.rows.emplace_back("result", meaning_of(Mean::Approximate));
  } else if (const engine::TokenId* guess = approximate_at(run, place.position);
             guess && place.row < 0) {
    facts.token = *guess;
    facts.mean = Mean::Approximate;
    facts.rows.emplace_back("from", "the window at the end of the run");
    facts.rows.emplace_back("result", meaning_of(Mean::Approximate));
    facts.rows.emplace_back("token id", fmt::format("{}", *guess));
  }
  if (!step) return facts;
  if (place.row >= 0) add_row_rows(facts, run, *step, place.row);
  add_step_rows(facts, *step);
  add_draft_rows(facts, *step);
  for (const engine::PayloadKind kind : engine::kAllPayloadKinds) {
    if (const engine::PayloadDropped* gone = run.dropped_at(kind, step->begun.step))
      facts.rows.emplace_back("payload", engine::describe(*gone));
  }
  facts.sentence = describe_step(timeline, run, *step);
  return facts;
}

namespace {

struct ChosenToken {
  int position = 0;
  engine::TokenId id = 0;
  Mean mean = Mean::Prefix;
};

// Returns the committed tokens and the tokens of the prompt among several places, without rejected proposals.
std::vector<ChosenToken> tokens_of(const engine::RunRecord& run, const Chosen& chosen) {
  std::vector<ChosenToken> tokens;
  for (const Place& place : chosen.places()) {
    if (place.run != run.id() || place.position < 0 || place.row >= 0) continue;
    if (const engine::TokenRecord* token = token_at(run, place.position))
      tokens.push_back({place.position, token->id, mean_of(token->status)});
    else if (place.position < static_cast<int>(run.started.prompt_tokens.size()))
      tokens.push_back({place.position, run.started.prompt_tokens[place.position],
                        mean_in_prompt(run, place.position)});
  }
  std::sort(tokens.begin(), tokens.end(),
            [](const ChosenToken& a, const ChosenToken& b) { return a.position < b.position; });
  return tokens;
}

// Returns the number of tokens by meaning: "accepted 4, bonus 2".
std::string by_meaning(const std::vector<ChosenToken>& tokens) {
  std::string text;
  for (int mean = 0; mean < kMeans; ++mean) {
    const auto n = std::count_if(tokens.begin(), tokens.end(), [mean](const ChosenToken& token) {
      return static_cast<int>(token.mean) == mean;
    });
    if (n > 0)
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : ", ", look(static_cast<Mean>(mean)).name, n);
  }
  return text;
}

struct StepTotals {
  std::int64_t n = 0, tokens = 0, proposed = 0, accepted = 0, rejected = 0;
  double own = 0;  // own compute, ns
};

StepTotals totals_of(const engine::RunRecord& run, const Chosen& chosen) {
  std::vector<engine::StepId> steps;
  for (const Place& place : chosen.places())
    if (place.run == run.id() && place.step >= 0 &&
        static_cast<std::size_t>(place.step) < run.steps.size())
      steps.push_back(place.step);
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  StepTotals sum;
  for (const engine::StepId id : steps) {
    const engine::StepHead step = run.steps.head(static_cast<std::size_t>(id));
    const engine::StepEnded& e = step.ended;
    ++sum.n;
    sum.tokens += step.n_tokens;
    sum.proposed += step.n_proposed;
    sum.accepted += step.n_accepted;
    sum.rejected += step.n_rejected;
    if (step.complete) sum.own += static_cast<double>(e.propose + e.forward + e.verify + e.commit);
  }
  return sum;
}

}  // namespace

std::string text_of(const engine::Timeline& timeline,
                    const engine::RunRecord& run,
                    const Chosen& chosen) {
  const std::vector<ChosenToken> tokens = tokens_of(run, chosen);
  const auto is_approximate = [](const ChosenToken& t) { return t.mean == Mean::Approximate; };
  std::string text;
  for (auto at = tokens.begin(); at != tokens.end();) {
    const bool approximate = is_approximate(*at);
    std::vector<engine::TokenId> ids;
    for (; at != tokens.end() && is_approximate(*at) == approximate; ++at) ids.push_back(at->id);
    const std::string piece = timeline.plain_text_of(run, ids);
    text += approximate ? "~" + piece + "~" : piece;
  }
  return text;
}

PlaceFacts describe_places(const engine::Timeline& timeline,
                           const engine::RunRecord& run,
                           const Chosen& chosen) {
  PlaceFacts facts;
  const std::vector<ChosenToken> tokens = tokens_of(run, chosen);
  const StepTotals sum = totals_of(run, chosen);
  if (!tokens.empty()) {
    const int first = tokens.front().position, last = tokens.back().position;
    const bool whole = last - first + 1 == static_cast<int>(tokens.size());
    const std::string n_tokens = engine::counted(std::ssize(tokens), "token");
    facts.title = n_tokens + " selected";
    facts.rows.emplace_back("positions",
                            fmt::format("{}{} to {}", whole ? "" : "some of ", first, last));
    facts.rows.emplace_back("results", by_meaning(tokens));
    if (sum.n > 0) {
      facts.rows.emplace_back("steps", fmt::format("{}", sum.n));
      facts.rows.emplace_back("own compute of the steps", short_time(sum.own), Truth::Derived);
    }
    facts.sentence = fmt::format("{} at {} {} to {}, of {}: \"{}\".", n_tokens,
                                 tokens.size() == 1 ? "position" : "positions", first, last,
                                 engine::counted(sum.n, "step"), text_of(timeline, run, chosen));
    return facts;
  }
  facts.title = engine::counted(sum.n, "step") + " selected";
  if (!chosen.why().empty()) facts.rows.emplace_back("property", chosen.why());
  facts.rows.emplace_back("committed", fmt::format("+{}", sum.tokens));
  facts.rows.emplace_back("proposed", fmt::format("{}", sum.proposed));
  facts.rows.emplace_back("accepted, rejected", fmt::format("{}, {}", sum.accepted, sum.rejected));
  facts.rows.emplace_back("own compute", short_time(sum.own), Truth::Derived);
  facts.sentence = fmt::format("{}{}{}: {} tokens, {} proposed, {} accepted, {} rejected, in {}.",
                               engine::counted(sum.n, "step"), chosen.why().empty() ? "" : " that ",
                               chosen.why(), sum.tokens, sum.proposed, sum.accepted, sum.rejected,
                               short_time(sum.own));
  return facts;
}

}  // namespace ui

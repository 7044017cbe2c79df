#include "engine/decode/step/stepper.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "engine/decode/control/step_control.h"
#include "engine/decode/registry.h"
#include "engine/decode/verify/sampling.h"
#include "engine/decode/verify/verify.h"
#include "engine/event/clock.h"

namespace engine {
namespace {

/// @param n_rows  0 if the tree is not drafted yet
void emit_begun(EventSink& events, const Lane& lane, Nanoseconds t, int n_rows) {
  events.push(StepBegun{.t = t,
                        .run = lane.run,
                        .step = lane.n_steps,
                        .compute = lane.compute_ns,
                        .kv_len = lane.sequence.cache().length(),
                        .n_rows = n_rows});
}

void emit_drafted(EventSink& events,
                  const Lane& lane,
                  Nanoseconds t,
                  std::vector<std::int32_t> choices) {
  std::vector<DraftForward> forwards = lane.decoder->draft_forwards();
  for (DraftForward& forward : forwards) forward.begun -= t, forward.ended -= t;
  events.push(Drafted{.t = now_ns(),
                      .run = lane.run,
                      .step = lane.n_steps,
                      .tree = lane.tree,
                      .q = lane.decoder->proposal_probabilities(),
                      .forwards = std::move(forwards),
                      .decision = lane.decision,
                      .sources = lane.decoder->guess_sources(),
                      .choices = std::move(choices)});
}

Verified verified_event(const Lane& lane, const StepOutput& out, const Decision& decision) {
  const auto n = lane.tree.token.size();
  Verified event{.t = now_ns(), .run = lane.run, .step = lane.n_steps};
  event.fate = fates_of(lane.tree, decision);
  event.picked.reserve(n);
  event.logp.reserve(n);
  event.margin.reserve(n);
  for (const kernels::Picked& picked : out.picked) {
    event.picked.push_back(picked.id);
    event.logp.push_back(picked.logp);
    event.margin.push_back(picked.margin);
  }
  // Rejection sampling draws its tokens itself, so on the path its tokens replace the target's
  // picks.
  const auto first = static_cast<std::size_t>(leading_rows_of(decision) - 1);
  for (std::size_t i = 0; i < decision.emitted.size(); i++) {
    const auto row = static_cast<std::size_t>(decision.path[first + i]);
    event.picked[row] = decision.emitted[i];
    if (!decision.logp.empty()) event.logp[row] = decision.logp[i];
  }
  if (!decision.draws.empty()) {
    event.uniform.assign(n, -1);
    event.keep.assign(n, -1);
  }
  for (const Draw& draw : decision.draws) {
    event.uniform[static_cast<std::size_t>(draw.row)] = draw.uniform;
    event.keep[static_cast<std::size_t>(draw.row)] = draw.keep;
  }
  event.last_uniform = decision.last_uniform;
  event.p = decision.row_p.empty() ? out.row_p : decision.row_p;
  event.probe = decision.probe;
  // Drops the details of rows that were verified after the sequence's end.
  std::ranges::copy_if(decision.rejection_details, std::back_inserter(event.rejection_details),
                       [&](const auto& w) {
                         return std::ranges::find(decision.path, w.row) != decision.path.end();
                       });
  for (const RowFate fate : event.fate) {
    event.n_accepted += fate == RowFate::Accepted;
    event.n_rejected += fate == RowFate::Rejected;
    event.n_unused += fate == RowFate::Unused;
  }
  event.n_proposed = event.n_accepted + event.n_rejected + event.n_unused;
  return event;
}

Committed committed_event(const Lane& lane, const Decision& decision, const Verified& verified) {
  const auto n = decision.emitted.size();
  Committed event{.run = lane.run, .step = lane.n_steps};
  event.first_pos = static_cast<int>(lane.sequence.tokens().size() - n);
  event.tokens = decision.emitted;
  event.status.assign(n, verified.n_proposed > 0 ? TokenStatus::Bonus : TokenStatus::Plain);
  event.origin.assign(n, RowTag{});
  // Emitted token i follows row path[first + i]. If an accepted row is a child of that row, it
  // proposed the token.
  const auto first = static_cast<std::size_t>(leading_rows_of(decision) - 1);
  for (std::size_t r = 0; r < verified.fate.size(); r++) {
    if (verified.fate[r] != RowFate::Accepted) continue;
    for (std::size_t i = 0; i < n; i++) {
      if (decision.path[first + i] != lane.tree.parent[r]) continue;
      event.status[i] = TokenStatus::Accepted;
      event.origin[i] = lane.tree.tag[r];
    }
  }
  return event;
}

/// Appends the facts of each emitted token to the lane.
void add_facts(Lane& lane,
               const Decision& decision,
               const Verified& verified,
               const Committed& committed) {
  const auto first = static_cast<std::size_t>(leading_rows_of(decision) - 1);
  for (std::size_t i = 0; i < decision.emitted.size(); i++) {
    const auto row = static_cast<std::size_t>(decision.path[first + i]);
    lane.facts.push_back(
        {.logp = verified.logp[row], .status = committed.status[i], .origin = committed.origin[i]});
  }
}

/// Appends the margin of each emitted token over the second best to the lane.
void add_margins(Lane& lane, const StepOutput& out, const Decision& decision) {
  if (rejects(lane.sampling)) return;
  const auto first = static_cast<std::size_t>(leading_rows_of(decision) - 1);
  for (std::size_t i = 0; i < decision.emitted.size(); i++) {
    const kernels::Picked& picked = out.picked[static_cast<std::size_t>(decision.path[first + i])];
    lane.margins.push_back(picked.margin);
    lane.n_near_ties += is_near_tie(picked);
  }
}

/// Adds the size that was chosen for the step and what came of it.
void add_size(Lane& lane, std::size_t n_emitted, double ms) {
  const SizeDecision& chosen = lane.decision;
  if (chosen.plain_ms <= 0) return;
  SizeSums& sums = lane.sizes;
  sums.n_steps++;
  sums.n_plain += lane.tree.n_rows() == 1;
  sums.n_probes += chosen.probe;
  sums.expected_tokens += chosen.tokens;
  sums.expected_ms += chosen.ms;
  sums.plain_ms += chosen.plain_ms;
  if (lane.control) sums.rows_ms += lane.control->ms(lane.tree.n_rows());
  sums.ms += ms;
  sums.n_tokens += static_cast<std::int64_t>(n_emitted);
}

/// Keeps the text of a decoder's notice.
void keep_notice(Lane& lane, const Event& event) {
  const auto* notice = std::get_if<Notice>(&event);
  if (notice && std::ranges::find(lane.notices, notice->text) == lane.notices.end())
    lane.notices.push_back(notice->text);
}

/// A decoder's event with its time, run and step filled in.
Event stamped(Event event, const Lane& lane) {
  std::visit(
      [&](auto& e) {
        using E = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<E, PoolChanged> || std::is_same_v<E, BlockRefined> ||
                      std::is_same_v<E, Notice>) {
          e.t = now_ns();
        }
        if constexpr (std::is_same_v<E, PoolChanged> || std::is_same_v<E, BlockRefined>) {
          e.run = lane.run;
          e.step = lane.n_steps;
        }
      },
      event);
  return event;
}

}  // namespace

/// Outputs and times of one lane's part of a step.
struct Stepper::Notes {
  StepOutput out;
  std::vector<std::uint8_t> greedy_rows;
  Nanoseconds forward = 0, verify = 0, commit = 0;
};

StepTimes& StepTimes::operator+=(const StepTimes& more) {
  propose += more.propose;
  forward += more.forward;
  choice += more.choice;
  verify += more.verify;
  commit += more.commit;
  return *this;
}

bool is_near_tie(const kernels::Picked& picked) {
  return picked.margin < 1e-4f * std::max(1.0f, std::abs(picked.score));
}

void Stepper::step(std::span<Lane* const> lanes) {
  for (Lane* const lane : lanes) {
    if (lane->control) {
      lane->control->set_lanes(static_cast<int>(lanes.size()));
      lane->control->set_positions(lane->sequence.cache().length());
    }
    propose(*lane);
  }
  verify(lanes);
}

/// Lets the draft model read the prompt if the next step is the first one that drafts. The time
/// counts as prefill, not as a part of the step.
void Stepper::read_prompt(Lane& lane) {
  const int n_tokens = lane.decoder->n_unread(lane.sequence);
  if (n_tokens == 0) return;
  const auto report = [&](Nanoseconds t, int n_done) {
    if (events_) events_->push(Phase{t, lane.run, "draft prefill", n_done, n_tokens, {}});
  };
  const Nanoseconds begun = now_ns();
  report(begun, 0);
  lane.decoder->read_prompt(lane.sequence);
  const Nanoseconds ended = now_ns();
  report(ended, n_tokens);
  lane.draft_prefill_ns += ended - begun;
}

void Stepper::propose(Lane& lane) {
  ensure(!lane.sequence.finished(), "a finished sequence must not be stepped");
  read_prompt(lane);
  const Nanoseconds begun = now_ns();
  // The device may hang while it drafts, so the StepBegun event is emitted first.
  const bool drafts = lane.decoder->drafts();
  if (events_ && drafts) emit_begun(*events_, lane, begun, 0);
  lane.tree = lane.decoder->propose(lane.sequence);
  check(lane.tree, model_.vocab_size());
  lane.decision = lane.decoder->size_decision();
  std::vector<std::int32_t> choices = lane.decoder->take_choices();
  lane.proposed_ns = now_ns() - begun;
  if (!events_) return;
  if (!drafts) emit_begun(*events_, lane, begun, lane.tree.n_rows());
  emit_drafted(*events_, lane, begun, std::move(choices));
}

void Stepper::verify(std::span<Lane* const> lanes) {
  ensure(!lanes.empty(), "a step needs a lane");
  // Each forward's rows are committed before the next forward, which may use the same model.
  std::vector<Lane*> together;
  for (Lane* const lane : lanes) {
    if (lane->own_model)
      verify_with(*lane->own_model, std::span(&lane, 1));
    else
      together.push_back(lane);
  }
  if (!together.empty()) verify_with(model_, together);
}

void Stepper::verify_with(LanguageModel& model, std::span<Lane* const> lanes) {
  std::vector<Notes> notes(lanes.size());
  std::vector<BatchItem> items(lanes.size());
  Wants wants;
  StepWork work{.n_rows = 0};
  for (std::size_t i = 0; i < lanes.size(); i++) {
    Lane& lane = *lanes[i];
    // Window cells are only guesses: they take the likeliest token, without Gumbel noise.
    for (const RowTag& tag : lane.tree.tag)
      notes[i].greedy_rows.push_back(tag.kind == RowTag::Kind::Window);
    const Wants own = lane.decoder->wants();
    if (model.distributions_device())
      items[i].verify_request = lane.decoder->verify_request(lane.sequence, lane.tree);
    wants.logits |= own.logits && !items[i].verify_request;
    wants.hidden |= own.hidden;
    wants.row_p |= own.row_p;
    wants.n_top = std::max(wants.n_top, own.n_top);
    const int n_rows = lane.tree.n_rows(), n_positions = lane.sequence.cache().length();
    work.n_rows += n_rows;
    work.positions += n_positions;
    work.row_positions += static_cast<double>(n_positions) * n_rows;
    items[i].cache = &lane.sequence.cache();
    items[i].tree = &lane.tree;
    items[i].prefix = lane.sequence.cached_tokens();
    items[i].sampling = lane.sampling;
    items[i].shown = events_ != nullptr;
    items[i].attention_of = own.attention_of;
    if (!lane.sampling.greedy()) items[i].greedy_rows = notes[i].greedy_rows;
  }

  const Nanoseconds forward_begun = now_ns();
  std::vector<StepOutput> outs = model.forward(items, wants);
  const Nanoseconds forward = now_ns() - forward_begun;
  ensure(outs.size() == lanes.size(), "a forward must return a result for every sequence");

  for (std::size_t i = 0; i < lanes.size(); i++) {
    notes[i].out = std::move(outs[i]);
    // A forward's time is divided among its lanes in proportion to their rows.
    notes[i].forward = forward * lanes[i]->tree.n_rows() / work.n_rows;
    finish(*lanes[i], notes[i]);
  }
  // A lane with a model of its own shares its rows with other devices, which take other times.
  StepControl* const control = lanes.front()->control;
  if (!control || lanes.front()->own_model) return;
  Nanoseconds whole = forward;
  for (const Notes& note : notes) whole += note.verify + note.commit;
  control->costs().add(work, static_cast<double>(whole) * 1e-6);
}

void Stepper::finish(Lane& lane, Notes& notes) {
  const Nanoseconds verify_begun = now_ns();
  Decision decision = lane.decoder->verify(lane.sequence, lane.tree, notes.out);
  Limits limits = lane.limits;
  limits.max_seq_len = context_of(limits, model_.max_seq_len());
  const StopReason stop = cut(decision, lane.sequence, limits);
  const Nanoseconds commit_begun = now_ns();
  notes.verify = commit_begun - verify_begun;
  lane.sequence.commit(decision, stop);
  lane.decoder->committed(lane.sequence, decision);
  notes.commit = now_ns() - commit_begun;

  lane.compute_ns += lane.proposed_ns + notes.forward + notes.verify + notes.commit;
  lane.times += {.propose = lane.proposed_ns,
                 .forward = notes.forward - notes.out.choice_ns,
                 .choice = notes.out.choice_ns,
                 .verify = notes.verify,
                 .commit = notes.commit};
  lane.n_rows += lane.tree.n_rows();
  add_size(
      lane, decision.emitted.size(),
      static_cast<double>(lane.proposed_ns + notes.forward + notes.verify + notes.commit) * 1e-6);
  add_margins(lane, notes.out, decision);
  Verified verified = verified_event(lane, notes.out, decision);
  const RankExchange* const exchange = lane.own_model ? lane.own_model->exchange() : nullptr;
  if (exchange) verified.exchange = {*exchange};
  lane.n_drafted += !lane.decoder->draft_forwards().empty();
  lane.n_proposed += verified.n_proposed;
  lane.n_accepted += verified.n_accepted;
  lane.n_rejected += verified.n_rejected;
  Committed committed = committed_event(lane, decision, verified);
  add_facts(lane, decision, verified, committed);
  std::vector<Event> own = lane.decoder->take_events();
  for (const Event& event : own) keep_notice(lane, event);
  if (events_) {
    events_->push(verified);
    for (Event& event : own) events_->push(stamped(std::move(event), lane));
    committed.t = now_ns();
    events_->push(std::move(committed));
    events_->push(StepEnded{.t = now_ns(),
                            .run = lane.run,
                            .step = lane.n_steps,
                            .propose = lane.proposed_ns,
                            .forward = notes.forward,
                            .verify = notes.verify,
                            .commit = notes.commit,
                            .kv_len = lane.sequence.cache().length()});
  }
  lane.n_steps++;
}

Lane make_lane(RunId run,
               LanguageModel& model,
               std::vector<TokenId> prompt,
               const std::string& decoder,
               DecoderContext context,
               const OptionValues& options) {
  const int n_context = context_of(context.limits, model.max_seq_len());
  if (prompt.empty()) {
    throw Error(ErrorCode::BadInput,
                "prompt: found no token, expected at least one; a model without a begin token "
                "needs a text");
  }
  if (static_cast<int>(prompt.size()) >= n_context) {
    throw Error(ErrorCode::BadInput, "prompt: " + std::to_string(prompt.size()) +
                                         " tokens, but the context holds " +
                                         std::to_string(n_context) +
                                         ", including at least one new token; shorten the prompt, "
                                         "or set a longer context with --context N");
  }
  if (context.limits.max_tokens < 1) {
    throw Error(ErrorCode::Usage, "max-tokens: found " + std::to_string(context.limits.max_tokens) +
                                      ", expected at least 1");
  }
  for (const TokenId token : prompt) {
    ensure(token >= 0 && token < model.vocab_size(), "a prompt's token is not in the vocabulary");
  }
  const Sampling sampling = context.sampling;
  const Limits limits = context.limits;
  ParsedOptions parsed = parse_options(decoder, options);
  std::unique_ptr<Decoder> made = make_decoder(*parsed, context);
  return Lane{.run = run,
              .sequence = Sequence(std::move(prompt), model.make_cache()),
              .decoder = std::move(made),
              .options = std::move(parsed),
              .sampling = sampling,
              .limits = limits,
              .control = context.control,
              .tree = {}};
}

std::map<std::string, std::int64_t> counts_of(const Lane& lane) {
  std::map<std::string, std::int64_t> counts = lane.decoder->counts();
  if (lane.own_model) counts.merge(lane.own_model->counts());
  counts["rows"] = lane.n_rows;
  counts["proposed"] = lane.n_proposed;
  counts["accepted"] = lane.n_accepted;
  counts["rejected"] = lane.n_rejected;
  if (!rejects(lane.sampling)) counts["near_ties"] = lane.n_near_ties;
  if (lane.sizes.n_steps > 0) {
    counts["sized_steps"] = lane.sizes.n_steps;
    counts["plain_steps"] = lane.sizes.n_plain;
    counts["probe_steps"] = lane.sizes.n_probes;
  }
  return counts;
}

std::map<std::string, double> metrics_of(const Lane& lane) {
  std::map<std::string, double> metrics = lane.decoder->figures();
  if (lane.own_model) metrics.merge(lane.own_model->figures());
  for (const auto& [name, n] : counts_of(lane)) metrics[name] = static_cast<double>(n);
  if (lane.n_steps > 0) metrics["rows_per_step"] = static_cast<double>(lane.n_rows) / lane.n_steps;
  const auto accepted = static_cast<double>(lane.n_accepted);
  if (lane.n_proposed > 0)
    metrics["acceptance_rate"] = accepted / static_cast<double>(lane.n_proposed);
  const auto verified = lane.n_accepted + lane.n_rejected;
  if (verified > 0) metrics["accepted_of_verified"] = accepted / static_cast<double>(verified);
  if (lane.sizes.n_steps > 0) {
    const auto mean = [&](double sum) { return sum / static_cast<double>(lane.sizes.n_steps); };
    metrics["sized_tokens"] = mean(static_cast<double>(lane.sizes.n_tokens));
    metrics["sized_tokens_expected"] = mean(lane.sizes.expected_tokens);
    metrics["sized_ms"] = mean(lane.sizes.ms);
    metrics["sized_expected_ms"] = mean(lane.sizes.expected_ms);
    metrics["plain_expected_ms"] = mean(lane.sizes.plain_ms);
    if (lane.sizes.rows_ms > 0) metrics["rows_expected_ms"] = mean(lane.sizes.rows_ms);
  }
  return metrics;
}

}  // namespace engine

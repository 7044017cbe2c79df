// fields(visit, e): calls visit for every field of an event, in the order in which the fields were
// introduced. Writing (serialise.h), reading and packing share this list. New fields go to the end
// of a kind and never move: recordings depend on the order.
#pragma once

#include <concepts>
#include <type_traits>

#include "engine/event/event.h"

namespace engine {

/// Matches T and const T, because a writer only reads the event and a reader fills it.
template <typename E, typename T>
concept Is = std::same_as<std::remove_const_t<E>, T>;

/// Fields of ModelLoaded.
void fields(auto& visit, Is<ModelLoaded> auto& e) {
  visit(e.t), visit(e.model), visit(e.name), visit(e.dtype), visit(e.device), visit(e.ops);
  visit(e.scale), visit(e.n_params), visit(e.weight_bytes), visit(e.n_layers), visit(e.dim);
  visit(e.vocab_size), visit(e.max_seq_len), visit(e.n_threads), visit(e.pieces), visit(e.eos_ids);
  visit(e.weights_hash);
  visit(e.kv_bytes_per_token);
  visit(e.special_ids), visit(e.special_names);
  visit(e.drops_first_space);
  visit(e.cache_type);
  visit(e.piece_ids);
}

/// Fields of RunStarted.
void fields(auto& visit, Is<RunStarted> auto& e) {
  visit(e.t), visit(e.run), visit(e.race), visit(e.lane), visit(e.model), visit(e.decoder);
  visit(e.options), visit(e.temperature), visit(e.top_p), visit(e.min_p);
  visit(e.repetition_penalty), visit(e.top_k), visit(e.seed), visit(e.sampling);
  visit(e.max_tokens), visit(e.prompt), visit(e.prompt_tokens), visit(e.prompt_id);
  visit(e.ignore_eos);
  visit(e.draft);
  visit(e.first_approximate), visit(e.n_approximate);
  visit(e.stop_texts), visit(e.stop_ids);
  visit(e.no_special);
  visit(e.read_as), visit(e.system);
  visit(e.pool);
  visit(e.place.set), visit(e.place.prompt), visit(e.place.n_prompts), visit(e.place.repeat);
  visit(e.place.n_repeats), visit(e.place.task);
}

/// Fields of Phase.
void fields(auto& visit, Is<Phase> auto& e) {
  visit(e.t), visit(e.run), visit(e.name), visit(e.done), visit(e.total), visit(e.detail);
}

/// Fields of StepBegun.
void fields(auto& visit, Is<StepBegun> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.compute), visit(e.kv_len), visit(e.n_rows);
}

/// Fields of DraftForward.
void fields(auto& visit, Is<DraftForward> auto& e) {
  visit(e.begun), visit(e.ended), visit(e.n_rows);
}

/// Fields of GuessSource.
void fields(auto& visit, Is<GuessSource> auto& e) {
  visit(e.kind), visit(e.run), visit(e.pos), visit(e.n_seen), visit(e.n_context);
}

/// Fields of Drafted.
void fields(auto& visit, Is<Drafted> auto& e) {
  visit(e.t), visit(e.run), visit(e.step);
  visit(e.tree.token), visit(e.tree.parent), visit(e.tree.tag), visit(e.q);
  visit(e.forwards);
  visit(e.tree.owner);
  visit(e.decision.size), visit(e.decision.tokens), visit(e.decision.ms);
  visit(e.decision.plain_ms), visit(e.decision.probe);
  visit(e.sources);
  visit(e.choices);
}

/// Fields of BlockRefined.
void fields(auto& visit, Is<BlockRefined> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.block), visit(e.iteration);
  visit(e.first_pos), visit(e.tokens), visit(e.n_final), visit(e.converged);
}

/// Fields of RejectionDetail.
void fields(auto& visit, Is<RejectionDetail> auto& e) {
  visit(e.row), visit(e.token), visit(e.p), visit(e.q), visit(e.residual);
}

/// Fields of RankExchange.
void fields(auto& visit, Is<RankExchange> auto& e) {
  visit(e.n_bytes), visit(e.time), visit(e.forward);
}

/// Fields of Verified.
void fields(auto& visit, Is<Verified> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.fate), visit(e.picked), visit(e.logp);
  visit(e.margin), visit(e.n_proposed), visit(e.n_accepted), visit(e.n_rejected);
  visit(e.n_unused), visit(e.uniform), visit(e.keep), visit(e.last_uniform);
  visit(e.p), visit(e.rejection_details);
  visit(e.probe);
  visit(e.exchange);
}

/// Fields of Committed.
void fields(auto& visit, Is<Committed> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.first_pos), visit(e.tokens);
  visit(e.status), visit(e.origin);
}

/// Fields of PoolNgram.
void fields(auto& visit, Is<PoolNgram> auto& e) {
  visit(e.first), visit(e.rest), visit(e.born), visit(e.n_hits), visit(e.n_tries);
}

/// Fields of PoolChanged.
void fields(auto& visit, Is<PoolChanged> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.added), visit(e.evicted), visit(e.tried);
  visit(e.n_keys), visit(e.n_ngrams);
}

/// Fields of Queued.
void fields(auto& visit, Is<Queued> auto& e) {
  visit(e.t), visit(e.run), visit(e.branch), visit(e.resource);
}

/// Fields of Dequeued.
void fields(auto& visit, Is<Dequeued> auto& e) {
  visit(e.t), visit(e.run), visit(e.branch), visit(e.resource);
}

/// Fields of Waiting.
void fields(auto& visit, Is<Waiting> auto& e) {
  visit(e.t), visit(e.run), visit(e.branch), visit(e.resource), visit(e.since);
}

/// Fields of Sampled.
void fields(auto& visit, Is<Sampled> auto& e) {
  visit(e.t), visit(e.period), visit(e.device), visit(e.busy_percent);
  visit(e.thread_busy_percent), visit(e.memory_bytes), visit(e.engine_busy_percent);
  visit(e.reason), visit(e.gpu_memory_busy_percent), visit(e.gpu_memory_used_bytes);
  visit(e.gpu_memory_total_bytes), visit(e.gpu_clock_mhz), visit(e.gpu_memory_clock_mhz);
  visit(e.gpu_power_w), visit(e.absent);
  visit(e.stolen_percent), visit(e.load_average);
}

/// Fields of Agreement.
void fields(auto& visit, Is<Agreement> auto& e) {
  visit(e.t), visit(e.run), visit(e.baseline), visit(e.n_compared), visit(e.first_difference);
  visit(e.found), visit(e.expected), visit(e.cost);
}

/// Fields of StepEnded.
void fields(auto& visit, Is<StepEnded> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.propose), visit(e.forward), visit(e.verify);
  visit(e.commit), visit(e.kv_len);
}

/// Fields of PayloadDropped.
void fields(auto& visit, Is<PayloadDropped> auto& e) {
  visit(e.t), visit(e.run), visit(e.kind), visit(e.first_step), visit(e.last_step);
  visit(e.n_bytes);
}

/// Fields of RunFinished.
void fields(auto& visit, Is<RunFinished> auto& e) {
  visit(e.t), visit(e.run), visit(e.stop_reason), visit(e.n_tokens), visit(e.n_steps);
  visit(e.prefill), visit(e.decode), visit(e.metrics);
  visit(e.approximate);
  visit(e.stop_string);
}

/// Types of event members that have a list of fields themselves.
template <typename T>
concept Part = std::same_as<T, PoolNgram> || std::same_as<T, DraftForward> ||
    std::same_as<T, RejectionDetail> || std::same_as<T, GuessSource> ||
    std::same_as<T, RankExchange>;

/// Fields of RunFailed.
void fields(auto& visit, Is<RunFailed> auto& e) {
  visit(e.t), visit(e.run), visit(e.code), visit(e.message);
}

/// Fields of Held.
void fields(auto& visit, Is<Held> auto& e) {
  visit(e.t), visit(e.held);
}

/// Fields of Notice.
void fields(auto& visit, Is<Notice> auto& e) {
  visit(e.t), visit(e.level), visit(e.text);
}

/// Fields of SearchBegun.
void fields(auto& visit, Is<SearchBegun> auto& e) {
  visit(e.t), visit(e.search), visit(e.id), visit(e.task), visit(e.question), visit(e.depth);
  visit(e.n_thoughts), visit(e.beam);
}

/// Fields of ThoughtMade.
void fields(auto& visit, Is<ThoughtMade> auto& e) {
  visit(e.t), visit(e.search), visit(e.node), visit(e.parent), visit(e.depth), visit(e.text);
  visit(e.runs), visit(e.readable), visit(e.complete);
}

/// Fields of ThoughtValued.
void fields(auto& visit, Is<ThoughtValued> auto& e) {
  visit(e.t), visit(e.search), visit(e.node), visit(e.by), visit(e.value), visit(e.read);
  visit(e.text);
}

/// Fields of ThoughtJudged.
void fields(auto& visit, Is<ThoughtJudged> auto& e) {
  visit(e.t), visit(e.search), visit(e.node), visit(e.fate), visit(e.text), visit(e.runs);
  visit(e.complete);
}

/// Fields of SearchEnded.
void fields(auto& visit, Is<SearchEnded> auto& e) {
  visit(e.t), visit(e.search), visit(e.node), visit(e.by), visit(e.answer), visit(e.correct);
  visit(e.reason), visit(e.stopped);
}

}  // namespace engine

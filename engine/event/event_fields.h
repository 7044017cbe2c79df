// The fields of every kind of event in the order they were introduced: the one list that writing
// and reading share. Append only (serialise.h).
#pragma once

#include <concepts>
#include <type_traits>

#include "engine/event/event.h"

namespace engine {

/// T or const T: the lists serve a writer, which reads the event, and a reader, which fills it.
template <typename E, typename T>
concept Is = std::same_as<std::remove_const_t<E>, T>;

void fields(auto& visit, Is<ModelLoaded> auto& e) {
  visit(e.t), visit(e.model), visit(e.name), visit(e.dtype), visit(e.device), visit(e.ops);
  visit(e.scale), visit(e.n_params), visit(e.weight_bytes), visit(e.n_layers), visit(e.dim);
  visit(e.vocab_size), visit(e.max_seq_len), visit(e.n_threads), visit(e.pieces), visit(e.eos_ids);
  visit(e.weights_hash);
  visit(e.kv_bytes_per_token);
  visit(e.special_ids), visit(e.special_names);
  visit(e.drops_first_space);
}

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
}

void fields(auto& visit, Is<Phase> auto& e) {
  visit(e.t), visit(e.run), visit(e.name), visit(e.done), visit(e.total), visit(e.detail);
}

void fields(auto& visit, Is<StepBegun> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.compute), visit(e.kv_len), visit(e.n_rows);
}

void fields(auto& visit, Is<DraftForward> auto& e) {
  visit(e.begun), visit(e.ended), visit(e.n_rows);
}

void fields(auto& visit, Is<Drafted> auto& e) {
  visit(e.t), visit(e.run), visit(e.step);
  visit(e.tree.token), visit(e.tree.parent), visit(e.tree.tag), visit(e.q);
  visit(e.forwards);
  visit(e.tree.owner);
}

void fields(auto& visit, Is<BlockRefined> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.block), visit(e.iteration);
  visit(e.first_pos), visit(e.tokens), visit(e.n_final), visit(e.converged);
}

void fields(auto& visit, Is<RejectionDetail> auto& e) {
  visit(e.row), visit(e.token), visit(e.p), visit(e.q), visit(e.left);
}

void fields(auto& visit, Is<Verified> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.fate), visit(e.picked), visit(e.logp);
  visit(e.margin), visit(e.n_proposed), visit(e.n_accepted), visit(e.n_rejected);
  visit(e.n_unused), visit(e.uniform), visit(e.keep), visit(e.last_uniform);
  visit(e.p), visit(e.rejection_details);
  visit(e.probe);
}

void fields(auto& visit, Is<Committed> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.first_pos), visit(e.tokens);
  visit(e.status), visit(e.origin);
}

void fields(auto& visit, Is<PoolNgram> auto& e) {
  visit(e.first), visit(e.rest), visit(e.born), visit(e.n_hits), visit(e.n_tries);
}

void fields(auto& visit, Is<PoolChanged> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.added), visit(e.evicted), visit(e.tried);
  visit(e.n_keys), visit(e.n_ngrams);
}

void fields(auto& visit, Is<Queued> auto& e) {
  visit(e.t), visit(e.run), visit(e.branch), visit(e.resource);
}

void fields(auto& visit, Is<Dequeued> auto& e) {
  visit(e.t), visit(e.run), visit(e.branch), visit(e.resource);
}

void fields(auto& visit, Is<Waiting> auto& e) {
  visit(e.t), visit(e.run), visit(e.branch), visit(e.resource), visit(e.since);
}

void fields(auto& visit, Is<Sampled> auto& e) {
  visit(e.t), visit(e.period), visit(e.device), visit(e.busy_percent);
  visit(e.thread_busy_percent), visit(e.memory_bytes), visit(e.engine_busy_percent);
  visit(e.reason), visit(e.gpu_memory_busy_percent), visit(e.gpu_memory_used_bytes);
  visit(e.gpu_memory_total_bytes), visit(e.gpu_clock_mhz), visit(e.gpu_memory_clock_mhz);
  visit(e.gpu_power_w), visit(e.absent);
}

void fields(auto& visit, Is<Agreement> auto& e) {
  visit(e.t), visit(e.run), visit(e.baseline), visit(e.n_compared), visit(e.first_difference);
  visit(e.found), visit(e.expected), visit(e.cost);
}

void fields(auto& visit, Is<StepEnded> auto& e) {
  visit(e.t), visit(e.run), visit(e.step), visit(e.propose), visit(e.forward), visit(e.verify);
  visit(e.commit), visit(e.kv_len);
}

void fields(auto& visit, Is<PayloadDropped> auto& e) {
  visit(e.t), visit(e.run), visit(e.kind), visit(e.first_step), visit(e.last_step);
  visit(e.n_bytes);
}

void fields(auto& visit, Is<RunFinished> auto& e) {
  visit(e.t), visit(e.run), visit(e.stop_reason), visit(e.n_tokens), visit(e.n_steps);
  visit(e.prefill), visit(e.decode), visit(e.metrics);
  visit(e.approximate);
  visit(e.stop_string);
}

/// Parts of events that have fields of their own.
template <typename T>
concept Part =
    std::same_as<T, PoolNgram> || std::same_as<T, DraftForward> || std::same_as<T, RejectionDetail>;

void fields(auto& visit, Is<RunFailed> auto& e) {
  visit(e.t), visit(e.run), visit(e.code), visit(e.message);
}

void fields(auto& visit, Is<Held> auto& e) {
  visit(e.t), visit(e.held);
}

void fields(auto& visit, Is<Notice> auto& e) {
  visit(e.t), visit(e.level), visit(e.text);
}

void fields(auto& visit, Is<SearchBegun> auto& e) {
  visit(e.t), visit(e.search), visit(e.id), visit(e.task), visit(e.question), visit(e.depth);
  visit(e.n_thoughts), visit(e.beam);
}

void fields(auto& visit, Is<ThoughtMade> auto& e) {
  visit(e.t), visit(e.search), visit(e.node), visit(e.parent), visit(e.depth), visit(e.text);
  visit(e.runs), visit(e.readable), visit(e.complete);
}

void fields(auto& visit, Is<ThoughtValued> auto& e) {
  visit(e.t), visit(e.search), visit(e.node), visit(e.by), visit(e.value), visit(e.read);
  visit(e.text);
}

void fields(auto& visit, Is<ThoughtJudged> auto& e) {
  visit(e.t), visit(e.search), visit(e.node), visit(e.fate), visit(e.text), visit(e.runs);
  visit(e.complete);
}

void fields(auto& visit, Is<SearchEnded> auto& e) {
  visit(e.t), visit(e.search), visit(e.node), visit(e.by), visit(e.answer), visit(e.correct);
  visit(e.reason), visit(e.stopped);
}

}  // namespace engine

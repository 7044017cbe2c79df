#include "engine/event/payload.h"

#include <algorithm>
#include <type_traits>

#include "engine/event/payload_fields.h"

namespace engine {
namespace {

std::size_t bytes_of(const std::vector<float>& xs) {
  return xs.size() * sizeof(float);
}

std::size_t bytes_of(const std::vector<PoolNgram>& ngrams) {
  std::size_t n = ngrams.size() * sizeof(PoolNgram);
  for (const PoolNgram& ngram : ngrams) n += ngram.rest.size() * sizeof(TokenId);
  return n;
}

std::size_t bytes_of(const std::vector<RejectionDetail>& all) {
  std::size_t n = all.size() * sizeof(RejectionDetail);
  for (const RejectionDetail& w : all)
    n += w.token.size() * sizeof(TokenId) + bytes_of(w.p) + bytes_of(w.q) + bytes_of(w.residual);
  return n;
}

}  // namespace

const char* name_of(PayloadKind kind) {
  constexpr std::array<const char*, kPayloadKinds> kNames{"probabilities", "trajectory", "pool"};
  return kNames[static_cast<std::size_t>(kind)];
}

Payload payload_of(const Event& event) {
  if (const auto* e = std::get_if<BlockRefined>(&event)) {
    return {PayloadKind::Trajectory, e->step, sizeof *e + e->tokens.size() * sizeof(TokenId)};
  }
  Payload payload;
  if (const auto* e = std::get_if<Drafted>(&event)) payload.step = e->step;
  if (const auto* e = std::get_if<Verified>(&event)) payload.step = e->step;
  if (const auto* e = std::get_if<PoolChanged>(&event)) {
    payload.step = e->step;
    payload.kind = PayloadKind::Pool;
  }
  auto measure = [&payload](const auto& field) { payload.n_bytes += bytes_of(field); };
  std::visit([&](const auto& e) { payload_fields(measure, e); }, event);
  return payload;
}

bool strip(Event& event) {
  if (std::holds_alternative<BlockRefined>(event)) return false;
  // clear() alone would keep the memory.
  auto empty = [](auto& field) { std::decay_t<decltype(field)>().swap(field); };
  std::visit([&](auto& e) { payload_fields(empty, e); }, event);
  return true;
}

PayloadDropped drop_of(const Event& event, const Payload& payload) {
  return {.t = time_of(event),
          .run = run_of(event),
          .kind = name_of(payload.kind),
          .first_step = payload.step,
          .last_step = payload.step,
          .n_bytes = static_cast<std::int64_t>(payload.n_bytes)};
}

void widen(PayloadDropped& report, const PayloadDropped& more) {
  report.first_step = std::min(report.first_step, more.first_step);
  report.last_step = std::max(report.last_step, more.last_step);
  report.n_bytes += more.n_bytes;
}

void add_drop(std::vector<PayloadDropped>& reports, const PayloadDropped& drop) {
  for (auto last = reports.rbegin(); last != reports.rend(); ++last) {
    if (last->kind != drop.kind) continue;
    const bool joins = drop.first_step >= last->first_step - 1 &&
                       std::int64_t{drop.first_step} <= std::int64_t{last->last_step} + 1;
    if (joins) return widen(*last, drop);
    break;
  }
  reports.push_back(drop);
}

}  // namespace engine

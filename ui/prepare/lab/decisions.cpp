#include "ui/prepare/lab/decisions.h"

#include "engine/event/timeline/timeline.h"

namespace ui {
namespace {

bool is_chosen(const engine::StepRecord& step) {
  return step.has_drafted && step.drafted.decision.size >= 0 && step.drafted.decision.plain_ms > 0;
}

void push(Curve& curve, double x, double y) {
  curve.x.push_back(x);
  curve.y.push_back(y);
}

}  // namespace

Decisions decisions_of(const engine::RunRecord& run) {
  Decisions all{.tokens = {{"expected tokens", {}, {}}, {"committed", {}, {}}},
                .ms = {{"expected ms", {}, {}}, {"measured", {}, {}}, {"plain step", {}, {}}},
                .size = {{"chosen size", {}, {}}}};
  for (const engine::StepRecord& step : run.steps) {
    if (!is_chosen(step) || !step.complete) continue;
    const engine::SizeDecision& chosen = step.drafted.decision;
    const engine::StepEnded& e = step.ended;
    const double x = step.begun.step;
    push(all.tokens[0], x, chosen.tokens);
    push(all.tokens[1], x, static_cast<double>(step.committed.tokens.size()));
    push(all.ms[0], x, chosen.ms);
    push(all.ms[1], x, static_cast<double>(e.propose + e.forward + e.verify + e.commit) * 1e-6);
    push(all.ms[2], x, chosen.plain_ms);
    push(all.size[0], x, chosen.size);
  }
  return all;
}

}  // namespace ui

#include "ui/prepare/time/following.h"

#include <utility>

namespace ui {

Following::Look Following::observe(const engine::Event& event) {
  if (const auto* phase = std::get_if<engine::Phase>(&event);
      phase && phase->run == 0 && phase->name == "reason") {
    const bool reasons = phase->done < phase->total;
    first_ = reasons && (first_ || !reasons_);
    reasons_ = reasons;
  }
  if (const auto* started = std::get_if<engine::RunStarted>(&event)) return begun(*started);
  const bool ends = std::holds_alternative<engine::RunFinished>(event) ||
                    std::holds_alternative<engine::RunFailed>(event);
  over_ |= ends && engine::run_of(event) == followed_;
  return Look::Stay;
}

Following::Look Following::begun(const engine::RunStarted& started) {
  const bool is_new = !reasons_ || std::exchange(first_, false);
  if (!is_new && !over_) return Look::Stay;
  const bool continues_set = started.place.set != 0 && started.place.set == set_;
  followed_ = started.run;
  race_ = started.race;
  set_ = started.place.set;
  over_ = false;
  return is_new && !continues_set ? Look::NewRun : Look::NextRun;
}

}  // namespace ui

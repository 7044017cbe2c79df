// The data of the screen Laboratory, prepared from the selected run when a panel first asks for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ui/prepare/lab/acceptance.h"
#include "ui/prepare/lab/cost.h"
#include "ui/prepare/lab/decisions.h"
#include "ui/prepare/lab/what_if.h"
#include "ui/shell/panel_state.h"

namespace ui {

struct Context;
struct Panel;

/// The prepared data. While events arrive without pause, it is older than the timeline by a tenth at most.
struct LabData : PanelState {
  /// The acceptance of the run with what it makes of its steps' costs.
  struct Speed {
    Acceptance acceptance;
    SpeedAccount account;
    std::vector<TaskAcceptance> tasks;
  };
  engine::RunId run = 0;
  std::uint64_t version = 0,
                seen = 0;  // versions of the timeline plus 1: of the data, of the last call
  std::optional<Speed> speed;
  std::optional<std::vector<LostToken>> lost;
  std::optional<RecordedShape> shape;
  std::optional<Decisions> decisions;
  void document_changed() override { forget(0); }
  /// Removes everything; the next data is that of `of`.
  void forget(engine::RunId of);
};

/// Returns the acceptance of the selected run. As the other functions, it requires a run.
const LabData::Speed& lab_speed(Context& context);
/// Returns the lost tokens of the selected run.
const std::vector<LostToken>& lab_lost(Context& context);
/// Returns the shape of the selected run.
const RecordedShape& lab_shape(Context& context);
/// Returns the decisions of the selected run.
const Decisions& lab_decisions(Context& context);

/// Draws the head of a panel: the choice of the run that it shows, and the panel's help.
void lab_head(Context& context, const Panel& panel);
/// Returns why no run with proposals is shown; empty if one is.
std::string why_no_proposals(const Context& context);

}  // namespace ui

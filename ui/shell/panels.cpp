#include <array>
#include <cstring>

#include "ui/panels/live/agreement.h"
#include "ui/panels/live/difference.h"
#include "ui/panels/live/lanes.h"
#include "ui/panels/live/probe_trajectory.h"
#include "ui/panels/live/text.h"
#include "ui/panels/live/trajectory.h"
#include "ui/panels/results/log.h"
#include "ui/panels/results/machine.h"
#include "ui/panels/results/numbers.h"
#include "ui/panels/results/runs.h"
#include "ui/panels/results/training.h"
#include "ui/panels/results/training_charts.h"
#include "ui/panels/setup/setup.h"
#include "ui/panels/step/distributions.h"
#include "ui/panels/step/inspector.h"
#include "ui/panels/step/mask.h"
#include "ui/panels/step/pool.h"
#include "ui/panels/step/thoughts.h"
#include "ui/panels/step/tree.h"
#include "ui/panels/time/gantt.h"
#include "ui/panels/time/schedule.h"
#include "ui/prepare/status.h"
#include "ui/shell/panel.h"

namespace ui {

std::span<const Panel> panels() {
  // Copied on first use: the panels' own constants are ready by then.
  static const std::array<Panel, 23> list{
      kSetupPanel,      kTextPanel,          kTrajectoryPanel,     kPoolPanel,     kTreePanel,
      kMaskPanel,       kDistributionsPanel, kAgreementPanel,      kThoughtsPanel, kGanttPanel,
      kNumbersPanel,    kInspectorPanel,     kRunsPanel,           kLogPanel,      kLanesPanel,
      kDifferencePanel, kMachinePanel,       kSchedulePanel,       kTrainingPanel, kLossPanel,
      kProbesPanel,     kPacePanel,          kProbeTrajectoryPanel};
  return list;
}

const Panel* panel_named(const char* id) {
  for (const Panel& panel : panels())
    if (std::strcmp(panel.id, id) == 0) return &panel;
  return nullptr;
}

std::string no_run_yet(const Context& context) {
  if (context.compare ? !context.shown_runs().empty() : context.run() != nullptr) return "";
  if (std::string loading = awaited_words(context.timeline, context.waiting); !loading.empty())
    return loading;
  return "No run yet. Press Run (Ctrl+Enter), or open a recording (Ctrl+O).";
}

std::string method_of(const Context& context, const engine::RunRecord& run) {
  const CatalogDecoder* known = context.catalog.decoder(run.started.decoder);
  return known ? known->title : run.started.decoder;
}

}  // namespace ui

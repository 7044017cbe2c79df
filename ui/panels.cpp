#include <array>
#include <cstring>

#include "ui/panel.h"
#include "ui/panels/agreement.h"
#include "ui/panels/difference.h"
#include "ui/panels/gantt.h"
#include "ui/panels/inspector.h"
#include "ui/panels/lanes.h"
#include "ui/panels/laws.h"
#include "ui/panels/log.h"
#include "ui/panels/machine.h"
#include "ui/panels/mask.h"
#include "ui/panels/numbers.h"
#include "ui/panels/pool.h"
#include "ui/panels/probe_trajectory.h"
#include "ui/panels/runs.h"
#include "ui/panels/schedule.h"
#include "ui/panels/setup.h"
#include "ui/panels/text.h"
#include "ui/panels/thoughts.h"
#include "ui/panels/training.h"
#include "ui/panels/training_charts.h"
#include "ui/panels/trajectory.h"
#include "ui/panels/tree.h"
#include "ui/prepare/status.h"

namespace ui {

std::span<const Panel> panels() {
  // Copied on first use: the panels' own constants are ready by then.
  static const std::array<Panel, 23> list{
      kSetupPanel,      kTextPanel,      kTrajectoryPanel,     kPoolPanel,     kTreePanel,
      kMaskPanel,       kLawsPanel,      kAgreementPanel,      kThoughtsPanel, kGanttPanel,
      kNumbersPanel,    kInspectorPanel, kRunsPanel,           kLogPanel,      kLanesPanel,
      kDifferencePanel, kMachinePanel,   kSchedulePanel,       kTrainingPanel, kLossPanel,
      kProbesPanel,     kPacePanel,      kProbeTrajectoryPanel};
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

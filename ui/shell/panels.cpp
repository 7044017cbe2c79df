// The list of panels.
#include <array>
#include <cstring>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/status.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/legend.h"

namespace ui {

// One line for each panel, in the order of tabs and of F6.
// clang-format off
#define PANELS(panel)          \
  panel(kSetupPanel)           \
  panel(kRunsPanel)            \
  panel(kTextPanel)            \
  panel(kTrajectoryPanel)      \
  panel(kPoolPanel)            \
  panel(kTreePanel)            \
  panel(kMaskPanel)            \
  panel(kDistributionsPanel)   \
  panel(kAgreementPanel)       \
  panel(kThoughtsPanel)        \
  panel(kLanesPanel)           \
  panel(kGanttPanel)           \
  panel(kSchedulePanel)        \
  panel(kPromptsPanel)         \
  panel(kLogPanel)             \
  panel(kDifferencePanel)      \
  panel(kNumbersPanel)         \
  panel(kInspectorPanel)       \
  panel(kMachinePanel)         \
  panel(kTrainingPanel)        \
  panel(kLossPanel)            \
  panel(kProbesPanel)          \
  panel(kPacePanel)            \
  panel(kProbeTrajectoryPanel) \
  panel(kAcceptancePanel)      \
  panel(kWhatIfPanel)          \
  panel(kDecisionsPanel)       \
  panel(kLostTokensPanel)
// clang-format on

#define DECLARE(name) extern const Panel name;
PANELS(DECLARE)
#undef DECLARE

std::span<const Panel> panels() {
  // The panels are copied at the first call, because then the constants of all files are initialised.
#define COPY(name) name,
  static const auto list = std::to_array<Panel>({PANELS(COPY)});
#undef COPY
  return list;
}

const Panel* panel_named(const char* id) {
  for (const Panel& panel : panels())
    if (std::strcmp(panel.id, id) == 0) return &panel;
  return nullptr;
}

void panel_legend(const Panel& panel, const char* also) {
  legend_button((std::string("?###marks_") + panel.id).c_str(), panel.help, panel.marks, also);
}

std::string no_run_yet(const Context& context) {
  if (context.compare ? !context.shown_runs().empty() : context.run() != nullptr) return "";
  if (std::string loading = awaited_words(context.timeline, context.waiting); !loading.empty())
    return loading;
  return "No run yet. Press Run (Ctrl+Enter) or open a recording (Ctrl+O).";
}

std::string method_of(const Context& context, const engine::RunRecord& run) {
  if (run.started.decoder == "ar") return "Plain decoding";
  const CatalogDecoder* known = context.catalog.decoder(run.started.decoder);
  return known ? known->title : run.started.decoder;
}

std::string proposed_nothing(const Context& context,
                             const engine::RunRecord& run,
                             const char* of_kind) {
  return method_of(context, run) +
         (run.over() ? std::string(" proposed no tokens") + of_kind
                     : std::string(" has proposed no tokens") + of_kind + " so far");
}

}  // namespace ui

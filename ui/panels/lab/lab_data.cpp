#include "ui/panels/lab/lab_data.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <imgui.h>

#include "engine/event/timeline/timeline.h"
#include "engine/lab/acceptance.h"
#include "engine/lab/cost.h"
#include "engine/lab/what_if.h"
#include "ui/prepare/lab/decisions.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

// The prepared data; a part is missing until it is needed.
struct LabData : PanelState {
  engine::RunId run = 0;
  std::uint64_t version = 0,
                seen = 0;         // versions of the timeline plus 1: of the data, of the last call
  int frame = -1;                 // the frame of the last call
  std::uint64_t n_forgotten = 0;  // grows when the data are removed
  std::optional<Acceptance> acceptance;
  std::optional<SpeedAccount> account;
  std::optional<std::vector<TaskAcceptance>> tasks;
  std::optional<std::vector<LostToken>> lost;
  std::optional<RecordedShape> shape;
  std::optional<Decisions> decisions;
  engine::AlphaOfRuns alphas;  // of the document's runs that have ended
  void document_changed() override {
    forget(0);
    alphas.clear();
  }
  // Removes everything; the next data is that of run `of`.
  void forget(engine::RunId of) {
    run = of;
    ++n_forgotten;
    version = 0;
    acceptance.reset();
    account.reset();
    tasks.reset();
    lost.reset();
    shape.reset();
    decisions.reset();
  }
};

LabData& data_of(Context& context) {
  constexpr std::uint64_t kSmall = 20'000, kPart = 10;
  auto& data = context.states.get<LabData>();
  // Once in a frame, so that a panel's references stay valid.
  if (data.run == context.run()->id() && data.frame == ImGui::GetFrameCount()) return data;
  data.frame = ImGui::GetFrameCount();
  const std::uint64_t version = context.timeline.version() + 1;
  const bool pauses = version == data.seen;
  const bool grown = version - data.version > data.version / kPart;
  data.seen = version;
  if (data.run != context.run()->id() ||
      (version != data.version && (pauses || grown || version < kSmall))) {
    data.forget(context.run()->id());
    data.version = version;
  }
  return data;
}

}  // namespace

std::uint64_t lab_version(Context& context) {
  return data_of(context).n_forgotten;
}

const Acceptance& lab_acceptance(Context& context) {
  LabData& data = data_of(context);
  if (!data.acceptance) data.acceptance = acceptance_of(*context.run());
  return *data.acceptance;
}

const SpeedAccount& lab_account(Context& context) {
  LabData& data = data_of(context);
  if (!data.account)
    data.account = speed_account(context.timeline, *context.run(), lab_acceptance(context));
  return *data.account;
}

const std::vector<TaskAcceptance>& lab_tasks(Context& context) {
  LabData& data = data_of(context);
  if (!data.tasks) data.tasks = acceptance_by_task(context.timeline, *context.run(), data.alphas);
  return *data.tasks;
}

const std::vector<LostToken>& lab_lost(Context& context) {
  LabData& data = data_of(context);
  if (!data.lost) data.lost = lost_tokens(context.timeline, *context.run());
  return *data.lost;
}

const RecordedShape& lab_shape(Context& context) {
  LabData& data = data_of(context);
  if (!data.shape) data.shape = recorded_shape(context.timeline, *context.run());
  return *data.shape;
}

const Decisions& lab_decisions(Context& context) {
  LabData& data = data_of(context);
  if (!data.decisions) data.decisions = decisions_of(*context.run());
  return *data.decisions;
}

void lab_head(Context& context, const Panel& panel) {
  panel_legend(panel);
  const engine::RunRecord* shown = context.run();
  if (!shown) return;
  const auto name_of = [&](const engine::RunRecord& run) {
    return std::to_string(run.id()) + "  " + context.name_of(run);
  };
  ImGui::SameLine();
  if (!begin_quiet_choice("##lab_run", "run " + name_of(*shown))) return;
  for (const engine::RunRecord& run : context.timeline.runs())
    if (selectable(name_of(run).c_str(), &run == shown)) context.selection.run = run.id();
  ImGui::EndCombo();
}

std::string why_no_proposals(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  if (context.run()->totals.n_proposed > 0) return "";
  return std::string("This run ") +
         (context.run()->over() ? "proposed no tokens." : "has proposed no tokens so far.") +
         " Choose another run in the head of this panel.";
}

}  // namespace ui

#include "ui/panels/results/training.h"

#include <algorithm>

#include "engine/event/recording/training_history.h"
#include "ui/prepare/training.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {

std::string no_training_yet(const Context& context) {
  if (context.training) return "";
  return "No training run is open. Open the folder that the training writes, or the file "
         "training.jsonl in it, while it runs or afterwards.";
}

namespace {

void stage_part(const TrainingStatus& status) {
  wrapped(status.words, status.is_over ? theme().good : theme().bright);
  if (!status.silence.empty()) wrapped(status.silence, theme().dim);
  if (status.share >= 0) {
    ImGui::Dummy({1, px(2)});
    share_bar(static_cast<float>(status.share), {ImGui::GetContentRegionAvail().x, px(6)},
              handle_on(theme()));
  }
}

void draw(Context& context) {
  const engine::TrainingHistory& history = *context.training;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  ImGui::PushFont(fonts().bold, 19);
  words_within(history.name, theme().bright, ImGui::GetContentRegionAvail().x);
  ImGui::PopFont();
  if (ImGui::IsItemHovered()) tooltip(history.folder);
  stage_part(status_of(history));
  for (const std::string& refusal : history.refusals) {
    ImGui::Dummy({1, px(2)});
    wrapped("Reading stopped: " + refusal, theme().bad);
  }
  ImGui::Dummy({1, px(4)});
  for (const auto& [label, value] : facts_of(history)) label_value(label.c_str(), value);
  ImGui::PopStyleVar();
}

void draw_head(Context& context) {
  if (link("Open...###open_training")) context.requests.open = "";
  if (ImGui::IsItemHovered()) tooltip("open another training run, a recording or a model (Ctrl+O)");
}

}  // namespace

const Panel kTrainingPanel{.id = "training",
                           .title = "Training",
                           .empty = no_training_yet,
                           .draw = draw,
                           .head = draw_head,
                           .sketch = Sketch::Columns,
                           .training = Dock::Left};

}  // namespace ui

#include "ui/panels/live/right_to_left_words.h"

#include <map>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/tokens/right_to_left.h"
#include "ui/shell/context.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

struct TextDirections : PanelState {
  std::map<engine::RunId, RightToLeft> runs;
  void document_changed() override { runs.clear(); }
};

}  // namespace

bool reads_right_to_left(Context& context, const engine::RunRecord& run) {
  return context.states.get<TextDirections>().runs[run.id()].update(context.timeline, run);
}

void right_to_left_words() {
  words("right to left", theme().warn);
  if (ImGui::IsItemHovered())
    tooltip(
        "This text has letters that are written from right to left. It is shown in the order of "
        "its tokens, from left to right.");
}

}  // namespace ui

#include "ui/panels/live/text.h"

#include <array>

#include "engine/base/text.h"
#include "engine/event/timeline/timeline.h"
#include "ui/files/settings.h"
#include "ui/panels/live/right_to_left_words.h"
#include "ui/panels/live/text_view.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

// Returns a sentence on the meaning of a lens's colours.
const char* lens_words(Lens lens) {
  static constexpr std::array<const char*, 6> kWords{
      "",
      "Lens: probability of the token under the model; dark is low, bright is high.",
      "Lens: steps since the token was committed; dark is new, bright is 20 steps or more.",
      "Lens: the token's share of its step's own compute; dark is low, bright is high.",
      "Lens: agreement with plain decoding; the colour of accepted up to the first difference, the "
      "colour of rejected after it.",
      "Lens: the colour shows how the token was proposed; without colour, the target chose it "
      "alone."};
  return kWords[static_cast<std::size_t>(lens)];
}

void draw_text_head(Context& context) {
  Lens& shown = context.states.get<TextView>().lens;
  int lens = static_cast<int>(shown);
  if (quiet_choice("##lens", "lens: ", kLensNames, lens)) shown = static_cast<Lens>(lens);
  ImGui::SameLine();
  panel_legend(kTextPanel, lens_words(shown));
  const engine::RunRecord* run = context.run();
  if (!run) return;
  ImGui::SameLine(0, px(14));
  ImGui::AlignTextToFramePadding();
  words_within(context.name_of(*run), theme().text, px(150));
  ImGui::SameLine(0, px(10));
  words(engine::counted(context.times(*run).sums(context.n_steps(*run)).tokens, "token"),
        theme().dim);
  if (!reads_right_to_left(context, *run)) return;
  ImGui::SameLine(0, px(14));
  right_to_left_words();
}

void draw_text(Context& context) {
  const engine::RunRecord& run = *context.run();
  draw_token_text(context, run, context.settings.flowing_text, true);
}

}  // namespace

const Panel kTextPanel{.id = "text",
                       .title = "Text",
                       .empty = no_run_yet,
                       .draw = draw_text,
                       .head = draw_text_head,
                       .help = "The prompt and the answer, one cell per token.",
                       .marks = cell_marks(),
                       .sketch = Sketch::Cells,
                       .main = true,
                       .live = Dock::Top};

}  // namespace ui

#include "ui/panels/live/row_cell.h"

#include <fmt/format.h>

#include "engine/event/timeline/proposals.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/tokens/row_origin.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/token_tree.h"
#include "ui/shell/context.h"
#include "ui/widgets/draw.h"

namespace ui {

bool lights(const Context& context,
            const engine::RunRecord& run,
            const engine::StepRecord& step,
            int row) {
  if (context.selection.lights_row(run.id(), step.begun.step, row)) return true;
  const Place& token = context.selection.shown();
  return token.run == run.id() && token.step == step.begun.step && token.row < 0 &&
         token.position >= 0 && accepted_row_at(step, token.position) == row;
}

void row_cell(Context& context,
              const engine::RunRecord& run,
              const engine::StepRecord& step,
              int row,
              Mean mean,
              float width) {
  const std::string text = cell_text(context.timeline, run, step.drafted.tree.token[row]);
  const ImVec2 min = ImGui::GetCursorScreenPos(), max{min.x + width, min.y + px(23)};
  const Place place{run.id(), step.begun.step, -1, row};
  ImGui::PushID(row);
  if (ImGui::InvisibleButton("row", {max.x - min.x, max.y - min.y})) context.click(place);
  if (ImGui::IsItemHovered()) {
    context.selection.hover(place);
    std::string facts = fmt::format("{}\n{} \xC2\xB7 row {} of step {}", text, look(mean).name, row,
                                    step.begun.step);
    const engine::RowTag tag = step.drafted.tree.tag[row];
    const engine::GuessSource* source = source_of(step, row);
    if (source || tag.kind == engine::RowTag::Kind::Draft ||
        proposer_of(run) == Proposer::Successors)
      facts += "\n" + row_origin(run, step, row);
    if (const std::string seen = source ? seen_words(*source) : ""; !seen.empty())
      facts += "\nfollowed there " + seen;
    const float q = engine::value_at(step.drafted.q, row),
                p = engine::value_at(step.verified.p, row);
    if (q >= 0 && row > 0) facts += fmt::format("\nq {:.3f}", q);
    if (p >= 0) facts += fmt::format("\np {:.3f}", p);
    tooltip(facts);
  }
  ImGui::PopID();
  CellFlags flags;
  flags.marks = context.marks();
  flags.dim = mean == Mean::Prefix;
  flags.elide = true;
  flags.lit = lights(context, run, step, row);
  flags.locked = context.selection.locked == place;
  token_cell(ImGui::GetWindowDrawList(), min, max, text, mean, flags);
}

}  // namespace ui

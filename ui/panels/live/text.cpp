#include "ui/panels/live/text.h"

#include <array>

#include <fmt/format.h>

#include "ui/widgets/draw.h"
#include "ui/shell/legend.h"
#include "ui/panels/live/text_view.h"

namespace ui {
namespace {

constexpr std::array<const char*, 6> kLenses{"standing", "probability", "age",
                                             "cost",     "agreement",   "origin"};

// What a lens's fills mean.
const char* lens_words(Lens lens) {
  static constexpr std::array<const char*, 6> kWords{
      "",
      "Lens: dark is unlikely, bright is likely, by the model's own probability of the token.",
      "Lens: dark is new, bright is old: committed twenty steps ago or more.",
      "Lens: dark is cheap, bright is dear: the share of its step's own compute.",
      "Lens: accepted's colour is what plain decoding gives too, rejected's is from the first "
      "difference on.",
      "Lens: the colour of what had proposed the token; none: the target alone."};
  return kWords[static_cast<std::size_t>(lens)];
}

void draw_text_head(Context& context) {
  int lens = static_cast<int>(context.view.lens);
  if (quiet_choice("##lens", "lens: ", kLenses, lens)) context.view.lens = static_cast<Lens>(lens);
  ImGui::SameLine();
  legend_word("?###marks_text", cell_marks(), lens_words(context.view.lens));
  const engine::RunRecord* run = context.run();
  if (!run) return;
  ImGui::SameLine(0, px(14));
  ImGui::AlignTextToFramePadding();
  words(fmt::format("{} tokens", context.prepared.times(*run).sums(context.n_steps(*run)).tokens),
        theme().dim);
}

void draw_text(Context& context) {
  const engine::RunRecord& run = *context.run();
  draw_token_text(context, run, context.settings.flowing_text, true);
}

}  // namespace

const Panel kTextPanel{"text", "Text", no_run_yet, draw_text, draw_text_head};

}  // namespace ui

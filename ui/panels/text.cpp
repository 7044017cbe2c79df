// The answer, token by token, through a lens.
#include "ui/panels/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ui/draw.h"
#include "ui/panels/text_view.h"

namespace ui {
namespace {

constexpr std::array<const char*, 6> kLenses{"standing", "probability", "age",
                                             "cost",     "agreement",   "origin"};

void draw_head(Context& context) {
  int lens = static_cast<int>(context.view.lens);
  if (quiet_choice("##lens", "lens: ", kLenses, lens)) context.view.lens = static_cast<Lens>(lens);
  ImGui::SameLine();
  legend_word();
  const engine::RunRecord* run = context.run();
  if (!run) return;
  ImGui::SameLine(0, px(14));
  ImGui::AlignTextToFramePadding();
  words(fmt::format("{} tokens", context.prepared.times(*run).sums(context.n_steps(*run)).tokens),
        theme().dim);
}

void draw(Context& context) {
  const engine::RunRecord& run = *context.run();
  draw_token_text(context, run, context.settings.flowing_text, true);
}

}  // namespace

const Panel kTextPanel{"text", "Text", no_run_yet, draw, draw_head};

}  // namespace ui

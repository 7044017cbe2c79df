#include "ui/panels/live/agreement.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "engine/event/queue.h"
#include "engine/event/timeline/timeline_intake.h"
#include "ui/panels/live/right_to_left_words.h"
#include "ui/prepare/tokens/verdicts.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

// Returns the text of the `n_before` tokens before token `at` of the answer.
std::string text_before(const Context& context,
                        const engine::RunRecord& run,
                        int at,
                        int n_before) {
  std::vector<engine::TokenId> ids;
  for (int i = std::max(0, at - n_before); i < at && i < static_cast<int>(run.tokens.size()); ++i)
    ids.push_back(run.tokens[i].id);
  return context.timeline.text_of(run, ids);
}

// Returns the margin of the best token over the second best at an index of the answer; nullopt if it was not recorded.
std::optional<float> margin_at(const engine::RunRecord& run, int index) {
  if (index >= std::ssize(run.tokens)) return std::nullopt;
  const engine::TokenRecord& token = run.tokens[static_cast<std::size_t>(index)];
  if (token.step < 0 || token.step >= std::ssize(run.steps)) return std::nullopt;
  const engine::StepRecord step = run.steps[static_cast<std::size_t>(token.step)];
  const int at = token.pos - step.committed.first_pos;
  const std::vector<int> rows = engine::answering_rows(step, step.committed.tokens);
  if (at < 0 || at >= std::ssize(rows) || rows[at] < 0) return std::nullopt;
  if (rows[at] >= std::ssize(step.verified.margin)) return std::nullopt;
  return step.verified.margin[static_cast<std::size_t>(rows[at])];
}

void difference(Context& context, const engine::RunRecord& run, const engine::Agreement& a) {
  words(fmt::format("First difference at token {}", a.first_difference), theme().bad);
  if (reads_right_to_left(context, run)) right_to_left_words();
  const std::string before = text_before(context, run, a.first_difference, 8);
  ImGui::PushFont(fonts().mono, kMonoSize);
  wrapped("plain decoding  ..." + before + " [" + context.timeline.name_of(run, a.expected) + "]",
          theme().text);
  wrapped("this run        ..." + before + " [" + context.timeline.name_of(run, a.found) + "]",
          theme().text);
  ImGui::PopFont();
  if (const std::optional<float> margin = margin_at(run, a.first_difference))
    wrapped(fmt::format(
                "The margin to the second best token is {:.3g} there. A margin near 0 points to "
                "rounding, a large margin to a fault.",
                *margin),
            theme().dim);
}

void draw(Context& context) {
  const engine::RunRecord& run = *context.run();
  if (run.started.decoder == "ar") {
    wrapped("This run is plain decoding; other runs are compared with it.", theme().text);
    return;
  }
  const CatalogDecoder* info = context.catalog.decoder(run.started.decoder);
  if (const std::string why = why_not_lossless(run.started, info); !why.empty())
    wrapped("NOT lossless: " + why, theme().bad);
  if (!run.agreement) {
    wrapped(
        "Not checked. A check runs plain decoding with the same prompt and settings and compares "
        "the tokens.",
        theme().dim);
  } else if (run.agreement->first_difference < 0) {
    words("Same tokens as plain decoding.", theme().good);
  } else {
    difference(context, run, *run.agreement);
  }
  if (run.agreement) {
    const engine::Agreement& a = *run.agreement;
    label_value("tokens compared", fmt::format("{}", a.n_compared));
    label_value("cost of the check", a.cost > 0 ? short_time(static_cast<double>(a.cost)) : "-");
    label_value("compared with",
                a.baseline ? fmt::format("run {}", a.baseline) : "a run started for the check");
  }
  ImGui::Dummy({1, px(4)});
  const bool own = context.source.empty();
  const char* why =
      !own          ? "A recording cannot be checked: the engine has only the runs of this session."
      : !run.over() ? "The run has not ended."
                    : "Runs plain decoding once (C)";
  if (button("Check now", false, own && run.over(), why))
    context.commands.push(engine::CheckAgreement{run.id()});
}

}  // namespace

const Panel kAgreementPanel{.id = "agreement",
                            .title = "Agreement",
                            .empty = no_run_yet,
                            .draw = draw,
                            .sketch = Sketch::Lines,
                            .names_run = true,
                            .live = Dock::Centre};

}  // namespace ui

#include "ui/panels/live/agreement.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "engine/event/timeline/timeline_intake.h"
#include "ui/widgets/draw.h"
#include "ui/prepare/tokens/verdicts.h"

namespace ui {
namespace {

// Tokens around the first difference, from a few before it.
std::string around(const Context& context, const engine::RunRecord& run, int at, int n_before) {
  std::vector<engine::TokenId> ids;
  for (int i = std::max(0, at - n_before); i < at && i < static_cast<int>(run.tokens.size()); ++i)
    ids.push_back(run.tokens[i].id);
  return context.timeline.text_of(run, ids);
}

// By how much the choice of a token led the second best one; nullopt where that was not told.
std::optional<float> lead_at(const engine::RunRecord& run, int index) {
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

void difference(const Context& context, const engine::RunRecord& run, const engine::Agreement& a) {
  words(fmt::format("First difference at token {}", a.first_difference), theme().bad);
  const std::string before = around(context, run, a.first_difference, 8);
  ImGui::PushFont(fonts().mono, kMonoSize);
  wrapped("plain decoding  ..." + before + " [" + context.timeline.name_of(run, a.expected) + "]",
          theme().text);
  wrapped("this run        ..." + before + " [" + context.timeline.name_of(run, a.found) + "]",
          theme().text);
  ImGui::PopFont();
  if (const std::optional<float> lead = lead_at(run, a.first_difference))
    wrapped(fmt::format("The choice there led the second best by {:.3g}. A lead near 0 is "
                        "rounding, a large one a fault.",
                        *lead),
            theme().dim);
}

void draw(Context& context) {
  const engine::RunRecord& run = *context.run();
  if (run.started.decoder == "ar") {
    wrapped("This run is plain decoding itself; the others are compared with it.", theme().text);
    return;
  }
  const CatalogDecoder* info = context.catalog.decoder(run.started.decoder);
  if (const std::string why = why_not_lossless(run.started, info); !why.empty())
    wrapped("NOT lossless: " + why, theme().bad);
  if (!run.agreement) {
    wrapped(
        "Not checked. A check runs plain decoding on the same prompt and settings, then compares "
        "token by token.",
        theme().dim);
  } else if (run.agreement->first_difference < 0) {
    words("The same text as plain decoding, token for token.", theme().good);
  } else {
    difference(context, run, *run.agreement);
  }
  if (run.agreement) {
    const engine::Agreement& a = *run.agreement;
    label_value("tokens compared", fmt::format("{}", a.n_compared));
    label_value("cost of the check", a.cost > 0 ? short_time(static_cast<double>(a.cost)) : "-");
    label_value("compared with",
                a.baseline ? fmt::format("run {}", a.baseline) : "a run made for it");
  }
  ImGui::Dummy({1, px(4)});
  const bool own = context.source.empty();
  const char* why = !own          ? "An opened recording has no engine to run the check."
                    : !run.over() ? "The run is still going."
                                  : "Runs plain decoding once (C)";
  if (button("Check now", false, own && run.over(), why))
    context.commands.push(engine::CheckAgreement{run.id()});
}

}  // namespace

const Panel kAgreementPanel{"agreement", "Agreement", no_run_yet, draw, nullptr};

}  // namespace ui

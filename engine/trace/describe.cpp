#include "engine/trace/describe.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/timeline/run_slices.h"
#include "engine/trace/settings.h"

namespace engine {
namespace {

std::string in_ms(Nanoseconds ns) {
  return fmt::format("{:.3g} ms", static_cast<double>(ns) / 1e6);
}

/// True if the proposals form one chain, so "position 4" is unambiguous.
bool one_chain(const StepRecord& step) {
  const TokenTree& tree = step.drafted.tree;
  int last = -1;
  for (std::size_t row = 0; row < step.verified.fate.size() && row < tree.parent.size(); ++row) {
    const RowFate fate = step.verified.fate[row];
    if (fate == RowFate::Context || fate == RowFate::Window) continue;
    if (last >= 0 && tree.parent[row] != last) return false;
    last = static_cast<int>(row);
  }
  return true;
}

std::string proposals_of(const StepRecord& step) {
  const Verified& v = step.verified;
  if (v.n_proposed == 0) return "nothing proposed";
  std::string text = fmt::format("{} proposed, {} accepted", v.n_proposed, v.n_accepted);
  if (v.n_rejected == 1 && one_chain(step)) {
    text += fmt::format(", position {} rejected", v.n_accepted + 1);
  } else if (v.n_rejected > 0) {
    text += fmt::format(", {} rejected", v.n_rejected);
  }
  if (v.n_unused > 0) text += fmt::format(", {} unused", v.n_unused);
  return text;
}

/// Why Timeline::speedup() is undefined.
std::string why_no_speedup(const Timeline& timeline, const RunRecord& run) {
  if (const std::string why = timeline.why_other_load(run); !why.empty())
    return fmt::format("{}. {}", kOtherLoad, why);
  if (timeline.baseline_of(run)) return "this run was ended early.";
  if (run.agreement) return "the plain run that it was compared with is not in this recording.";
  return "this recording has no plain run of the same prompt and settings.";
}

std::string verdict_of(const Timeline& timeline, const RunRecord& run) {
  std::string text;
  if (run.agreement) {
    text += run.agreement->first_difference < 0
                ? fmt::format("Identical to plain decoding over {}.\n",
                              counted(run.agreement->n_compared, "token"))
                : fmt::format("Differs from plain decoding at token {}.\n",
                              run.agreement->first_difference);
  }
  const std::optional<double> speedup = timeline.speedup(run);
  return text +
         (speedup ? fmt::format("Speedup over the plain run of this recording: {:.3g}.\n", *speedup)
                  : "Speedup: -, " + why_no_speedup(timeline, run) + "\n");
}

/// The generated text before a stop string or stop id.
std::string written_by(const Timeline& timeline, const RunRecord& run) {
  std::size_t n = run.tokens.size();
  if (run.finished && run.finished->stop_reason == "stop_id" && n > 0) n--;
  std::string text = timeline.generated_text(run, 0, n);
  const std::string stop = run.finished ? run.finished->stop_string : "";
  if (!stop.empty()) text.resize(std::min(text.size(), text.find(stop)));
  return text;
}

std::string ending_of(const RunRecord& run) {
  if (run.failed) return "Failed: " + printable(run.failed->message) + ".\n";
  if (run.was_stopped()) return "Cancelled.\n";
  if (run.finished) return "Ended by " + ended_by(*run.finished) + ".\n";
  if (run.steps.empty()) return "No step yet.\n";
  const StepHead last = run.steps.head(run.steps.size() - 1);
  return last.complete ? fmt::format("Still running after step {}.\n", last.begun.step)
                       : fmt::format("Cut off within step {}.\n", last.begun.step);
}

}  // namespace

std::string ended_by(const RunFinished& finished) {
  const std::string reason = printable(finished.stop_reason);
  return finished.stop_string.empty() ? reason
                                      : reason + " " + printable(json_quoted(finished.stop_string));
}

std::string describe(const PayloadDropped& drop) {
  const std::string steps = drop.first_step == drop.last_step
                                ? fmt::format("step {}", drop.first_step)
                                : fmt::format("steps {}-{}", drop.first_step, drop.last_step);
  const std::string size = drop.n_bytes > 0 ? fmt::format(", {} bytes", drop.n_bytes) : "";
  return fmt::format("{} of {} not kept (buffer full){}", printable(drop.kind), steps, size);
}

std::string describe(const Timeline& timeline, const RunRecord& run, const StepRecord& step) {
  if (!step.complete) return fmt::format("Step {}: not complete", step.begun.step);
  std::string text = fmt::format("Step {}: {}", step.begun.step, proposals_of(step));
  const Committed& c = step.committed;
  for (std::size_t i = 0; i < c.tokens.size(); ++i) {
    if (c.status[i] != TokenStatus::Bonus) continue;
    text += ", bonus '" + timeline.name_of(run, c.tokens[i]) + "'";
  }
  const StepEnded& e = step.ended;
  return text + fmt::format("; {} in {}", counted(std::ssize(c.tokens), "token"),
                            in_ms(e.propose + e.forward + e.verify + e.commit));
}

std::string describe(const Timeline& timeline, const RunRecord& run) {
  const RunStarted& s = run.started;
  const ModelLoaded* model = timeline.model(s.model);
  std::string text = fmt::format("Run {}: {}", run.id(), printable(s.decoder));
  if (model) {
    text += fmt::format(" on {} (scale {}, {}, {})", printable(model->name),
                        printable(model->scale), printable(model->dtype), printable(model->device));
  }
  if (const ModelLoaded* draft = timeline.model(s.draft)) {
    text += ", drafts by " + printable(draft->name);
  }
  text += ".\nSettings: " + printable(run_settings(s)) + ".\n";
  if (const std::string options = decoder_options(s, ", "); !options.empty())
    text += "Options: " + printable(options) + ".\n";
  if (s.n_approximate > 0)
    text += "Unverified part of the prompt: ~" +
            timeline.plain_text_of(run, run.approximate_of_prompt()) + "~\n";
  for (const StepRecord& step : run.steps) {
    text += describe(timeline, run, step) + "\n";
  }
  text += ending_of(run);
  if (run.totals.n_steps > 0) {
    text += fmt::format(
        "{} in {}: {:.3g} tokens per step, {:.4g} tokens per second of its own "
        "compute.\n",
        counted(run.totals.n_tokens, "token"), counted(run.totals.n_steps, "step"),
        run.tokens_per_step(), run.tokens_per_second());
  }
  if (run.n_proposed() > 0) {
    text += fmt::format("{} of {} proposals accepted, {} rejected, {} not verified.\n",
                        run.n_accepted(), run.n_proposed(), run.n_rejected(), run.n_unused());
  }
  text += verdict_of(timeline, run);
  const std::string written = written_by(timeline, run);
  text += "Text: " + printable(written, LineBreaks::Kept) + "\n";
  if (run.finished && !run.finished->approximate.empty())
    text += "Unverified guesses after the text: ~" +
            timeline.plain_text_of(run, run.finished->approximate) + "~\n";
  return text;
}

std::string describe(const Timeline& timeline, const std::function<void()>& before_each) {
  if (timeline.runs().empty()) return "No run in this recording.\n";
  std::string text;
  for (const RunRecord& run : timeline.runs()) {
    if (before_each) before_each();
    text += describe(timeline, run) + "\n";
  }
  return text + fmt::format(
                    "Times are measured; rates and speedups are derived from measured figures.\n"
                    "Written by Decoscope {}.\n",
                    program_version());
}

std::optional<std::string> other_weights(std::string_view recorded_model,
                                         std::string_view recorded_hash,
                                         std::string_view model_here,
                                         std::string_view hash_here) {
  if (recorded_hash.empty() || hash_here.empty() || recorded_hash == hash_here) return std::nullopt;
  return fmt::format(
      "recorded with {}, weights {}; {} here has weights {}: the same request may give other "
      "tokens",
      printable(recorded_model), printable(recorded_hash), printable(model_here), hash_here);
}

}  // namespace engine

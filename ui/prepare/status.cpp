#include "ui/prepare/status.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/describe.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/figure.h"

namespace ui {
namespace {

using Level = Status::Level;

std::string amount(const engine::Phase& phase) {
  if (phase.total <= 0) return "";
  if (phase.name == "load" && phase.total > 1'000'000)
    return fmt::format(" {:.2f} / {:.2f} GB", static_cast<double>(phase.done) / 1e9,
                       static_cast<double>(phase.total) / 1e9);
  return fmt::format(" {} / {}", with_commas(phase.done), with_commas(phase.total));
}

Status of_phase(const engine::Phase& phase, double seconds) {
  Status s{.text = phase.name + amount(phase), .working = true, .shorter = {phase.name}};
  if (!phase.detail.empty()) s.text += " " + phase.detail;
  s.text += fmt::format(", {:.1f} s", seconds);
  if (phase.total > 0) s.share = static_cast<double>(phase.done) / static_cast<double>(phase.total);
  return s;
}

// Returns why an answer ended.
std::string end_words(const engine::RunFinished& finished) {
  const std::string& stop_reason = finished.stop_reason;
  if (stop_reason == "eos") return "answer complete";
  if (stop_reason == "length") return "ended at max tokens";
  if (stop_reason == "context") return "ended: the model's context is full";
  if (stop_reason == "stop_string" || stop_reason == "stop_id")
    return "ended by " + engine::ended_by(finished);
  if (stop_reason == "stopped")
    return fmt::format("stopped after {}", engine::counted(finished.n_tokens, "token"));
  return stop_reason.empty() ? "ended" : stop_reason;
}

// Returns why an answer ended, in one or two words for a bar without room.
std::string short_end_words(const engine::RunFinished& finished) {
  const std::string& stop_reason = finished.stop_reason;
  if (stop_reason == "eos") return "complete";
  if (stop_reason == "length") return "max tokens";
  if (stop_reason == "context") return "context full";
  if (stop_reason == "stop_string" || stop_reason == "stop_id") return "stop string";
  return stop_reason.empty() ? "ended" : stop_reason;
}

Status of_recording(const engine::RunRecord* run) {
  if (!run) return {.text = "recording"};
  if (run->failed)
    return {Level::Bad, "recording of a run that failed: " + for_window(run->failed->message)};
  if (run->finished)
    return {.text = "recording, " + end_words(*run->finished),
            .shorter = {end_words(*run->finished), short_end_words(*run->finished)}};
  const std::string end = run->steps.empty()
                              ? "ends before the first step"
                              : fmt::format("ends within step {}", run->steps.back().begun.step);
  return {.level = Level::Amber, .text = "recording, " + end, .shorter = {end}};
}

Status of_paused() {
  return {.level = Level::Quiet,
          .text = "paused: N computes one step, Shift+Space resumes",
          .working = true,
          .shorter = {"paused: N computes one step", "paused"}};
}

// Returns the words without their last part, without their last two parts, and so on. The parts are separated by commas.
std::vector<std::string> without_ends(std::string words) {
  std::vector<std::string> shorter;
  for (std::size_t comma; (comma = words.rfind(", ")) != std::string::npos;) {
    words.resize(comma);
    shorter.push_back(words);
  }
  return shorter;
}

Status of_reasoning(const Reasoning& reasoning, bool paused, double since_event) {
  if (paused) return of_paused();
  if (since_event >= 10)
    return {Level::Amber,
            fmt::format("no progress for {:.0f} s; last: {}", since_event, reasoning.words),
            reasoning.share,
            true,
            {fmt::format("no progress for {:.0f} s", since_event)}};
  return {Level::Quiet, reasoning.words, reasoning.share, true, without_ends(reasoning.words)};
}

Status of_decoding(const engine::RunRecord& run, double since_event) {
  const bool in_step = !run.steps.empty() && !run.steps.back().complete;
  if (since_event >= 10)
    return {Level::Amber,
            fmt::format("no progress for {:.0f} s; last: step {}", since_event,
                        run.steps.empty() ? 0 : run.steps.back().begun.step),
            -1,
            true,
            {fmt::format("no progress for {:.0f} s", since_event)}};
  if (since_event >= 2 && in_step)
    return {Level::Quiet,
            fmt::format("step {} running {:.1f} s", run.steps.back().begun.step, since_event), -1,
            true};
  const double own = static_cast<double>(run.decode_compute());
  return {Level::Quiet,
          fmt::format("decoding, {:.2f} s of compute", own / 1e9),
          -1,
          true,
          {"decoding"}};
}

}  // namespace

Status status_of(const engine::Timeline& timeline,
                 const engine::RunRecord* run,
                 double since_event,
                 bool recorded) {
  if (recorded) return of_recording(run);
  if (const auto loading = loading_of(timeline))
    return {.text = fmt::format("loading {}, {}", loading->name, loading_facts(*loading)),
            .share = loading->done / loading->total,
            .working = true,
            .shorter = {"loading " + loading->name, "loading"}};
  if (const auto reasoning = reasoning_of(timeline))
    return of_reasoning(*reasoning, timeline.held(), since_event);
  if (!run) return {.text = "idle"};
  if (run->failed) return {Level::Bad, for_window(run->failed->message)};
  if (run->finished)
    return {.text = fmt::format("{}, {:.2f} s of compute", end_words(*run->finished),
                                static_cast<double>(run->finished->decode) / 1e9),
            .shorter = {end_words(*run->finished), short_end_words(*run->finished)}};
  if (timeline.held()) return of_paused();
  if (!run->phases.empty() && run->steps.empty()) {
    const engine::Phase& phase = run->phases.back();
    return of_phase(phase,
                    static_cast<double>(run->last_event - run->started.t) / 1e9 + since_event);
  }
  if (run->steps.empty())
    return {.text = fmt::format("starting, {:.1f} s", since_event),
            .working = true,
            .shorter = {"starting"}};
  return of_decoding(*run, since_event);
}

std::vector<std::string> forms_of(const Status& status, const std::string& place) {
  std::vector<std::string> forms{status.text};
  forms.insert(forms.end(), status.shorter.begin(), status.shorter.end());
  if (place.empty()) return forms;
  const std::string last = forms.back();
  for (std::string& form : forms) form.insert(0, place + ": ");
  forms.push_back(last);
  return forms;
}

std::optional<Loading> loading_of(const engine::Timeline& timeline) {
  const auto phases = timeline.phases();
  if (phases.empty() || phases.back().name != "load") return std::nullopt;
  const engine::Phase& now = phases.back();
  if (now.done >= now.total || now.t < timeline.last_event()) return std::nullopt;
  // The first report of this loading; earlier ones belong to another model or an earlier loading.
  std::size_t first = phases.size() - 1;
  while (first > 0 && phases[first - 1].detail == now.detail && phases[first - 1].name == "load" &&
         phases[first - 1].done <= phases[first].done)
    --first;
  Loading loading{now.detail, static_cast<double>(now.done), static_cast<double>(now.total)};
  const double seconds = static_cast<double>(now.t - phases[first].t) * 1e-9;
  if (seconds > 0)
    loading.per_second = static_cast<double>(now.done - phases[first].done) / seconds;
  return loading;
}

std::optional<Reasoning> reasoning_of(const engine::Timeline& timeline) {
  const auto phases = timeline.phases();
  if (phases.empty() || phases.back().name != "reason") return std::nullopt;
  const engine::Phase& now = phases.back();
  if (now.done >= now.total) return std::nullopt;
  return Reasoning{now.detail, static_cast<double>(now.done) / static_cast<double>(now.total)};
}

std::optional<SetProgress> set_of(const engine::Timeline& timeline) {
  const auto phases = timeline.phases();
  for (std::size_t i = phases.size(); i-- > 0;) {
    if (phases[i].name != "set") continue;
    if (phases[i].done >= phases[i].total) break;
    return SetProgress{phases[i].done, phases[i].total};
  }
  return std::nullopt;
}

std::string set_words(const engine::PlaceInSet& place) {
  const bool prompts = place.n_prompts > 1, repeats = place.n_repeats > 1;
  if (prompts && repeats)  // short, because a narrow window has little room
    return fmt::format("prompt {}/{}, repeat {}/{}", place.prompt + 1, place.n_prompts,
                       place.repeat + 1, place.n_repeats);
  if (prompts) return fmt::format("prompt {} of {}", place.prompt + 1, place.n_prompts);
  return repeats ? fmt::format("repeat {} of {}", place.repeat + 1, place.n_repeats) : "";
}

bool is_going(const engine::Timeline& timeline) {
  // Between two races of a set no run is going.
  return reasoning_of(timeline) || set_of(timeline) ||
         std::ranges::any_of(timeline.runs(), [](const auto& run) { return !run.over(); });
}

std::string loading_facts(const Loading& loading) {
  std::string text = fmt::format("{:.2f} of {:.2f} GB", loading.done / 1e9, loading.total / 1e9);
  if (loading.per_second > 0)
    text += fmt::format(", {:.2f} GB/s, {:.0f} s left", loading.per_second / 1e9,
                        loading.seconds_left());
  return text;
}

std::string loading_words(const engine::Timeline& timeline) {
  const auto loading = loading_of(timeline);
  if (!loading) return "";
  return fmt::format("Loading {}: {}. The run starts afterwards.", loading->name,
                     loading_facts(*loading));
}

std::string awaited_words(const engine::Timeline& timeline, double waiting) {
  if (std::string loading = loading_words(timeline); !loading.empty() || waiting < 0)
    return loading;
  return fmt::format("Loading the model: {:.0f} s. The run starts afterwards.", waiting);
}

std::string name_of(const engine::RunRecord& run) {
  const engine::RunStarted& s = run.started;
  const std::string decoder = short_name(s.decoder);
  return s.race ? fmt::format("{} {}", static_cast<char>('A' + s.lane % 26), decoder) : decoder;
}

std::string short_name(const std::string& decoder) {
  return title_in_lists(decoder, decoder);
}

std::string title_in_lists(const std::string& decoder, const std::string& title) {
  return decoder == "ar" ? "AR" : title;
}

Status race_status(double at, std::size_t n_done, std::size_t n_stopped, std::size_t n_lanes) {
  const std::string compute = short_time(at) + " of compute per lane";
  std::string ended;
  if (n_done > 0) ended = fmt::format("{} of {} done", n_done, n_lanes);
  if (n_stopped > 0) ended += fmt::format("{}{} stopped", n_done > 0 ? ", " : "", n_stopped);
  if (ended.empty()) return {.text = compute, .shorter = {short_time(at)}};
  return {.text = ended + ", " + compute, .shorter = {ended}};
}

Status agreement_of(const engine::RunRecord* run) {
  if (!run || run->started.decoder == "ar" || !run->agreement) return {};
  if (run->agreement->first_difference < 0) return {Level::Good, "same as plain decoding"};
  return {Level::Bad,
          fmt::format("differs from plain decoding at token {}", run->agreement->first_difference)};
}

std::vector<std::string> forms_of(std::vector<BarPart> parts) {
  std::vector<std::string> forms;
  while (!parts.empty()) {
    std::string line;
    for (const BarPart& part : parts) line += (line.empty() ? "" : " \xC2\xB7 ") + part.text;
    forms.push_back(std::move(line));
    const auto least = std::min_element(parts.rbegin(), parts.rend(),
                                        [](auto& a, auto& b) { return a.rank < b.rank; });
    parts.erase(std::next(least).base());
  }
  return forms;
}

std::vector<std::string> bar_forms(const BarFacts& facts) {
  constexpr int kModel = 6, kDocument = 5, kFault = 4, kState = 3, kLoad = 2, kRange = 1, kRest = 0;
  std::vector<BarPart> parts;
  const auto add = [&parts](int rank, std::string text) {
    parts.push_back({std::move(text), rank});
  };
  if (!facts.source.empty()) add(kDocument, "Recording " + facts.source);
  if (!facts.model.empty()) add(kModel, facts.model);
  if (facts.n_events > 0)
    add(kRest,
        with_commas(facts.n_events) + (facts.source.empty() ? " events recorded" : " events"));
  if (facts.running)
    add(kState, facts.paused ? "paused between two steps" : "running");
  else if (facts.source.empty())
    add(kState, facts.paused ? "the next run starts paused" : "idle");
  if (facts.quiet)
    add(kLoad, "measuring: few frames are drawn, to leave the processor to the decoders");
  else if (facts.unfocused)
    add(kLoad, "window without focus: at most 20 frames per second while a run decodes");
  if (facts.n_dropped > 0)
    add(kFault,
        fmt::format("details of some steps were dropped: {} messages in the Log", facts.n_dropped));
  if (facts.n_inconsistent > 0)
    add(kFault, fmt::format("{} inconsistent events ignored", facts.n_inconsistent));
  if (facts.running && !facts.device.empty()) add(kLoad, facts.device);
  if (facts.running) add(kRest, fmt::format("drawing takes {:.1f} ms per frame", facts.draw_ms));
  if (facts.scale_percent != 100) add(kRest, fmt::format("scale {} %", facts.scale_percent));
  if (!facts.range.empty()) add(kRange, "measured range: " + facts.range);
  return forms_of(std::move(parts));
}

std::vector<std::string> caption_forms(const std::string& app_version,
                                       const engine::Timeline& timeline,
                                       const std::vector<const engine::RunRecord*>& runs) {
  constexpr int kRuns = 4, kProgram = 3, kModel = 2, kSettings = 1, kLetters = 0;
  std::vector<BarPart> parts{{"Decoscope " + app_version, kProgram}};
  if (!runs.empty()) {
    const engine::RunStarted& s = runs.front()->started;
    std::string names;
    for (const engine::RunRecord* run : runs) names += (names.empty() ? "" : ", ") + name_of(*run);
    parts.push_back({names, kRuns});
    if (const engine::ModelLoaded* m = timeline.model(s.model))
      parts.push_back({fmt::format("{}{}, {}, {}", m->name,
                                   m->scale.empty() ? "" : " at " + m->scale, m->dtype, m->device),
                       kModel});
    parts.push_back({s.temperature == 0 ? "greedy" : fmt::format("temperature {:g}", s.temperature),
                     kSettings});
    parts.push_back({fmt::format("seed {}", s.seed), kSettings});
  }
  parts.push_back({"figures without a letter: measured", kLetters});
  parts.push_back({truth_words(Truth::Derived), kLetters});
  parts.push_back({truth_words(Truth::Hindsight), kLetters});
  return forms_of(std::move(parts));
}

std::string caption_words(const std::string& app_version,
                          const engine::Timeline& timeline,
                          const std::vector<const engine::RunRecord*>& runs) {
  return caption_forms(app_version, timeline, runs).front();
}

namespace {

std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == ','; });
  return text;
}

}  // namespace

const std::vector<std::string>& SteadyWords::show(std::vector<std::string> forms,
                                                  double now,
                                                  bool changes) {
  if (forms == shown_) return shown_;
  const bool only_numbers = std::ranges::equal(forms, shown_, {}, without_numbers, without_numbers);
  if (changes && only_numbers && now < since_ + kLiveSeconds) return shown_;
  shown_ = std::move(forms);
  since_ = now;
  return shown_;
}

}  // namespace ui

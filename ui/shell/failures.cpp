// Bars under the top bar that report a failure of the engine or its device and offer remedies.
#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "engine/event/recording/training_history.h"
#include "ui/files/exporting.h"
#include "ui/files/opening.h"
#include "ui/files/saving.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/status.h"
#include "ui/shell/shell.h"
#include "ui/widgets/area.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

constexpr float kReportBar = 36;

// Begins a bar with a report at the left, shortened to leave room for the remedies at the right; the tooltip has the whole report.
void begin_report_bar(const char* id, float top, const std::string& what, Rgb rgb) {
  const Area area = frame_area();
  begin_bar(id, {area.min.x, top}, {area.wide(), px(kReportBar)}, {px(14), px(4)});
  ImGui::GetWindowDrawList()->AddRectFilled(
      {area.min.x, top}, {area.min.x + px(5), top + px(kReportBar)}, colour(rgb));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(10), target_padding()));
  ImGui::AlignTextToFramePadding();
  // Leaves room at the right for the remedies, as wide as in the last frame.
  const float remedies = *ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("remedies"), px(340));
  const float end = area.wide() - remedies - px(14);
  words_within(what, rgb, end - ImGui::GetCursorPosX() - px(14));
  ImGui::SameLine(end);
  ImGui::BeginGroup();
}

std::string failure_words(const engine::RunRecord& run) {
  const std::string where = run.steps.empty()
                                ? "before its first step"
                                : fmt::format("at step {}", run.steps.back().begun.step);
  return fmt::format("The run failed {} (code {}); its recorded events are complete. {}", where,
                     run.failed->code, for_window(run.failed->message));
}

// Returns true if a failure concerns the GPU. A lack of resources concerns it if the message names
// the GPU; otherwise disk or host memory is short.
bool is_of_gpu(const engine::RunFailed& failed, const std::string& device) {
  if (failed.code == static_cast<int>(engine::ErrorCode::Device)) return true;
  return failed.code == static_cast<int>(engine::ErrorCode::Resources) &&
         failed.message.find(device) != std::string::npos;
}

// Returns true if the prompt of the run is the cause: it is empty, or too long for the context.
bool is_of_prompt(const engine::RunFailed& failed) {
  return failed.message.starts_with("prompt: ") || failed.message.starts_with("the prompt ");
}

void end_report_bar() {
  ImGui::EndGroup();
  *ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("remedies"), 0) = ImGui::GetItemRectSize().x;
  ImGui::PopStyleVar();
  ImGui::End();
}

}  // namespace

// Remembers a failure of the GPU that the last command used, so that the CPU can be offered.
void Shell::follow_failures(const std::vector<engine::Event>& events) {
  for (const engine::Event& event : events) {
    if (const auto* started = std::get_if<engine::RunStarted>(&event)) {
      gpu_failed_.reset();
      if (requested_first_run_ == 0) requested_first_run_ = started->run;
    }
    const auto* failed = std::get_if<engine::RunFailed>(&event);
    if (failed && is_of_prompt(*failed)) form_.prompt_error = for_window(failed->message);
    if (!failed || gpu_failed_ || !requested_command_ || !is_gpu(requested_.device)) continue;
    // Ignores failures of runs that an earlier command started.
    const bool before = requested_first_run_ == 0 || failed->run < requested_first_run_;
    if (failed->run != 0 && before) continue;
    if (is_of_gpu(*failed, requested_.device)) gpu_failed_ = *failed;
  }
}

bool Shell::cpu_can_go_on(const engine::RunRecord* shown) const {
  if (!gpu_failed_ || !session_.live_is_shown()) return false;
  return gpu_failed_->run == 0 || (shown && shown->failed && shown->id() >= requested_first_run_);
}

// Repeats the last command on the CPU and sets the device in Setup.
void Shell::go_on_with_cpu() {
  engine::Command command = *requested_command_;
  const bool loads = std::holds_alternative<engine::LoadModel>(command);
  std::visit(
      [](auto& c) {
        if constexpr (requires { c.device; }) c.device = "cpu";
      },
      command);
  static_cast<ModelChoice&>(form_) = requested_;
  form_.device = "cpu";
  form_.model_error.clear();
  if (loads)
    load();
  else
    ask(std::move(command));
  say("Setup now uses the device cpu.");
}

float Shell::draw_failure_bar(Context& c, float top) {
  const engine::RunRecord* run = c.run();
  if (screen_ != Screen::Live && screen_ != Screen::Compare) return top;
  const bool offers_cpu = cpu_can_go_on(run);
  const bool of_no_run = offers_cpu && gpu_failed_->run == 0;
  const bool of_run = run && run->failed && !dismissed_.contains(run->id());
  if (!of_no_run && !of_run) return top;
  const std::string text =
      of_no_run
          ? fmt::format("{} (code {}): {}", requested_first_run_ == 0 ? "Not started" : "Failed",
                        gpu_failed_->code, for_window(gpu_failed_->message))
          : failure_words(*run);
  begin_report_bar("##failure", top, text, theme().bad);
  if (offers_cpu) {
    const bool loads = std::holds_alternative<engine::LoadModel>(*requested_command_);
    if (button(loads ? "Load on the CPU###cpu" : "Run on the CPU###cpu", true, true,
               "repeat with cpu as the device in Setup"))
      go_on_with_cpu();
    ImGui::SameLine(0, px(14));
  }
  if (link("Copy report")) requests_.copy = text;
  ImGui::SameLine(0, px(14));
  if (link("Save")) requests_.save = true;
  ImGui::SameLine(0, px(14));
  if (link("Dismiss###dismiss_failure")) {
    if (of_no_run)
      gpu_failed_.reset();
    else
      dismissed_.insert(run->id());
  }
  end_report_bar();
  return top + px(kReportBar);
}

std::optional<Unanswered> Shell::late_gpu() const {
  // While a file is written, newer events are held back, so the timeline may lack the GPU's response.
  if (!held_back_.empty()) return std::nullopt;
  return unanswered(session_.live().timeline, since_event_, deadlines_);
}

// Draws the bar of a late GPU. A hanging kernel cannot be stopped, but the recorded events can be saved without it.
float Shell::draw_late_bar(float top) {
  const auto late = late_gpu();
  if (!late || !late->way_out || late_dismissed_) return top;
  begin_report_bar("##late", top,
                   fmt::format("{}. Stop takes effect when {} responds; the recorded events can be "
                               "saved without it.",
                               words_of(*late), late->device),
                   theme().warn);
  if (button("Save and exit###save_and_exit", true, !saving_ && !reads() && !exports(),
             fmt::format("save this session as {} (or the next free name) and close the window "
                         "without waiting for the GPU",
                         suggested("session.pdrun"))
                 .c_str()))
    save_and_exit();
  ImGui::SameLine(0, px(14));
  if (button("Stop the run###stop_late", false, true, "takes effect when this step ends (Ctrl+.)"))
    perform(Action::Stop);
  ImGui::SameLine(0, px(14));
  if (link("Dismiss###dismiss_late")) late_dismissed_ = true;
  end_report_bar();
  return top + px(kReportBar);
}

// Shows the path of the saved session before the window closes.
float Shell::draw_saved_bar(float top) {
  if (closes_at_ < 0) return top;
  begin_report_bar("##saved", top,
                   fmt::format("Saved {}. The window closes in {:.0f} s.", saved_path_,
                               std::ceil(std::max(0.0, closes_at_ - clock_))),
                   theme().good);
  if (button("Close now###close_now", true)) closes_at_ = clock_;
  ImGui::SameLine(0, px(14));
  if (link("Copy path")) requests_.copy = saved_path_;
  end_report_bar();
  wants_to_close_ = clock_ >= closes_at_;
  return top + px(kReportBar);
}

// Offers the newest session that an earlier window did not save.
float Shell::draw_restore_bar(float top) {
  if (unsaved_sessions_.empty() || screen_ != Screen::Welcome) return top;
  begin_report_bar("##left", top,
                   "Restore " + description_of(unsaved_sessions_.front()) + ", which was not saved",
                   theme().warn);
  if (button("Open###open_left", true, !exports() && !saves(), "a file is being written")) {
    restored_ = std::move(unsaved_sessions_.front());
    unsaved_sessions_.erase(unsaved_sessions_.begin());
    open(restored_->path);
  }
  ImGui::SameLine(0, px(14));
  if (!unsaved_sessions_.empty() && link("Discard###discard_left")) {
    remove_session(unsaved_sessions_.front());
    unsaved_sessions_.erase(unsaved_sessions_.begin());
  }
  end_report_bar();
  return top + px(kReportBar);
}

// Reports the damaged parts of the recording shown until the user dismisses the bar.
float Shell::draw_damage_bar(float top) {
  std::string& damage = session_.shown().damage;
  const bool shows_recording =
      screen_ == Screen::Live || screen_ == Screen::Compare || screen_ == Screen::Lab;
  if (damage.empty() || !shows_recording) return top;
  begin_report_bar("##damage", top,
                   "This recording is damaged: " + damage + ". Its other events are shown.",
                   theme().warn);
  if (link("Copy report###copy_damage")) requests_.copy = session_.shown().source + ": " + damage;
  ImGui::SameLine(0, px(14));
  const bool dismissed = link("Dismiss###dismiss_damage");
  end_report_bar();
  if (dismissed) damage.clear();
  return top + px(kReportBar);
}

bool Shell::may_close() {
  if (unsaved_.empty()) return true;
  if (!close_dialog_) show_overlay(close_dialog_);
  return false;
}

// After "Save and close", saves when the runs have stopped, or after 3 s, because a device may hang.
void Shell::close_when_stopped() {
  constexpr double kPatienceSeconds = 3;
  if (stops_since_ < 0 || exports()) return;
  if (is_going(session_.live().timeline) && clock_ - stops_since_ < kPatienceSeconds) return;
  stops_since_ = -1;
  save_and_exit();
}

void Shell::save_and_exit() {
  if (!session_.live_is_shown()) {
    show_live();
    adopt_document();
  }
  exits_when_saved_ = true;
  save(suggested("session.pdrun"));
}

}  // namespace ui

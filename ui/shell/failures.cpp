// What went wrong with the engine or its device, told across the window under the top bar, and the
// ways on from there.
#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "ui/widgets/draw.h"
#include "ui/prepare/failure_words.h"
#include "ui/shell/shell.h"

namespace ui {
namespace {

constexpr float kToldBar = 36;

/// A bar with what happened at its left, cut where it would cover the ways on at its right;
/// hovering tells it whole.
void begin_told_bar(const char* id, float top, const std::string& what, Rgb rgb) {
  const ImGuiViewport* main = ImGui::GetMainViewport();
  begin_bar(id, {main->Pos.x, top}, {main->Size.x, px(kToldBar)}, {px(14), px(4)});
  ImGui::GetWindowDrawList()->AddRectFilled({main->Pos.x, top},
                                            {main->Pos.x + px(5), top + px(kToldBar)}, colour(rgb));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(10), px(4)));
  ImGui::AlignTextToFramePadding();
  // As wide as the ways on were last time.
  const float ways = *ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("ways"), px(340));
  const float end = main->Size.x - ways - px(14);
  words_within(what, rgb, end - ImGui::GetCursorPosX() - px(14));
  ImGui::SameLine(end);
  ImGui::BeginGroup();
}

std::string failure_words(const engine::RunRecord& run) {
  const std::string where = run.steps.empty()
                                ? "before its first step"
                                : fmt::format("at step {}", run.steps.back().begun.step);
  return fmt::format("The run failed {} (code {}); what was recorded is whole. {}", where,
                     run.failed->code, in_window(run.failed->message));
}

// Of what can go wrong for want of memory, the disk's and the host's name no device.
bool is_of_gpu(const engine::RunFailed& failed, const std::string& device) {
  if (failed.code == static_cast<int>(engine::ErrorCode::Device)) return true;
  return failed.code == static_cast<int>(engine::ErrorCode::Resources) &&
         failed.message.find(device) != std::string::npos;
}

void end_told_bar() {
  ImGui::EndGroup();
  *ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("ways"), 0) = ImGui::GetItemRectSize().x;
  ImGui::PopStyleVar();
  ImGui::End();
}

}  // namespace

// Where a GPU failed, or has too little memory, the CPU is offered in its place.
void Shell::follow_failures(const std::vector<engine::Event>& events) {
  for (const engine::Event& event : events) {
    if (const auto* started = std::get_if<engine::RunStarted>(&event)) {
      gpu_failed_.reset();
      if (asked_first_run_ == 0) asked_first_run_ = started->run;
    }
    const auto* failed = std::get_if<engine::RunFailed>(&event);
    if (!failed || gpu_failed_ || !asked_command_ || !is_gpu(asked_.device)) continue;
    // A run that was asked for before says nothing of what was asked for last.
    const bool before = asked_first_run_ == 0 || failed->run < asked_first_run_;
    if (failed->run != 0 && before) continue;
    if (is_of_gpu(*failed, asked_.device)) gpu_failed_ = *failed;
  }
}

bool Shell::cpu_can_go_on(const engine::RunRecord* shown) const {
  if (!gpu_failed_ || !session_.live_is_shown()) return false;
  return gpu_failed_->run == 0 || (shown && shown->failed && shown->id() >= asked_first_run_);
}

// Asks for the same once more, and Setup shows where it runs now.
void Shell::go_on_with_cpu() {
  engine::Command command = *asked_command_;
  const bool loads = std::holds_alternative<engine::LoadModel>(command);
  std::visit(
      [](auto& c) {
        if constexpr (requires { c.device; }) c.device = "cpu";
      },
      command);
  static_cast<ModelChoice&>(form_) = asked_;
  form_.device = "cpu";
  form_.model_error.clear();
  if (loads)
    load();
  else
    ask(std::move(command));
  say("The device in Setup is now cpu.");
}

float Shell::draw_failure_bar(Context& c, float top) {
  const engine::RunRecord* run = c.run();
  if (screen_ == Screen::Welcome || screen_ == Screen::Training) return top;
  const bool offers_cpu = cpu_can_go_on(run);
  const bool of_no_run = offers_cpu && gpu_failed_->run == 0;
  const bool of_run = run && run->failed && !dismissed_.contains(run->id());
  if (!of_no_run && !of_run) return top;
  const std::string text =
      of_no_run ? fmt::format("{} (code {}): {}", asked_first_run_ == 0 ? "Not begun" : "Failed",
                              gpu_failed_->code, in_window(gpu_failed_->message))
                : failure_words(*run);
  begin_told_bar("##failure", top, text, theme().bad);
  if (offers_cpu) {
    const bool loads = std::holds_alternative<engine::LoadModel>(*asked_command_);
    if (button(loads ? "Load on the CPU###cpu" : "Run on the CPU###cpu", true, true,
               "the same once more, with cpu as the device in Setup"))
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
  end_told_bar();
  return top + px(kToldBar);
}

std::optional<Unanswered> Shell::late_gpu() const {
  // While a file is written of it, the timeline lacks what the engine has told since.
  if (!held_back_.empty()) return std::nullopt;
  return unanswered(session_.live().timeline, since_event_, deadlines_);
}

// What hangs cannot be stopped: what was told so far can be kept without it.
float Shell::draw_late_bar(float top) {
  const auto late = late_gpu();
  if (!late || !late->way_out || late_dismissed_) return top;
  begin_told_bar("##late", top,
                 fmt::format("{}. Stop takes effect when {} answers; what was recorded so far can "
                             "be saved without it.",
                             words_of(*late), late->device),
                 theme().warn);
  if (button("Save and exit###save_and_exit", true, !saving_ && !reads() && !exports(),
             fmt::format("saves this session as {} (a name beside it where that is taken) and "
                         "closes the window without waiting for the GPU",
                         suggested("session.pdrun"))
                 .c_str()))
    save_and_exit();
  ImGui::SameLine(0, px(14));
  if (button("Stop the run###stop_late", false, true, "takes effect when this step ends (Ctrl+.)"))
    perform(Action::Stop);
  ImGui::SameLine(0, px(14));
  if (link("Dismiss###dismiss_late")) late_dismissed_ = true;
  end_told_bar();
  return top + px(kToldBar);
}

// Where it is kept can be read before the window closes.
float Shell::draw_saved_bar(float top) {
  if (closes_at_ < 0) return top;
  begin_told_bar("##saved", top,
                 fmt::format("Saved {}. The window closes in {:.0f} s.", saved_path_,
                             std::ceil(std::max(0.0, closes_at_ - clock_))),
                 theme().good);
  if (button("Close now###close_now", true)) closes_at_ = clock_;
  ImGui::SameLine(0, px(14));
  if (link("Copy path")) requests_.copy = saved_path_;
  end_told_bar();
  wants_to_close_ = clock_ >= closes_at_;
  return top + px(kToldBar);
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

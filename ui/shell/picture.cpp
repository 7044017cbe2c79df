// Takes pictures of a panel or of the window.
#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "engine/base/types.h"
#include "engine/event/timeline/timeline.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

// Number of frames until a requested panel is in front and the dialog is closed.
constexpr int kFramesUntilThere = 4;
constexpr std::array<const char*, 4> kScales{"1x", "2x", "3x", "4x"};

}  // namespace

void Shell::ask_picture(const std::string& path, const std::string& panel, int times) {
  picture_ = Picture{.path = path, .panel = panel, .times = times};
  frames_until_picture_ = kFramesUntilThere;
  if (!panel.empty()) requests_.panel = panel;
  message_until_ = 0;
}

std::optional<Picture> Shell::picture_due() {
  if (!picture_ || frames_until_picture_ > 0) return std::nullopt;
  Picture due = *picture_;
  const ImGuiViewport* main = ImGui::GetMainViewport();
  due.min = {0, 0};
  due.max = main->Size;
  if (!due.panel.empty()) {
    const ImGuiWindow* window =
        ImGui::FindWindowByName(window_name(screen_, due.panel.c_str(), "").c_str());
    if (!window || !window->WasActive) {
      picture_taken("No picture: the panel is not on this screen.");
      return std::nullopt;
    }
    const ImGuiDockNode* node = window->DockNode;
    due.min = node ? node->Pos : window->Pos;
    const ImVec2 size = node ? node->Size : window->Size;
    due.max = {std::min(due.min.x + size.x, main->Size.x),
               std::min(due.min.y + size.y, main->Size.y)};
  }
  Context c = context();
  due.says = caption_words(catalog_.app_version, c.timeline, c.shown_runs());
  return due;
}

void Shell::picture_taken(const std::string& message) {
  picture_.reset();
  if (animating_ && animating_->state() != Animating::State::Estimated) end_animation();
  export_said_ = message;
  say(message);
}

void Shell::ask_animation(const std::string& path,
                          const std::string& panel,
                          int times,
                          const AnimationPlan& plan,
                          bool at_once) {
  if (animating_) end_animation();
  Context c = context();
  std::vector<const RunTimes*> runs;
  if (c.compare)
    for (const engine::RunRecord* run : c.shown_runs()) runs.push_back(&c.times(*run));
  else if (const engine::RunRecord* run = c.run())
    runs.push_back(&c.times(*run));
  try {
    animating_ = std::make_unique<Animating>(path, animation_frames(runs, plan));
  } catch (const engine::Error& error) {
    return picture_taken(error.what());
  }
  animates_at_once_ = at_once;
  playhead_before_ = playhead_;
  export_dialog_ = false;
  ask_picture(path, panel, times);
  playhead_.go_to(animating_->at(), c.end());
}

AnimationPlan Shell::plan_of_steps(AnimationPlan plan, engine::StepId first, engine::StepId last) {
  Context c = context();
  const engine::RunRecord* run = c.run();
  const auto refuse = [&](const std::string& found) {
    throw engine::Error(engine::ErrorCode::Usage,
                        fmt::format("animation: steps {} to {}: {}", first, last, found));
  };
  if (!run || c.times(*run).steps.empty()) refuse("the recording has no steps");
  const std::deque<StepSpan>& steps = c.times(*run).steps;
  if (first > last || first > steps.back().step)
    refuse(fmt::format("run {} has 0 to {}", run->id(), steps.back().step));
  plan.from = steps[c.times(*run).index_of(first)].compute0;
  plan.to = last >= steps.back().step ? c.end() : steps[c.times(*run).index_of(last)].compute1;
  return plan;
}

void Shell::take_frame(std::span<const std::uint8_t> rgb,
                       int width,
                       int height,
                       const std::string& says) {
  animating_->take(rgb, width, height, says);
  if (animating_->state() == Animating::State::Estimated) {
    say(animating_->words());
    if (!animates_at_once_) {
      // The dialog states the size and asks.
      picture_.reset();
      playhead_ = playhead_before_;
      export_dialog_ = true;
      return;
    }
    animating_->begin();
  }
  if (animating_->state() == Animating::State::Done) {
    animation_done_ = {animating_->path(), animating_->words()};
    return picture_taken(
        fmt::format("Animation: {}, {}", animation_done_.first, animation_done_.second));
  }
  playhead_.go_to(animating_->at(), context().end());
  frames_until_picture_ = kFramesUntilThere;
}

bool Shell::wants_frames() const {
  return animating_ && (animating_->state() == Animating::State::Sampling ||
                        animating_->state() == Animating::State::Writing);
}

void Shell::end_animation() {
  // While an estimate waits for the user, the playhead is the user's.
  if (animating_->state() != Animating::State::Estimated) playhead_ = playhead_before_;
  animating_.reset();
}

// Returns the typed path if it has the ending, else a name made from the content.
std::string Shell::picture_path(const std::string& typed, const char* ending) const {
  const std::filesystem::path path(typed);
  if (path.extension() == ending) return typed;
  const std::string name = picture_panel_.empty() ? "window" : picture_panel_;
  return (path.parent_path() / (name + ending)).string();
}

// Returns the plan with the part to show: the measured range if there is one, else everything.
AnimationPlan Shell::animation_plan(Context& c) {
  AnimationPlan plan = animation_plan_;
  plan.from = 0, plan.to = c.end();
  const auto& view = state<TimelineView>();
  const auto [from, to] = std::minmax(view.range.range0, view.range.range1);
  if (const engine::RunRecord* run = c.run(); run && from < to) {
    plan.from = to_compute(view.clock, c.times(*run), from, c.wall_origin());
    plan.to = to_compute(view.clock, c.times(*run), to, c.wall_origin());
  }
  return plan;
}

void Shell::animation_row(Context& c) {
  static constexpr std::array<const char*, 2> kPaces{"a step at a time", "by compute time"};
  ImGui::AlignTextToFramePadding();
  words("Animation", theme().dim);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(160));
  int pace = static_cast<int>(animation_plan_.pace);
  if (combo("##pace", pace, kPaces)) animation_plan_.pace = static_cast<Pace>(pace);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(110));
  if (animation_plan_.pace == Pace::Step) {
    ImGui::InputInt("ms per step", &animation_plan_.ms_per_step, 50, 250);
    animation_plan_.ms_per_step = std::clamp(animation_plan_.ms_per_step, 20, 5000);
  } else {
    ImGui::InputDouble("seconds", &animation_plan_.seconds, 1, 5, "%.0f");
    animation_plan_.seconds = std::clamp(animation_plan_.seconds, 1.0, 120.0);
    ImGui::SameLine();
    ImGui::SetNextItemWidth(px(80));
    ImGui::InputInt("fps", &animation_plan_.fps, 1, 5);
    animation_plan_.fps = std::clamp(animation_plan_.fps, 1, 50);
  }
  const bool any = (c.compare ? !c.shown_runs().empty() : c.run() != nullptr) &&
                   (screen_ == Screen::Live || screen_ == Screen::Compare);
  for (const auto& [name, ending] :
       {std::pair{"GIF###do_gif", ".gif"}, {"APNG###do_apng", ".png"}}) {
    ImGui::SameLine();
    if (button(name, false, any,
               "of the measured range, or of the whole run; the size is estimated first"))
      ask_animation(picture_path(export_path_.c_str(), ending), picture_panel_, picture_times_,
                    animation_plan(c), false);
  }
  if (!animating_ || animating_->state() != Animating::State::Estimated) return;
  ImGui::AlignTextToFramePadding();
  words_within(fmt::format("{}: {}", std::filesystem::path(animating_->path()).filename().string(),
                           animating_->words()),
               theme().bright, ImGui::GetContentRegionAvail().x - px(160));
  ImGui::SameLine();
  if (button("Write it###write_animation", true)) {
    animating_->begin();
    animates_at_once_ = true;
    playhead_before_ = playhead_;
    ask_picture(animating_->path(), picture_panel_, picture_times_);
    playhead_.go_to(animating_->at(), c.end());
  }
  ImGui::SameLine();
  if (button("Drop###drop_animation")) end_animation();
}

void Shell::picture_row() {
  const Panel* chosen = picture_panel_.empty() ? nullptr : panel_named(picture_panel_.c_str());
  ImGui::AlignTextToFramePadding();
  words("Picture of", theme().dim);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(170));
  if (ImGui::BeginCombo("##picture_of", chosen ? chosen->title : "the whole window")) {
    if (selectable("the whole window", !chosen)) picture_panel_.clear();
    for (const char* id : panels_of(screen_))
      if (offers(id) && selectable(panel_named(id)->title, picture_panel_ == id))
        picture_panel_ = id;
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  words("at", theme().dim);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(64));
  if (ImGui::BeginCombo("##picture_times", kScales[static_cast<std::size_t>(picture_times_ - 1)])) {
    for (int times = 1; times <= static_cast<int>(kScales.size()); ++times)
      if (selectable(kScales[static_cast<std::size_t>(times - 1)], picture_times_ == times))
        picture_times_ = times;
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  if (button("PNG###do_picture", false, screen_ != Screen::Welcome || !chosen,
             "drawn at this size; the file contains a description")) {
    export_dialog_ = false;
    ask_picture(picture_path(export_path_.c_str(), ".png"), picture_panel_, picture_times_);
  }
}

}  // namespace ui

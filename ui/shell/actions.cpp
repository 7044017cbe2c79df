// The actions of keys, buttons and the command palette.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "engine/base/text.h"
#include "engine/event/queue.h"
#include "ui/files/exporting.h"
#include "ui/files/opening.h"
#include "ui/files/saving.h"
#include "ui/panels/live/block_grid.h"
#include "ui/panels/live/lanes.h"
#include "ui/panels/live/text_view.h"
#include "ui/panels/step/inspector.h"
#include "ui/panels/time/schedule.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/tokens/describe_place.h"
#include "ui/prepare/tokens/difference.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

// Returns true for actions whose keys work while a sheet covers the panels. Other keys would change panels that the sheet covers.
bool acts_over_sheet(Action action) {
  switch (action) {
    case Action::Deselect:
    case Action::Stop:
    case Action::Palette:
    case Action::Help:
    case Action::Find:
    case Action::Open:
    case Action::Save:
    case Action::Export:
    case Action::ScaleUp:
    case Action::ScaleDown:
    case Action::ScaleReset:
    case Action::NextTheme:
    case Action::Settings:
    case Action::Undo:
    case Action::Redo:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Shell::perform(Action action) {
  Context c = context();
  const bool known = act_on_training(action) || act_on_engine(c, action) ||
                     act_on_playhead(c, action) || act_on_time_line(c, action) ||
                     act_on_marks(c, action) || act_on_view(action) || act_on_answer(c, action) ||
                     act_on_files(action) || act_on_window(action) || act_on_lesson(action);
  engine::ensure(known, "no handler for this action");
  if (action != Action::FitSelection) centred_ = false;
}

bool Shell::act_on_engine(Context& c, Action action) {
  const bool held = session_.live().timeline.held();
  switch (action) {
    case Action::Run:
      run(screen_ == Screen::Compare);
      return true;
    case Action::Stop:
      commands_.push(engine::StopRun{});
      return true;
    case Action::HoldEngine:
      hold_or_resume();
      return true;
    case Action::StepEngine:
      if (held)
        commands_.push(engine::StepOnce{});
      else
        say("Pause the engine first (Shift+Space); then N computes one step.");
      return true;
    case Action::Check:
      if (const engine::RunRecord* run = c.run(); run && session_.live_is_shown() && run->over())
        commands_.push(engine::CheckAgreement{run->id()});
      return true;
    default:
      return false;
  }
}

// Pauses or resumes the run that is going or is about to start, else sets if the next run starts paused.
void Shell::hold_or_resume() {
  const engine::Timeline& live = session_.live().timeline;
  if (is_going(live)) {
    commands_.push(engine::Hold{!live.held()});
  } else if (requested_since_ >= 0 && awaits_run_) {
    requested_held_ = !requested_held_;
    commands_.push(engine::Hold{requested_held_});
    say(requested_held_ ? "The run starts paused." : "The run starts at once.");
  } else {
    form_.start_held = !form_.start_held;
    say(form_.start_held ? "The next run starts paused (start paused in Setup)."
                         : "The next run starts at once.");
  }
}

bool Shell::act_on_playhead(Context& c, Action action) {
  switch (action) {
    case Action::PlayView:
      playhead_.play_or_pause(c.end());
      return true;
    case Action::NextStep:
    case Action::PreviousStep:
      step_view(c, action == Action::NextStep ? 1 : -1, false);
      return true;
    case Action::NextNotable:
    case Action::PreviousNotable:
      step_view(c, action == Action::NextNotable ? 1 : -1, true);
      return true;
    case Action::NextIteration:
    case Action::PreviousIteration:
      walk_iterations(c, action == Action::NextIteration ? 1 : -1);
      return true;
    case Action::ToStart:
      playhead_.go_to(0, c.end());
      return true;
    case Action::ToEnd:
      playhead_.mode = Playhead::Mode::Follow;
      return true;
    default:
      return false;
  }
}

bool Shell::act_on_time_line(Context& c, Action action) {
  switch (action) {
    case Action::FitAll:
      state<TimelineView>().range.show_all();
      state<ScheduleView>().range.show_all();
      return true;
    case Action::FitSelection:
      fit_selection(c);
      return true;
    case Action::NextInLane:
    case Action::PreviousInLane:
      walk_lane(c, action == Action::NextInLane ? 1 : -1);
      return true;
    case Action::NextInFlow:
    case Action::PreviousInFlow:
      walk_flow(c, action == Action::NextInFlow ? 1 : -1);
      return true;
    case Action::LaneUp:
    case Action::LaneDown:
      move_lane(action == Action::LaneUp ? -1 : 1);
      return true;
    case Action::SelectionToRange:
      range_from_selection(c);
      return true;
    case Action::RangeIn:
    case Action::RangeOut:
      end_range_at_playhead(c, action == Action::RangeIn);
      return true;
    default:
      return false;
  }
}

bool Shell::act_on_marks(Context& c, Action action) {
  if (action >= Action::Jump1 && action <= Action::Jump9) {
    jump(c, static_cast<int>(action) - static_cast<int>(Action::Jump1));
    return true;
  }
  switch (action) {
    case Action::Mark:
      mark(c, Bookmark::Kind::Passing);
      return true;
    case Action::KeepMark:
      keep_mark();
      return true;
    case Action::Bookmark:
      mark(c, Bookmark::Kind::Numbered);
      return true;
    case Action::PinPlace:
      pin(c);
      return true;
    default:
      return false;
  }
}

bool Shell::act_on_view(Action action) {
  switch (action) {
    case Action::NextLens: {
      Lens& lens = state<TextView>().lens;
      lens = static_cast<Lens>((static_cast<int>(lens) + 1) % kLenses);
      return true;
    }
    case Action::ToggleMarks:
      settings_.marks = !settings_.marks;
      return true;
    case Action::ToggleFlow:
      settings_.flowing_text = !settings_.flowing_text;
      return true;
    case Action::Hindsight:
      state<BlockGridView>().hindsight = !state<BlockGridView>().hindsight;
      return true;
    case Action::AlignLanes: {
      LanesView::Align& align = state<LanesView>().align;
      align = static_cast<LanesView::Align>((static_cast<int>(align) + 1) % kAlignments);
      return true;
    }
    case Action::ScaleUp:
      scale(settings_.scale_percent + 10);
      return true;
    case Action::ScaleDown:
      scale(settings_.scale_percent - 10);
      return true;
    case Action::ScaleReset:
      scale(100);
      return true;
    case Action::NextTheme:
      set_theme(
          static_cast<ThemeName>((static_cast<std::size_t>(settings_.theme) + 1) % kThemes.size()));
      return true;
    default:
      return false;
  }
}

bool Shell::act_on_answer(Context& c, Action action) {
  switch (action) {
    case Action::Find:
      show_overlay(find_);
      return true;
    case Action::Describe:
      describe(c);
      return true;
    case Action::CopyText:
      copy_text(c, false);
      return true;
    case Action::CopyTable:
      copy_text(c, true);
      return true;
    default:
      return false;
  }
}

bool Shell::act_on_files(Action action) {
  switch (action) {
    case Action::Open:
      requests_.open = "";
      return true;
    case Action::Save:
      requests_.save = true;
      return true;
    case Action::Export:
      show_overlay(export_dialog_);
      return true;
    default:
      return false;
  }
}

bool Shell::act_on_window(Action action) {
  switch (action) {
    case Action::Palette:
      palette_text_.clear();
      palette_ ? close_sheets() : show_overlay(palette_);
      return true;
    case Action::Help:
      help_ ? close_sheets() : show_overlay(help_);
      return true;
    case Action::Welcome:
      show(Screen::Welcome);
      return true;
    case Action::Live:
      show(Screen::Live);
      return true;
    case Action::Compare:
      show(Screen::Compare);
      return true;
    case Action::Training:
      show(Screen::Training);
      return true;
    case Action::Laboratory:
      show(Screen::Lab);
      return true;
    case Action::ResetLayout:
      watch_layout();
      reset_layout_ = true;
      return true;
    case Action::Settings:
      settings_sheet_ ? close_sheets() : show_overlay(settings_sheet_);
      return true;
    case Action::Undo:
    case Action::Redo:
      go_through_history(action == Action::Undo);
      return true;
    case Action::NextPanel:
    case Action::PreviousPanel:
      walk_panels(action == Action::NextPanel ? 1 : -1);
      return true;
    case Action::Present:
      presents_ = !presents_;
      style_is_stale_ = true;
      return true;
    case Action::Deselect:
      go_back();
      return true;
    default:
      return false;
  }
}

bool Shell::shows_sheet() const {
  return help_ || palette_ || find_ || open_dialog_ || export_dialog_ || save_dialog_ ||
         close_dialog_ || settings_sheet_;
}

void Shell::close_sheets() {
  help_ = palette_ = find_ = open_dialog_ = export_dialog_ = save_dialog_ = close_dialog_ =
      settings_sheet_ = false;
  rebinding_ = nullptr;
}

void Shell::show_overlay(bool& which) {
  close_sheets();
  which = overlay_begins_ = true;
}

// Closes a dialog; else cancels reading, saving or exporting; else removes the selection and the temporary mark; else ends presentation mode. In a
// lecture the card makes the selection, so there is none to remove.
void Shell::go_back() {
  if (shows_sheet()) {
    close_sheets();
  } else if (reads()) {
    opening_->give_up();
  } else if (saves()) {
    saving_->give_up();
  } else if (exports()) {
    exporting_->give_up();
  } else if (wants_frames()) {
    picture_taken("The animation was cancelled; no file was written.");
  } else {
    const auto passes = [](const Bookmark& b) { return b.kind == Bookmark::Kind::Passing; };
    const bool has_selection =
        selection_.locked.valid() || std::ranges::any_of(notes_.bookmarks, passes);
    if (presents_ && (lectures() || !has_selection)) return perform(Action::Present);
    selection_.locked = {};
    std::erase_if(notes_.bookmarks, passes);
  }
}

// Moves an end of the measured range to the playhead.
void Shell::end_range_at_playhead(Context& c, bool first) {
  const engine::RunRecord* run = c.run();
  if (!run) return;
  auto& view = state<TimelineView>();
  const double at = on_clock(view.clock, c.times(*run), playhead_.at, c.wall_origin());
  (first ? view.range.range0 : view.range.range1) = at;
}

// Returns the place under the pointer or the selected one, else the newest step at the playhead.
Place Shell::place_shown(Context& c) {
  const Place place = selection_.shown();
  if (place.valid()) return place;
  const engine::RunRecord* run = c.run();
  if (!run || c.n_steps(*run) == 0) return {};
  return {run->id(), run->steps[c.n_steps(*run) - 1].begun.step, -1, -1};
}

void Shell::pin(Context& c) {
  Place& pinned = state<InspectorView>().pinned;
  pinned = pinned.valid() ? Place{} : place_shown(c);
}

// Shows and copies a sentence about the place shown.
void Shell::describe(Context& c) {
  const Place place = place_shown(c);
  const engine::RunRecord* run = c.timeline.run(place.run);
  if (!run) return;
  const std::string sentence = (selection_.several() && !selection_.hovered.valid()
                                    ? describe_places(c.timeline, *run, selection_.chosen())
                                    : describe_place(c.timeline, *run, place))
                                   .sentence;
  if (sentence.empty()) return;
  requests_.copy = sentence;
  say(sentence);
}

// Moves the lane clicked last by a number of places.
void Shell::move_lane(int by) {
  const auto& view = state<TimelineView>();
  const std::vector<LaneKey> lanes = notes_.lanes.arranged(view.natural_lanes);
  const auto at = std::find(lanes.begin(), lanes.end(), view.lane_key);
  if (at == lanes.end())
    return say("Click a lane's label or a slice first; then U and J move the lane.");
  notes_.lanes.move(view.natural_lanes, view.lane_key, static_cast<int>(at - lanes.begin()) + by);
}

// Copies the answer, or the selected tokens if several are selected; with `table`, the figures of the runs shown.
void Shell::copy_text(Context& context, bool table) {
  const auto runs = context.shown_runs();
  if (runs.empty()) return;
  if (table) {
    std::vector<LaneFigures> lanes;
    for (const engine::RunRecord* run : runs) {
      lanes.push_back(
          lane_figures(context.timeline, *run, context.times(*run), context.n_steps(*run)));
      lanes.back().letter = std::string(1, context.letter_of(*run));
      if (const std::string* given = context.given_name(*run)) lanes.back().decoder = *given;
    }
    requests_.copy = as_markdown(lanes);
    say("Copied the numbers of " + engine::counted(std::ssize(runs), "run") + ".");
    return;
  }
  const auto say_copied = [this](std::size_t n) {
    say("Copied " + engine::counted(static_cast<std::int64_t>(n), "token") + ".");
  };
  std::vector<engine::TokenId> ids;
  if (const engine::RunRecord* of = context.timeline.run(selection_.locked.run);
      of && selection_.several() && selection_.locked.position >= 0) {
    requests_.copy = text_of(context.timeline, *of, selection_.chosen());
    say_copied(selection_.chosen().places().size());
    return;
  }
  const engine::RunRecord& run = context.run() ? *context.run() : *runs.front();
  for (const engine::TokenRecord& token : run.tokens) ids.push_back(token.id);
  requests_.copy = context.timeline.plain_text_of(run, ids);
  say_copied(ids.size());
}

void Shell::handle_keys() {
  const ImGuiIO& io = ImGui::GetIO();
  // Arrow keys move the view, not the keyboard focus, which Tab and F6 move. Space presses the focused item.
  constexpr ImGuiID kView = 1;
  if (!io.WantTextInput && !ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup))
    for (const ImGuiKey key :
         {ImGuiKey_LeftArrow, ImGuiKey_RightArrow, ImGuiKey_Home, ImGuiKey_End})
      ImGui::SetKeyOwner(key, kView);
  if (rebinding_) return rebind();
  if (take_lesson_keys()) return;
  for (const BoundKey& key : keys_) {
    if (!ImGui::IsKeyChordPressed(key.chord)) continue;
    const bool closes_sheet = shows_sheet() && key.of->action == Action::Deselect;
    if (shows_sheet() && !acts_over_sheet(key.of->action)) continue;
    if (io.WantTextInput && !key.of->in_text && !closes_sheet) continue;
    // These keys press the item that Tab has reached.
    if ((key.chord == ImGuiKey_Space || key.chord == ImGuiKey_Enter) && io.NavVisible) continue;
    perform(key.of->action);
    break;
  }
}

// Binds the next key pressed to the chosen action. Esc cancels, Delete restores the default key.
void Shell::rebind() {
  for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_GamepadStart; ++key) {
    const bool modifier = (key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper);
    if (modifier || !ImGui::IsKeyPressed(static_cast<ImGuiKey>(key), false)) continue;
    const KeyAction& of = *std::exchange(rebinding_, nullptr);
    if (key == ImGuiKey_Escape) return;
    const int chord = key | static_cast<int>(ImGui::GetIO().KeyMods);
    settings_.keys.erase(of.name);
    if (key != ImGuiKey_Delete && chord != of.chord) settings_.keys[of.name] = chord;
    keys_ = bound_keys(settings_.keys);
    return;
  }
}

}  // namespace ui

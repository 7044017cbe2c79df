#include "ui/shell.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "ui/draw.h"
#include "ui/prepare/describe_place.h"
#include "ui/prepare/difference.h"
#include "ui/prepare/status.h"

namespace ui {
namespace {

Screen screen_of(const std::string& name) {
  return name == "live" ? Screen::Live : name == "compare" ? Screen::Compare : Screen::Welcome;
}

}  // namespace

Shell::Shell(const Catalog& catalog, engine::CommandQueue& commands, std::filesystem::path folder)
    : catalog_(catalog),
      commands_(commands),
      folder_(std::move(folder)),
      settings_(load_settings(folder_)),
      form_(first_form(catalog, settings_.last_model)),
      screen_(screen_of(settings_.screen)) {
  if (!settings_.why_set_aside.empty())
    say("The settings could not be read and were set aside: " + settings_.why_set_aside);
  loaded_ = form_;
}

Shell::~Shell() {
  if (saving_) end_saving();
  keep_notes();
  settings_.screen = screen_name(screen_);
  settings_.last_model = form_.model;
  save_settings(settings_, folder_);
}

Context Shell::context() {
  const Document& shown = session_.shown();
  Context context{shown.timeline, selection_,
                  playhead_,      commands_,
                  catalog_,       form_,
                  settings_,      view_,
                  prepared_,      requests_,
                  shown.source,   clock_,
                  since_event_,   screen_ == Screen::Compare};
  if (asked_since_ >= 0) context.waiting = clock_ - asked_since_;
  return context;
}

void Shell::take(std::vector<engine::Event> events) {
  if (events.empty()) return;
  if (saving_ && saving_->reads_timeline()) {
    held_back_.insert(held_back_.end(), std::make_move_iterator(events.begin()),
                      std::make_move_iterator(events.end()));
    return;
  }
  since_event_ = 0;
  const bool starts = std::any_of(events.begin(), events.end(), [](const engine::Event& e) {
    return std::holds_alternative<engine::RunStarted>(e);
  });
  if (starts && !session_.live_is_shown()) {
    show_live();
    adopt_document();
  }
  follow_models(events);
  if (session_.live_is_shown()) follow_news(events);
  session_.take(std::move(events));
}

// A run that starts is the run to look at.
void Shell::follow_news(const std::vector<engine::Event>& events) {
  for (const engine::Event& event : events) {
    const auto* started = std::get_if<engine::RunStarted>(&event);
    if (!started) continue;
    if (started->race == 0 || started->race != selection_.race) selection_.run = started->run;
    if (started->race != 0) selection_.race = started->race;
    selection_.compared.clear();
    selection_.locked = {};
    playhead_.mode = Playhead::Mode::Follow;
    view_.t0 = view_.t1 = view_.range0 = view_.range1 = 0;
  }
}

// What is asked of the engine is awaited until it says that it has it, or why not.
void Shell::ask(engine::Command command) {
  asked_ = form_;
  asked_since_ = clock_;
  commands_.push(std::move(command));
}

void Shell::follow_models(const std::vector<engine::Event>& events) {
  for (const engine::Event& event : events) {
    const bool loaded = std::holds_alternative<engine::ModelLoaded>(event);
    if (loaded || std::holds_alternative<engine::RunStarted>(event)) {
      if (asked_since_ >= 0) loaded_ = asked_;
      if (std::find(known_.begin(), known_.end(), loaded_) == known_.end())
        known_.push_back(loaded_);
      form_.model_error.clear();
      // A run awaited comes after its model.
      if (!loaded || !awaits_run_) asked_since_ = -1;
    }
    if (const auto* failed = std::get_if<engine::RunFailed>(&event); failed && failed->run == 0)
      model_failed(*failed);
  }
}

// Nothing came of what was asked for. Setup goes back to the model that is there, and says why,
// unless the model was not what failed.
void Shell::model_failed(const engine::RunFailed& failed) {
  const bool stopped = failed.code == static_cast<int>(engine::ErrorCode::Cancelled);
  say(stopped ? "Stopped before the model was loaded." : failed.message);
  if (asked_since_ < 0) return;
  asked_since_ = -1;
  if (stopped || std::find(known_.begin(), known_.end(), asked_) != known_.end()) return;
  static_cast<ModelChoice&>(form_) = loaded_;
  form_.model_error = "Not loaded: " + failed.message;
}

// Another document is shown: its newest run is selected and shown whole.
void Shell::adopt_document() {
  prepared_.clear();
  selection_ = {};
  view_.marked_runs.clear();
  view_.unfolded.clear();
  view_.renaming = 0;
  adopt_notes();
  view_.t0 = view_.t1 = view_.range0 = view_.range1 = 0;
  playhead_ = {};
  for (const engine::RunRecord& run : session_.shown().timeline.runs()) {
    selection_.run = run.id();
    if (run.started.race) selection_.race = run.started.race;
  }
}

bool Shell::open_model(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::path(path) / "config.json", error)) return false;
  choose_model(form_, catalog_, path);
  load();
  if (session_.live_is_shown()) {
    if (screen_ == Screen::Welcome) show(Screen::Live);
  } else {
    show_live();
    adopt_document();
    show(Screen::Live);
  }
  return true;
}

void Shell::open(const std::string& path, bool keep_screen) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (!open_model(path))
      say(path +
          ": is a folder without config.json, so it is no model; a recording ends in .pdrun");
    return;
  }
  opening_ = std::make_unique<Opening>(path);
  opening_is_shown_ = false;
  opening_keeps_screen_ = keep_screen;
  opening_since_ = clock_;
}

void Shell::show(Screen screen) {
  screen_ = screen;
  view_.t0 = view_.t1 = view_.range0 = view_.range1 = 0;
}

void Shell::set_theme(ThemeName theme) {
  settings_.theme = theme;
  style_is_stale_ = true;
}

void Shell::scale(int percent) {
  settings_.scale_percent = std::clamp(percent, 50, 300);
  style_is_stale_ = true;
}

void Shell::say(const std::string& message) {
  message_ = message;
  message_until_ = clock_ + 8;
}

bool Shell::animates() const {
  return playhead_.mode == Playhead::Mode::Playing || clock_ < message_until_ || reads() || saves();
}

bool Shell::ticks() const {
  if (asked_since_ >= 0) return true;
  if (!session_.live_is_shown()) return false;
  for (const engine::RunRecord& run : session_.shown().timeline.runs())
    if (!run.over()) return true;
  return !loading_words(session_.shown().timeline).empty();
}

void Shell::load() {
  awaits_run_ = false;
  ask(engine::LoadModel{form_.model, form_.scale, form_.dtype, form_.device});
  if (std::find(known_.begin(), known_.end(), asked_) == known_.end()) return;
  // The engine may hold it still, and then has nothing to tell.
  loaded_ = asked_;
  asked_since_ = -1;
}

void Shell::run(bool race) {
  if (const std::string why = why_not(form_, catalog_, race); !why.empty()) {
    say(why);
    return;
  }
  settings_.last_model = form_.model;
  awaits_run_ = true;
  ask(command_of(form_, race));
  if (screen_ == Screen::Welcome) show(race ? Screen::Compare : Screen::Live);
}

std::string Shell::run_race() {
  std::string why = why_not(form_, catalog_, true);
  if (why.empty()) run(true);
  return why;
}

void Shell::show_a_lane_of_guesses() {
  double most = 0;
  for (const engine::RunRecord* run : session_.shown().timeline.race(selection_.race)) {
    // Guesses of the other two do not settle: their Trajectory is empty.
    const bool settles = run->started.decoder != "ar" && run->started.decoder != "prompt-lookup";
    if (!settles || run->tokens_per_step() <= most) continue;
    most = run->tokens_per_step();
    selection_.run = run->id();
  }
}

void Shell::copy_text(Context& context, bool table) {
  const auto runs = context.shown_runs();
  if (runs.empty()) return;
  if (table) {
    std::vector<LaneFigures> lanes;
    for (const engine::RunRecord* run : runs) {
      lanes.push_back(
          lane_figures(context.timeline, *run, prepared_.times(*run), context.n_steps(*run)));
      lanes.back().letter = std::string(1, context.letter_of(*run));
      if (const std::string* given = context.given_name(*run)) lanes.back().decoder = *given;
    }
    requests_.copy = as_markdown(lanes);
    return;
  }
  std::vector<engine::TokenId> ids;
  if (const engine::RunRecord* of = context.timeline.run(selection_.locked.run);
      of && selection_.several() && selection_.locked.position >= 0) {
    requests_.copy = text_of(context.timeline, *of, selection_.chosen());
    return;
  }
  const engine::RunRecord& run = context.run() ? *context.run() : *runs.front();
  for (const engine::TokenRecord& token : run.tokens) ids.push_back(token.id);
  requests_.copy = context.timeline.text_of(run, ids);
}

void Shell::perform(Action action) {
  Context c = context();
  const auto flag = [](bool& value) { value = !value; };
  const auto overlay = [this](bool& which) {
    help_ = palette_ = find_ = open_dialog_ = export_dialog_ = save_dialog_ = false;
    which = overlay_begins_ = true;
  };
  switch (action) {
    case Action::Run:
      run(screen_ == Screen::Compare);
      break;
    case Action::Stop:
      commands_.push(engine::StopRun{});
      break;
    case Action::HoldEngine:
      commands_.push(engine::Hold{!session_.live().timeline.held()});
      break;
    case Action::StepEngine:
      if (session_.live().timeline.held())
        commands_.push(engine::StepOnce{});
      else
        say("Hold the engine first (Shift+Space); then N steps it.");
      break;
    case Action::PlayView:
      playhead_.play_or_pause(c.end());
      break;
    case Action::NextStep:
      step_view(c, 1, false);
      break;
    case Action::PreviousStep:
      step_view(c, -1, false);
      break;
    case Action::NextNotable:
      step_view(c, 1, true);
      break;
    case Action::PreviousNotable:
      step_view(c, -1, true);
      break;
    case Action::ToStart:
      playhead_.go_to(0, c.end());
      break;
    case Action::ToEnd:
      playhead_.mode = Playhead::Mode::Follow;
      break;
    case Action::FitAll:
      view_.t0 = view_.t1 = 0;
      break;
    case Action::FitSelection:
      fit_selection(c);
      return;  // not to be forgotten below
    case Action::NextIteration:
    case Action::PreviousIteration:
      walk_iterations(c, action == Action::NextIteration ? 1 : -1);
      break;
    case Action::NextInLane:
    case Action::PreviousInLane:
      walk_lane(c, action == Action::NextInLane ? 1 : -1);
      break;
    case Action::NextInFlow:
    case Action::PreviousInFlow:
      walk_flow(c, action == Action::NextInFlow ? 1 : -1);
      break;
    case Action::Mark:
      mark(c, Bookmark::Kind::Passing);
      break;
    case Action::KeepMark:
      keep_mark();
      break;
    case Action::Bookmark:
      mark(c, Bookmark::Kind::Numbered);
      break;
    case Action::SelectionToRange:
      range_from_selection(c);
      break;
    case Action::Jump1:
    case Action::Jump2:
    case Action::Jump3:
    case Action::Jump4:
    case Action::Jump5:
    case Action::Jump6:
    case Action::Jump7:
    case Action::Jump8:
    case Action::Jump9:
      jump(c, static_cast<int>(action) - static_cast<int>(Action::Jump1));
      break;
    case Action::NextPanel:
    case Action::PreviousPanel:
      walk_panels(action == Action::NextPanel ? 1 : -1);
      break;
    case Action::Present:
      presents_ = !presents_;
      style_is_stale_ = true;
      break;
    case Action::RangeIn:
    case Action::RangeOut: {
      const engine::RunRecord* run = c.run();
      if (!run) break;
      const double at = on_clock(view_.clock, prepared_.times(*run), playhead_.at, c.wall_origin());
      (action == Action::RangeIn ? view_.range0 : view_.range1) = at;
      break;
    }
    case Action::Find:
      overlay(find_);
      break;
    case Action::NextLens:
      view_.lens = static_cast<Lens>((static_cast<int>(view_.lens) + 1) % 6);
      break;
    case Action::ToggleMarks:
      flag(settings_.marks);
      break;
    case Action::ToggleFlow:
      flag(settings_.flowing_text);
      break;
    case Action::Hindsight:
      flag(view_.hindsight);
      break;
    case Action::Describe: {
      const engine::RunRecord* run =
          c.timeline.run(selection_.shown().valid() ? selection_.shown().run : selection_.run);
      if (!run) break;
      Place place = selection_.shown();
      if (!place.valid() && c.n_steps(*run) > 0)
        place = {run->id(), run->steps[c.n_steps(*run) - 1].begun.step, -1, -1};
      const std::string sentence = (selection_.several() && !selection_.hovered.valid()
                                        ? describe_places(c.timeline, *run, selection_.chosen())
                                        : describe_place(c.timeline, *run, place))
                                       .sentence;
      if (sentence.empty()) break;
      requests_.copy = sentence;
      say(sentence);
      break;
    }
    case Action::Check:
      if (const engine::RunRecord* run = c.run(); run && session_.live_is_shown() && run->over())
        commands_.push(engine::CheckAgreement{run->id()});
      break;
    case Action::CopyText:
      copy_text(c, false);
      break;
    case Action::CopyTable:
      copy_text(c, true);
      break;
    case Action::Open:
      requests_.open = "";
      break;
    case Action::Save:
      requests_.save = true;
      break;
    case Action::Export:
      overlay(export_dialog_);
      break;
    case Action::Palette:
      palette_text_.clear();
      overlay(palette_);
      break;
    case Action::Help:
      overlay(help_);
      break;
    case Action::ScaleUp:
      scale(settings_.scale_percent + 10);
      break;
    case Action::ScaleDown:
      scale(settings_.scale_percent - 10);
      break;
    case Action::ScaleReset:
      scale(100);
      break;
    case Action::NextTheme:
      set_theme(static_cast<ThemeName>((static_cast<int>(settings_.theme) + 1) % 3));
      break;
    case Action::Welcome:
      show(Screen::Welcome);
      break;
    case Action::Live:
      show(Screen::Live);
      break;
    case Action::Compare:
      show(Screen::Compare);
      break;
    case Action::ResetLayout:
      reset_layout_ = true;
      break;
    case Action::Deselect:
      if (help_ || palette_ || find_ || open_dialog_ || export_dialog_ || save_dialog_)
        help_ = palette_ = find_ = open_dialog_ = export_dialog_ = save_dialog_ = false;
      else if (reads())
        opening_->give_up();
      else if (saves())
        saving_->give_up();
      else {
        selection_.locked = {};
        std::erase_if(view_.bookmarks,
                      [](const Bookmark& b) { return b.kind == Bookmark::Kind::Passing; });
      }
      break;
  }
  centred_ = false;
}

void Shell::handle_keys() {
  const ImGuiIO& io = ImGui::GetIO();
  // Arrows move the view, not the focus ring: Tab and F6 move that. Space presses what it is on.
  constexpr ImGuiID kView = 1;
  if (!io.WantTextInput && !ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup))
    for (const ImGuiKey key :
         {ImGuiKey_LeftArrow, ImGuiKey_RightArrow, ImGuiKey_Home, ImGuiKey_End})
      ImGui::SetKeyOwner(key, kView);
  for (const KeyAction& key : key_actions()) {
    if (!ImGui::IsKeyChordPressed(key.chord)) continue;
    if (io.WantTextInput && !key.in_text) continue;
    if (key.chord == ImGuiKey_Space && io.NavVisible) continue;
    perform(key.action);
    break;
  }
}

void Shell::handle_requests(Context& context) {
  Requests now = std::move(requests_);
  requests_ = {};
  if (!now.copy.empty()) ImGui::SetClipboardText(now.copy.c_str());
  if (!now.say.empty()) say(now.say);
  if (now.show_live_session) {
    show_live();
    adopt_document();
  }
  if (now.run || now.race) run(now.race);
  if (now.load) load();
  if (!now.screen.empty()) show(screen_of(now.screen));
  if (!now.panel.empty())
    ImGui::SetWindowFocus(window_name(screen_, now.panel.c_str(), "").c_str());
  if (now.export_trace) perform(Action::Export);
  if (now.save) {
    // Asked where once; after that Ctrl+S goes on in the same folder, under the next free name.
    if (save_folder_.empty()) {
      help_ = palette_ = find_ = open_dialog_ = export_dialog_ = false;
      save_dialog_ = overlay_begins_ = true;
      save_path_ = suggested("session.pdrun");
    } else {
      save(save_folder_ + "/session.pdrun");
    }
  }
  if (now.open && now.open->empty()) {
    help_ = palette_ = find_ = export_dialog_ = save_dialog_ = false;
    open_dialog_ = overlay_begins_ = true;
    if (path_.empty()) path_ = settings_.last_folder;
  } else if (now.open) {
    open(*now.open);
  }
  (void)context;
}

}  // namespace ui

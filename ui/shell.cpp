#include "ui/shell.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "ui/draw.h"
#include "ui/prepare/describe_place.h"
#include "ui/prepare/difference.h"

namespace ui {
namespace {

Screen screen_of(const std::string& name) {
  return name == "live" ? Screen::Live : name == "compare" ? Screen::Compare : Screen::Welcome;
}

// A step a reader would stop at: something was refused, came from the pool, or several at once.
bool notable(const StepSpan& s) {
  return s.has_rejection || s.has_pool_hit || s.n_tokens >= 3;
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
}

Shell::~Shell() {
  settings_.screen = screen_name(screen_);
  settings_.last_model = form_.model;
  save_settings(settings_, folder_);
}

Context Shell::context() {
  const Document& shown = session_.shown();
  return Context{shown.timeline, selection_,
                 playhead_,      commands_,
                 catalog_,       form_,
                 settings_,      view_,
                 prepared_,      requests_,
                 shown.source,   clock_,
                 since_event_,   screen_ == Screen::Compare};
}

void Shell::take(std::vector<engine::Event> events) {
  if (events.empty()) return;
  since_event_ = 0;
  const bool starts = std::any_of(events.begin(), events.end(), [](const engine::Event& e) {
    return std::holds_alternative<engine::RunStarted>(e);
  });
  if (starts && !session_.live_is_shown()) {
    session_.show_live();
    adopt_document();
  }
  if (session_.live_is_shown()) follow_news(events);
  session_.take(std::move(events));
}

// A run that starts is the run to look at.
void Shell::follow_news(const std::vector<engine::Event>& events) {
  for (const engine::Event& event : events) {
    if (const auto* failed = std::get_if<engine::RunFailed>(&event); failed && failed->run == 0)
      say(failed->message);
    const auto* started = std::get_if<engine::RunStarted>(&event);
    if (!started) continue;
    if (started->race == 0 || started->race != selection_.race) selection_.run = started->run;
    if (started->race != 0) selection_.race = started->race;
    selection_.locked = {};
    playhead_.mode = Playhead::Mode::Follow;
    view_.t0 = view_.t1 = view_.range0 = view_.range1 = 0;
  }
}

// Another document is shown: its newest run is selected and shown whole.
void Shell::adopt_document() {
  prepared_.clear();
  selection_ = {};
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
  form_.model = path;
  commands_.push(engine::LoadModel{path, form_.scale, form_.dtype, form_.device});
  if (session_.live_is_shown()) {
    if (screen_ == Screen::Welcome) show(Screen::Live);
  } else {
    session_.show_live();
    adopt_document();
    show(Screen::Live);
  }
  return true;
}

void Shell::open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (!open_model(path))
      say(path +
          ": is a folder without config.json, so it is no model; a recording ends in .pdrun");
    return;
  }
  try {
    session_.open(path);
    adopt_document();
    remember_recent(settings_, path);
    settings_.last_folder = std::filesystem::path(path).parent_path().string();
    show(selection_.race != 0 ? Screen::Compare : Screen::Live);
    if (session_.shown().timeline.runs().empty()) say(path + ": holds no run.");
  } catch (const engine::Error& error) {
    say(error.what());
  }
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
  return playhead_.mode == Playhead::Mode::Playing || clock_ < message_until_;
}

bool Shell::ticks() const {
  if (!session_.live_is_shown()) return false;
  for (const engine::RunRecord& run : session_.shown().timeline.runs())
    if (!run.over()) return true;
  const auto loading = session_.shown().timeline.phases();
  return !loading.empty() && loading.back().done < loading.back().total;
}

void Shell::run(bool race) {
  if (const std::string why = why_not(form_, catalog_, race); !why.empty()) {
    say(why);
    return;
  }
  settings_.last_model = form_.model;
  commands_.push(command_of(form_, race));
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
    if (run->started.decoder == "ar" || run->tokens_per_step() <= most) continue;
    most = run->tokens_per_step();
    selection_.run = run->id();
  }
}

void Shell::step_view(Context& context, int direction, bool only_notable) {
  const engine::RunRecord* run = context.run();
  if (!run) return;
  const RunTimes& times = prepared_.times(*run);
  auto n = static_cast<long>(context.n_steps(*run)) + direction;
  while (only_notable && n >= 1 && n <= static_cast<long>(times.steps.size()) &&
         !notable(times.steps[n - 1]))
    n += direction;
  n = std::clamp<long>(n, 0, static_cast<long>(times.steps.size()));
  playhead_.go_to(n == 0 ? 0 : times.steps[n - 1].compute1, context.end());
  if (n > 0) selection_.locked = {run->id(), times.steps[n - 1].step, -1, -1};
}

void Shell::copy_text(Context& context, bool table) {
  const auto runs = context.shown_runs();
  if (runs.empty()) return;
  if (table) {
    std::vector<LaneFigures> lanes;
    for (const engine::RunRecord* run : runs)
      lanes.push_back(
          lane_figures(context.timeline, *run, prepared_.times(*run), context.n_steps(*run)));
    requests_.copy = as_markdown(lanes);
    return;
  }
  std::vector<engine::TokenId> ids;
  const engine::RunRecord& run = context.run() ? *context.run() : *runs.front();
  for (const engine::TokenRecord& token : run.tokens) ids.push_back(token.id);
  requests_.copy = context.timeline.text_of(run, ids);
}

void Shell::perform(Action action) {
  Context c = context();
  const auto flag = [](bool& value) { value = !value; };
  const auto overlay = [this](bool& which) {
    help_ = palette_ = find_ = open_dialog_ = export_dialog_ = false;
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
    case Action::FitSelection: {
      const engine::RunRecord* run = c.run();
      const StepSpan* span = nullptr;
      if (run)
        for (const StepSpan& s : prepared_.times(*run).steps)
          if (s.step == selection_.shown().step) span = &s;
      if (view_.range1 != view_.range0) {
        std::tie(view_.t0, view_.t1) = std::minmax(view_.range0, view_.range1);
      } else if (span) {
        const RunTimes& times = prepared_.times(*run);
        const auto i = static_cast<std::size_t>(span - times.steps.data());
        const double origin =
            view_.clock == ClockKind::Wall ? static_cast<double>(run->started.t) : 0;
        const double b = begin_on(view_.clock, times, i, origin),
                     e = end_on(view_.clock, times, i, origin);
        view_.t0 = b - 2 * (e - b);
        view_.t1 = e + 2 * (e - b);
      }
      break;
    }
    case Action::RangeIn:
    case Action::RangeOut: {
      const engine::RunRecord* run = c.run();
      if (!run) break;
      const double at = on_clock(view_.clock, prepared_.times(*run), playhead_.at,
                                 static_cast<double>(run->started.t));
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
      const std::string sentence = describe_place(c.timeline, *run, place).sentence;
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
      if (help_ || palette_ || find_ || open_dialog_ || export_dialog_)
        help_ = palette_ = find_ = open_dialog_ = export_dialog_ = false;
      else
        selection_.locked = {};
      break;
  }
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
  if (now.show_live_session) {
    session_.show_live();
    adopt_document();
  }
  if (now.run || now.race) run(now.race);
  if (!now.screen.empty()) show(screen_of(now.screen));
  if (now.export_trace) perform(Action::Export);
  if (now.save) {
    try {
      const std::string folder = settings_.last_folder.empty() ? "" : settings_.last_folder + "/";
      say("Saved " + session_.save(folder + "session.pdrun"));
    } catch (const std::exception& error) {
      say(error.what());
    }
  }
  if (now.open && now.open->empty()) {
    help_ = palette_ = find_ = export_dialog_ = false;
    open_dialog_ = overlay_begins_ = true;
    if (path_.empty()) path_ = settings_.last_folder;
  } else if (now.open) {
    open(*now.open);
  }
  (void)context;
}

}  // namespace ui

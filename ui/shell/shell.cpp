#include "ui/shell/shell.h"

#include <algorithm>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "engine/event/queue.h"
#include "engine/event/recording/training_history.h"
#include "ui/files/exporting.h"
#include "ui/files/files.h"
#include "ui/files/opening.h"
#include "ui/files/saving.h"
#include "ui/lesson/progress.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/status.h"
#include "ui/prepare/use_again.h"
#include "ui/shell/catalog.h"
#include "ui/widgets/area.h"
#include "ui/widgets/font_file.h"

namespace ui {
namespace {

// Returns true for events that show progress. Samples of the machine also arrive without progress.
bool is_progress(const engine::Event& event) {
  return !std::holds_alternative<engine::Sampled>(event);
}

// Returns true for a GGUF file, a Hugging Face directory, and a folder with GGUF files; also with an adapter.
bool holds_model(const std::string& given) {
  namespace fs = std::filesystem;
  const fs::path path = base_and_adapter(given).first;
  std::error_code error;
  if (path.extension() == ".gguf" || fs::exists(path / "config.json", error)) return true;
  fs::directory_iterator at(path, error);
  return !error && std::any_of(at, fs::directory_iterator(), [](const fs::directory_entry& entry) {
    return entry.path().extension() == ".gguf";
  });
}

// Returns true for a file in the folder of a training run, and for a copy of its log.
bool is_of_training(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (engine::looks_like_training(folder)) return true;
  try {
    return !engine::TrainingReader(path).history().reports.empty();
  } catch (const engine::Error&) {
    return false;
  }
}

}  // namespace

Shell::Shell(const Catalog& catalog,
             engine::CommandQueue& commands,
             std::filesystem::path folder,
             std::filesystem::path autosave_folder)
    : catalog_(catalog),
      commands_(commands),
      folder_(std::move(folder)),
      settings_(load_settings(folder_)),
      autosave_(autosave_folder),
      unsaved_sessions_(ui::unsaved_sessions(autosave_folder)),
      screen_(unsaved_sessions_.empty() ? screen_named(settings_.screen) : Screen::Welcome) {
  set_frame_area({});  // that of an earlier shell
  if (!settings_.why_set_aside.empty())
    say("The settings could not be read; the file was renamed: " + settings_.why_set_aside);
  font_refused_ = why_not_font(settings_.text_font);
  if (!font_refused_.empty()) say(font_refused_ + "; the program's own font is used.");
  add_recent_models();
  form_ = first_form(catalog, settings_.last_model);
  loaded_ = form_;
  keys_ = bound_keys(settings_.keys);
  settings_kept_ = to_text(settings_);
  adopt_layout();
}

Shell::~Shell() {
  if (saving_) end_saving();
  if (exporting_) end_exporting();
  keep_notes();
  save_changed_settings();
  if (unsaved_.empty()) autosave_.discard();
}

// Writes the settings if they have changed since the last frame, so that a crash does not lose them.
void Shell::save_changed_settings() {
  settings_.screen = screen_name(screen_);
  settings_.last_model = form_.model;
  Settings kept = settings_;
  if (shows_layout_of_document()) kept.layout = own_layout_->preset;
  std::string now = to_text(kept);
  if (now == settings_kept_) return;
  settings_kept_ = std::move(now);
  if (const std::string trouble = save_settings(kept, folder_); !trouble.empty()) say(trouble);
}

// Lets the measured range be that of the run shown, or of the race on the screen Compare. Screens without the panel Timeline have none.
void Shell::follow_range() {
  const bool compares = screen_ == Screen::Compare || lesson_compares();
  RangeOwner owner;
  if (compares && !selection_.compared.empty())
    owner.compared = selection_.compared;
  else if (compares && selection_.race != 0)
    owner.race = selection_.race;
  else if (compares || screen_ == Screen::Live || screen_ == Screen::Lesson)
    owner.run = selection_.run;
  state<TimelineView>().show_range_of(owner);
}

Context Shell::context() {
  follow_range();
  const Document& shown = session_.shown();
  Context context{.timeline = shown.timeline,
                  .selection = selection_,
                  .playhead = playhead_,
                  .commands = commands_,
                  .catalog = catalog_,
                  .form = form_,
                  .settings = settings_,
                  .notes = notes_,
                  .states = states_,
                  .requests = requests_,
                  .source = shown.source,
                  .drive = drive_,
                  .compare = screen_ == Screen::Compare || lesson_compares()};
  if (requested_since_ >= 0) context.waiting = clock_ - requested_since_;
  context.reading = reading();
  context.training = training();
  return context;
}

// Applies the limit of the settings to the documents.
void Shell::limit_payload() {
  session_.limit_payload(payload_limit(settings_, catalog_.memory_bytes));
}

void Shell::take(std::vector<engine::Event> events) {
  for (const engine::Event& event : events)
    if (const auto trouble = autosave_.push(event))
      say("The session is no longer saved automatically: " + *trouble);
  receive(std::move(events));
}

// Takes events that the autosave already has.
void Shell::receive(std::vector<engine::Event> events) {
  if (events.empty()) return;
  if (std::ranges::any_of(events, is_progress)) since_event_ = 0, late_dismissed_ = false;
  // The live timeline must not change while a file is written from it.
  if (exporting_ || (saving_ && saving_->reads_timeline())) {
    held_back_.insert(held_back_.end(), std::make_move_iterator(events.begin()),
                      std::make_move_iterator(events.end()));
    return;
  }
  limit_payload();
  Following ahead = following_;
  const bool starts = std::any_of(events.begin(), events.end(), [&](const engine::Event& e) {
    return ahead.observe(e) == Following::Look::NewRun;
  });
  // A lesson keeps its recording; the run is shown after it.
  if (starts && !session_.live_is_shown() && screen_ != Screen::Lesson) {
    show_live();
    adopt_document();
  }
  follow_models(events);
  follow_failures(events);
  follow_reasoning(events);
  follow_news(events);
  engine::RunId last = 0;
  for (const engine::Event& event : events) {
    const engine::RunId run = engine::run_of(event);
    if (run != 0 && run != last) unsaved_.insert(last = run);
  }
  session_.take(std::move(events));
}

// Shows a run when it starts.
void Shell::follow_news(const std::vector<engine::Event>& events) {
  for (const engine::Event& event : events) {
    const engine::RunId before = following_.followed();
    const std::uint32_t race_before = following_.race();
    const Following::Look look = following_.observe(event);
    const auto* started = std::get_if<engine::RunStarted>(&event);
    if (!started || look == Following::Look::Stay || !session_.live_is_shown()) continue;
    if (look == Following::Look::NextRun) {
      const bool shows_last = started->race != 0
                                  ? selection_.race == race_before && selection_.compared.empty()
                                  : selection_.run == before;
      const bool free =
          shows_last && !selection_.locked.valid() && playhead_.mode == Playhead::Mode::Follow;
      if (free) show_next(*started);  // nothing is selected and the playhead follows
      continue;
    }
    if (started->race == 0 || started->race != selection_.race) selection_.run = started->run;
    if (started->race != 0) selection_.race = started->race;
    selection_.compared.clear();
    selection_.locked = {};
    playhead_.mode = Playhead::Mode::Follow;
    state<TimelineView>().range.show_all();
  }
}

// Shows the next run of a chain or tree, or the next race of a set; the lane that was selected stays selected.
void Shell::show_next(const engine::RunStarted& started) {
  const engine::RunRecord* shown = session_.live().timeline.run(selection_.run);
  const int lane = shown ? shown->started.lane : 0;
  if (started.race == 0 || started.lane == lane) selection_.run = started.run;
  if (started.race == 0 || started.race == selection_.race) return;
  selection_.race = started.race;
  state<TimelineView>().range.show_all();
}

// Ends the wait for a chain or tree when it has begun, and shows a message with its result.
void Shell::follow_reasoning(const std::vector<engine::Event>& events) {
  for (const engine::Event& event : events) {
    const auto* phase = std::get_if<engine::Phase>(&event);
    if (!phase || phase->run != 0 || phase->name != "reason") continue;
    if (awaits_run_) requested_since_ = -1;
    if (phase->done >= phase->total && !phase->detail.empty()) say(phase->detail);
  }
}

// Sends a command and waits for the engine to report its model, its run or a failure.
void Shell::ask(engine::Command command) {
  requested_ = form_;
  requested_since_ = clock_;
  requested_command_ = command;
  requested_first_run_ = 0;
  gpu_failed_.reset();
  commands_.push(std::move(command));
}

// Records which models were loaded and ends the wait for the pending request.
void Shell::follow_models(const std::vector<engine::Event>& events) {
  for (const engine::Event& event : events) {
    const bool loaded = std::holds_alternative<engine::ModelLoaded>(event);
    if (loaded || std::holds_alternative<engine::RunStarted>(event)) {
      if (requested_since_ >= 0) {
        loaded_ = requested_;
        remember_model(loaded_.model);
      }
      if (std::find(known_.begin(), known_.end(), loaded_) == known_.end())
        known_.push_back(loaded_);
      form_.model_error.clear();
      // The requested run starts after its model is loaded.
      if (!loaded || !awaits_run_) requested_since_ = -1;
    }
    if (const auto* failed = std::get_if<engine::RunFailed>(&event); failed && failed->run == 0)
      model_failed(*failed);
  }
}

// Lists the recent models that are outside the places where models are looked for.
void Shell::add_recent_models() {
  if (!catalog_.add_model) return;
  for (const std::string& path : settings_.recent_models)
    if (holds_model(path)) catalog_.add_model(path);
}

void Shell::remember_model(const std::string& name) {
  const CatalogModel* model = catalog_.model(name);
  remember_recent(settings_.recent_models, model ? model->path : name);
}

// Chooses decoders and a prompt that fit the model of the form as soon as its files are read.
void Shell::fit_form() {
  const CatalogModel* model = catalog_.model(form_.model);
  const bool waits = model && !model->is_read;
  if (form_waits_ && !waits) fit_to_model(form_, catalog_);
  form_waits_ = waits;
}

// Handles the failure of the requested command. If the model is the cause, Setup shows the previous model and the reason.
void Shell::model_failed(const engine::RunFailed& failed) {
  const bool stopped = failed.code == static_cast<int>(engine::ErrorCode::Cancelled);
  const std::string message = for_window(failed.message);
  say(stopped ? "Stopped before the model was loaded." : message);
  if (requested_since_ < 0) return;
  requested_since_ = -1;
  if (stopped || std::find(known_.begin(), known_.end(), requested_) != known_.end()) return;
  static_cast<ModelChoice&>(form_) = loaded_;
  form_.model_error = "Not loaded: " + message;
}

void Shell::adopt_document() {
  keep_notes();
  states_.document_changed();
  selection_ = {};
  dismissed_.clear();
  fitted_run_ = 0;
  thoughts_shown_ = false;
  adopt_notes();
  playhead_ = playhead_before_ = {};
  for (const engine::RunRecord& run : session_.shown().timeline.runs()) {
    selection_.run = run.id();
    if (run.started.race) selection_.race = run.started.race;
  }
}

const engine::TrainingHistory* Shell::training() const {
  return training_ ? &training_->history() : nullptr;
}

bool Shell::open_model(const std::string& path) {
  if (!holds_model(path)) return false;
  choose_model(form_, catalog_, catalog_.add_model ? catalog_.add_model(path) : path);
  fit_to_model(form_, catalog_);
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

// Opens a folder as a model or as a training run. The folder of a finished training run also holds the trained model.
bool Shell::open_folder(const std::string& path) {
  const bool trained = engine::looks_like_training(path);
  if (trained && screen_ == Screen::Training) return open_training(path);
  const CatalogModel* model = catalog_.model(form_.model);
  if (!holds_model(path) && holds_adapter(path) && model)
    return open_model(base_and_adapter(model->path).first + "+" + path);
  if (open_model(path)) {
    if (trained && open_training(path))
      say("The screen Training (Alt+5) shows how the model was trained.");
    return true;
  }
  if (trained) {
    if (!open_training(path)) return false;
    show(Screen::Training);
    return true;
  }
  say(path +
      ": the folder has neither config.json (a model) nor training.jsonl (a training run); a "
      "recording is a file that ends in .pdrun");
  return false;
}

// Returns true while an export is being written, because the document shown must not change until then; shows a message.
bool Shell::export_waits() {
  if (exporting_) say("A file is being exported; Esc cancels it.");
  return exporting_ != nullptr;
}

// Lets Setup race the prompts of a .jsonl file, or says why it cannot. @return false if the file belongs to a training run
bool Shell::take_prompts(const std::string& path) {
  if (is_of_training(path)) return false;
  SetupForm form = form_;
  form.prompt_file = path;
  form.prompt_file_read.clear();  // the file may have changed
  read_prompt_file(form, catalog_);
  if (const std::string& why = form.prompt_file_error; !why.empty()) {
    say(why.starts_with(path) ? why : path + ": " + why);
    return true;
  }
  form_ = std::move(form);
  show(Screen::Compare);
  say("Run race takes the prompts of " + path + " in turn.");
  return true;
}

void Shell::open(const std::string& path, bool keep_screen) {
  if (export_waits()) return;
  message_until_ = clock_;  // a message about another file would seem to be about this one
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    open_folder(path);
    return;
  }
  if (path.ends_with(".txt")) {
    form_.pool = path;
    say("Suffix decoding and Lookahead will copy from " + path + ".");
    return;
  }
  if (path.ends_with(".jsonl") && take_prompts(path)) return;
  if (engine::looks_like_lesson(path)) {
    open_lesson(path);
    return;
  }
  if (open_model(path)) return;
  if (engine::looks_like_training(path)) {
    if (open_training(path) && !keep_screen) show(Screen::Training);
    return;
  }
  opening_ = std::make_unique<Opening>(path);
  opening_is_shown_ = false;
  opening_keeps_screen_ = keep_screen;
  opening_since_ = clock_;
}

void Shell::show(Screen screen) {
  screen_ = screen;
  lab_begins_ = screen == Screen::Lab;
  state<TimelineView>().range.show_all();
  follow_range();
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
  return playhead_.mode == Playhead::Mode::Playing || clock_ < message_until_ || reads() ||
         saves() || exports() || picture_ || training_is_behind_ || closes_at_ >= 0 ||
         stops_since_ >= 0 || plays_captions();
}

bool Shell::measures() const {
  const engine::Timeline& live = session_.live().timeline;
  return !live.held() && is_going(live);
}

bool Shell::measures_set() const {
  const auto runs = session_.live().timeline.runs();
  return measures() && !runs.empty() && runs.back().started.place.set != 0;
}

bool Shell::ticks() const {
  if (requested_since_ >= 0) return true;
  // Checks this also while a recording is shown, because the device of the live run may hang.
  if (!session_.live_is_shown()) return is_going(session_.live().timeline);
  return is_going(session_.shown().timeline) || !loading_words(session_.shown().timeline).empty();
}

void Shell::load() {
  awaits_run_ = false;
  ask(engine::LoadModel{form_.model, form_.scale, form_.dtype, form_.device, form_.context,
                        form_.cache_type});
  if (std::find(known_.begin(), known_.end(), requested_) == known_.end()) return;
  // The engine does not report a model that it still has in memory.
  loaded_ = requested_;
  requested_since_ = -1;
}

void Shell::run(bool race) {
  if (const std::string why = why_not(form_, catalog_, race); !why.empty()) {
    say(why);
    forget_sizes(form_);
    return;
  }
  settings_.last_model = form_.model;
  form_.prompt_error.clear();
  awaits_run_ = true;
  requested_held_ = form_.start_held;
  ask(next_command(form_, race));
  forget_sizes(form_);  // only this run repeats a recorded one
  if (screen_ == Screen::Welcome || screen_ == Screen::Training || screen_ == Screen::Lesson)
    show(race ? Screen::Compare : Screen::Live);
}

std::string Shell::run_race() {
  std::string why = why_not(form_, catalog_, true);
  if (why.empty()) run(true);
  return why;
}

void Shell::show_a_lane_with_trajectory() {
  double most = 0;
  for (const engine::RunRecord* run : session_.shown().timeline.race(selection_.race)) {
    // Skips the other lanes, whose panel Trajectory would be empty.
    if (!traits_of(*run).has_trajectory() || run->tokens_per_step() <= most) continue;
    most = run->tokens_per_step();
    selection_.run = run->id();
  }
}

void Shell::handle_requests(Context& context) {
  Requests now = std::move(requests_);
  requests_ = {};
  if (!now.copy.empty()) ImGui::SetClipboardText(now.copy.c_str());
  if (!now.say.empty()) say(now.say);
  if (now.watch_race) watch_race();
  if (now.tour) start_tour();
  if (now.show_live_session && !export_waits()) {
    show_live();
    adopt_document();
  }
  if (now.run || now.race) run(now.race);
  if (now.load) load();
  if (now.pin) perform(Action::PinPlace);
  if (!now.screen.empty()) show(screen_named(now.screen));
  if (!now.panel.empty()) {
    called_panel_ = now.panel;
    ImGui::SetWindowFocus(window_name(screen_, now.panel.c_str(), "").c_str());
  }
  if (!now.open_training.empty()) open_training(now.open_training);
  if (!now.open_lesson.empty()) open_lesson(now.open_lesson);
  if (now.export_trace) perform(Action::Export);
  if (now.save) {
    // The first save requests a folder; later saves use the same folder and the next free name.
    if (save_folder_.empty()) {
      show_overlay(save_dialog_);
      save_path_ = suggested("session.pdrun");
    } else {
      save(save_folder_ + "/session.pdrun");
    }
  }
  if (now.open && now.open->empty()) {
    show_overlay(open_dialog_);
    if (path_.empty()) path_ = settings_.last_folder;
  } else if (now.open) {
    open(*now.open);
  }
  (void)context;
}

}  // namespace ui

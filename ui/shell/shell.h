// The content of the window without the window itself: takes events, draws frames with Dear ImGui, pushes commands. Tests use it without a
// display.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <imgui.h>

#include "engine/event/command.h"
#include "ui/files/animating.h"
#include "ui/files/autosave.h"
#include "ui/files/notes.h"
#include "ui/files/session.h"
#include "ui/files/settings.h"
#include "ui/files/setup_form.h"
#include "ui/prepare/captions.h"
#include "ui/prepare/playhead.h"
#include "ui/prepare/selection.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/animation_frames.h"
#include "ui/prepare/time/following.h"
#include "ui/prepare/time/responding.h"
#include "ui/settings/history.h"
#include "ui/shell/context.h"
#include "ui/shell/keys.h"
#include "ui/shell/layout.h"

namespace engine {
class TrainingReader;
struct TraceOptions;
}  // namespace engine

namespace ui {

class Exporting;
class LessonProgress;
class Opening;
class Saving;
struct Panel;
enum class LessonRequest;

/// A picture that the user requested.
struct Picture {
  std::string path;
  std::string panel;  // the id of the panel; empty: the whole window
  int times = 1;      // pixels of the picture per pixel of the window, in each direction
  ImVec2 min, max;    // the part of the window, px
  std::string says;   // a description that is stored in the file
};

/// The content of the window.
class Shell {
 public:
  /// @param folder           the folder of the settings; empty: settings are not saved
  /// @param autosave_folder  the folder of autosaved sessions; empty: the live session is not autosaved
  Shell(const Catalog& catalog,
        engine::CommandQueue& commands,
        std::filesystem::path folder,
        std::filesystem::path autosave_folder = {});
  /// Saves the settings. Removes the autosaved session if the user has saved or discarded every run.
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Takes new events of the live engine.
  void take(std::vector<engine::Event> events);
  /// Draws one frame, between NewFrame and Render, `seconds` after the previous one.
  void draw(double seconds);

  /// Shows a screen.
  void show(Screen screen);
  /// Sets the theme, from the next frame on.
  void set_theme(ThemeName theme);
  /// Opens a recording, a training run (its log or folder) or a model (.gguf file or folder). A .jsonl file of prompts and a .txt file to copy
  /// from go to Setup. A failure becomes a message on screen. A folder that holds a model and its training run is opened as the model, on the
  /// screen Training as the training run. A recording is read while the window draws it.
  /// @param keep_screen  if false, Compare is shown for a race and Live for a single run
  void open(const std::string& path, bool keep_screen = false);
  /// Opens a training run by its folder or its training.jsonl, for the screen Training, and keeps reading it while it grows.
  /// @return false if it cannot be opened; a message says why
  bool open_training(const std::string& path);
  /// Plays the bundled race with captions; any key or click takes over.
  void watch_race();
  /// Begins the tour of the screen Live; opens the bundled race if nothing is shown.
  void start_tour();
  /// Returns the step of the tour that the user has to do, from 1; 0: there is no tour.
  int tour_step() const { return tour_step_; }
  /// Opens a lesson by its .json file and shows its first card.
  /// @return false if it is refused; a message says why
  bool open_lesson(const std::string& path);
  /// Returns the lesson in progress, or nullptr.
  LessonProgress* lesson() { return lesson_.get(); }
  /// Returns the opened training run, or nullptr.
  const engine::TrainingHistory* training() const;
  /// Returns true if a part of the training run has not been read yet.
  bool reads_training() const { return training_is_behind_; }
  /// Returns true if files that the screen shows may have changed since the last frame. Cheap enough to call while no frames are drawn.
  bool has_news() const;
  /// Returns true if a recording is being read.
  bool reads() const { return opening_ != nullptr; }
  /// Returns the share of the recording read so far, 0 to 1; -1 if everything is read or nothing is shown yet.
  double reading() const;
  /// Starts to write the document shown, and the notes beside it; a message reports the result.
  void save(const std::string& path);
  /// Returns true if a recording is being written. Events of the live engine wait meanwhile.
  bool saves() const { return saving_ != nullptr; }
  /// Starts to export a trace of the document shown; a message reports the result.
  void export_trace(const std::string& path, const engine::TraceOptions& options);
  /// Starts to export a report in Markdown (.md); otherwise works like export_trace().
  /// @param prompt_text  the report contains the prompts
  void export_report(const std::string& path, bool prompt_text);
  /// Starts to write a page (.html) that plays the recording, on another thread.
  /// @param of_any_size  false: above the default size, proposals and then whole runs are omitted
  void export_page(const std::string& path, bool prompt_text, bool of_any_size);
  /// Starts to export a description of all runs in words (.txt); otherwise works like export_trace().
  void export_description(const std::string& path);
  /// Returns true if an export is being written. Events wait meanwhile, and no other document can be shown.
  bool exports() const { return exporting_ != nullptr; }
  /// Requests a picture (.png) of a panel of the screen or of the window. picture_due() returns it once a frame shows its content; the
  /// caller draws it and reports the result through picture_taken().
  void ask_picture(const std::string& path, const std::string& panel, int times);
  /// Returns the requested picture if it can be taken now.
  std::optional<Picture> picture_due();
  /// Returns true if a requested picture has not been taken yet.
  bool wants_picture() const { return picture_.has_value(); }
  /// Ends the request with a message.
  void picture_taken(const std::string& message);
  /// Requests an animation (.gif, or .png as APNG) of a panel of the screen or of the window: the playhead goes from frame to frame, and
  /// picture_due() returns each. The first frames only give the size to expect, which message() then states.
  /// @param at_once  writes the file without waiting for the user
  void ask_animation(const std::string& path,
                     const std::string& panel,
                     int times,
                     const AnimationPlan& plan,
                     bool at_once);
  /// Returns the plan with the part that some steps of the selected run take.
  /// @throws Error(Usage)  the run has none of these steps
  AnimationPlan plan_of_steps(AnimationPlan plan, engine::StepId first, engine::StepId last);
  /// Returns true if a due picture is a frame of an animation, for take_frame().
  bool wants_frames() const;
  /// Returns the path of the last animation written, and words about its frames and size.
  const std::pair<std::string, std::string>& animation_done() const { return animation_done_; }
  /// Takes the drawn frame of an animation.
  /// @param rgb   [height * width * 3], top row first
  /// @param says  a description that the file contains
  /// @throws Error(Resources)  the file cannot be written
  void take_frame(std::span<const std::uint8_t> rgb,
                  int width,
                  int height,
                  const std::string& says);
  /// Returns layout_text() as the user chose it, also while the panels are arranged as a recording says.
  std::string layout_to_save() const;
  /// Arranges the panels of Live and Compare as a preset says.
  void use_layout(const LayoutPreset& preset);
  /// Performs the action of a key.
  void perform(Action action);
  /// Reports whether a key is held, identified by the letter at its position on a US keyboard. W, S, A and D move the time axes.
  void key_at(char us_letter, bool down);
  /// Replaces the text of the status bar by a caption of the content, for pictures.
  void caption_pictures(bool on) { captions_ = on; }
  /// Starts the race that Setup describes. @return why it cannot start; empty if it was requested
  std::string run_race();
  /// Selects the lane with the most tokens per step among those with a trajectory, so that every panel of Live has content.
  void show_a_lane_with_trajectory();
  /// Selects the newest run of a document that has just been shown, and resets what belonged to the previous document.
  void adopt_document();

  /// Returns the screen shown.
  Screen screen() const { return screen_; }
  /// Returns true if presentation mode is on: the window fills its screen.
  bool presents() const { return presents_; }
  /// Returns the live session and the opened recording.
  Session& session() { return session_; }
  /// Returns the selection that all panels share.
  Selection& selection() { return selection_; }
  /// Returns the playhead that all panels share.
  Playhead& playhead() { return playhead_; }
  /// Returns the state object of a type that derives from PanelState.
  template <class State>
  State& state() {
    return states_.get<State>();
  }
  /// Returns the notes on the document shown.
  Notes& notes() { return notes_; }
  /// Returns the form of the panel Setup.
  SetupForm& form() { return form_; }
  /// Returns the choices that Setup offers.
  const Catalog& catalog() const { return catalog_; }
  /// Returns the settings that are saved between sessions.
  Settings& settings() { return settings_; }
  /// Returns the message shown last.
  const std::string& message() const { return message_; }
  /// Shows a message.
  void say(const std::string& message);
  /// Returns the text in the field of Find.
  const std::string& find_text() const { return find_text_; }
  /// Returns true if the content changes from frame to frame without input.
  bool animates() const;
  /// Returns true if a clock on screen advances, so that a few frames per second suffice.
  bool ticks() const;
  /// Returns true if the live engine computes steps whose times are measured.
  bool measures() const;
  /// Returns true if these steps belong to a set of races (repeats, or the prompts of a file).
  bool measures_set() const;
  /// Sets how long a GPU may take before the window reports it.
  void set_deadlines(const StepDeadlines& deadlines) { deadlines_ = deadlines; }
  /// Returns the GPU that has exceeded its deadline.
  std::optional<Unanswered> late_gpu() const;
  /// Returns true if the window has to close because the requested save has finished, or the session was discarded.
  bool wants_to_close() const { return wants_to_close_; }
  /// Handles a request to close the window. @return false if runs are not saved; a sheet then asks the user
  bool may_close();
  /// Returns the sessions that earlier windows did not save, newest first, without those opened or discarded.
  const std::vector<UnsavedSession>& unsaved_sessions() const { return unsaved_sessions_; }
  /// Sets if frames are drawn rarely to keep the processor free, and if they are fewer because the window has no focus; the status bar shows this.
  void pace(bool quiet, bool unfocused) {
    quiet_ = quiet;
    unfocused_ = unfocused;
  }

 private:
  // A progress bar appears after this time; shorter operations need none.
  static constexpr double kBarAfterSeconds = 0.3;
  static constexpr int kFramesToSettle = 3;  // a docked window has its place after two frames
  // After "Save and exit" the path stays readable for this time.
  static constexpr double kCloseAfterSeconds = 3;

  Context context();
  void follow_range();
  void receive(std::vector<engine::Event> events);
  void limit_payload();
  void read_on();
  void take_read(std::vector<engine::Event> events);
  void show_run_with_proposals();
  void end_reading();
  void show_live();
  bool plays_captions() const;
  void prepare_tour(const Context& context);
  void follow_tour(const Context& context);
  void leave_tour();
  float draw_tour(float bottom);
  void follow_watched_race(const Context& context);
  float draw_caption(const Context& context, float bottom);
  void follow_news(const std::vector<engine::Event>& events);
  void show_next(const engine::RunStarted& started);
  void follow_reasoning(const std::vector<engine::Event>& events);
  void follow_models(const std::vector<engine::Event>& events);
  void add_recent_models();
  void remember_model(const std::string& name);
  void fit_form();
  void model_failed(const engine::RunFailed& failed);
  void follow_failures(const std::vector<engine::Event>& events);
  // Returns true if the failed command can be repeated on the CPU. `shown` is the run shown, or nullptr.
  bool cpu_can_go_on(const engine::RunRecord* shown) const;
  void go_on_with_cpu();
  void ask(engine::Command command);
  void draw_top_bar(Context& context);
  void draw_file_buttons(const Context& context);
  void draw_screen_choice();
  void draw_run_controls(Context& context);
  void draw_model_chip(Context& context);
  // The state of the selected run or race, for the top bar.
  struct BarState {
    Status status;
    std::vector<std::string> forms;  // of the status, longest first
    std::string name;                // of the run; empty: not shown
    Status agreement;                // with plain decoding
  };
  BarState bar_state(Context& context);
  void draw_state(Context& context, const BarState& state);
  void draw_status_bar(Context& context);
  void draw_training_state();
  std::vector<std::string> training_bar() const;
  void read_training();
  bool act_on_training(Action action);
  float draw_failure_bar(Context& context, float top);
  float draw_late_bar(float top);
  void save_and_exit();
  void close_when_stopped();
  float draw_restore_bar(float top);
  float draw_damage_bar(float top);
  void draw_close_dialog();
  void draw_settings();
  void draw_setting_rows(float foot);
  void font_row();
  std::string font_words() const;
  void appearance_rows();
  void limit_rows();
  void follow_arrangement();
  void select_run_for_lab(const engine::Timeline& timeline);
  void go_through_history(bool back);
  void follow_units();
  // Returns the time by which a playing view advances in this frame, s, and sets that of held keys.
  double seconds_to_move(double frame_seconds);
  void watch_layout();
  bool shows_sheet() const;
  void save_changed_settings();
  float draw_saved_bar(float top);
  float draw_reading_bar(Context& context, float top);
  float draw_saving_bar(float top);
  void draw_docked(Context& context, float top, float bottom);
  void draw_panel(Context& context, const Panel& panel);
  void draw_lesson_screen(float top, float bottom);
  void draw_lesson_panel(Context& context, const char* id, ImVec2 min, ImVec2 max);
  void show_lesson_recording();
  void follow_lesson();
  void show_lesson_view();
  // Returns true if the card shows the runs of a race side by side.
  bool lesson_compares() const;
  void act_on_card(LessonRequest request);
  void close_lesson();
  void try_lesson_run();
  std::string next_lesson() const;
  bool take_lesson_keys();
  bool act_on_lesson(Action action);
  // Returns true if only the lesson is on the screen, in large type.
  bool lectures() const { return presents_ && screen_ == Screen::Lesson; }
  bool offers(const char* id) const;
  void open_what_fits(Context& context);
  void draw_overlays(Context& context);
  void draw_help();
  void key_row(const BoundKey& key);
  void draw_palette();
  void draw_find(Context& context);
  void draw_open_dialog(Context& context);
  void recents_part(const std::string& typed);
  void draw_export_dialog(Context& context);
  void export_choices(Context& context, engine::TraceOptions& options);
  void export_buttons(Context& context, const engine::TraceOptions& options);
  void picture_row();
  void animation_row(Context& context);
  AnimationPlan animation_plan(Context& context);
  void end_animation();
  std::string picture_path(const std::string& typed, const char* ending) const;
  std::optional<engine::TraceOptions> trace_of_range(Context& context);
  void draw_save_dialog();
  using Export = std::function<std::string(const engine::Timeline& timeline,
                                           const std::function<bool(double)>& progress)>;
  void begin_export(const std::string& path, Export write);
  void export_on();
  void end_exporting();
  bool export_waits();
  float draw_exporting_bar(float top);
  void save_on();
  void end_saving();
  void adopt_saved(const Saving& saved, const std::string& path);
  // Returns the notes without temporary marks.
  Notes notes_to_save() const;
  NotedView view_to_save();
  void keep_notes();
  void adopt_notes();
  void adopt_layout();
  bool shows_layout_of_document() const { return own_layout_ && layout_is_of_document_; }
  std::string layout_shown() const;
  void restore_ranges();
  // Returns a path in the folder used last, else in the documents folder.
  std::string suggested(const char* name) const;
  void draw_message();
  void find(Context& context, bool backwards);
  void handle_keys();
  void handle_requests(Context& context);
  void step_view(Context& context, int direction, bool notable);
  void walk_iterations(Context& context, int direction);
  void walk_lane(Context& context, int direction);
  void walk_flow(Context& context, int direction);
  double whole_axis(Context& context);
  void fit_selection(Context& context);
  void range_from_selection(Context& context);
  void mark(Context& context, Bookmark::Kind kind);
  void keep_mark();
  void jump(Context& context, int number);
  void walk_panels(int direction);
  void bring_into_view(Context& context, double from, double to);
  // Computes the start and end of a step on the clock shown. @return false if the step is missing or not complete
  bool place_of(Context& context, engine::RunId run, engine::StepId step, double& from, double& to);
  // Parts of perform(). @return whether the action was handled
  bool act_on_engine(Context& context, Action action);
  bool act_on_playhead(Context& context, Action action);
  bool act_on_time_line(Context& context, Action action);
  bool act_on_marks(Context& context, Action action);
  bool act_on_view(Action action);
  bool act_on_answer(Context& context, Action action);
  bool act_on_files(Action action);
  bool act_on_window(Action action);
  void show_overlay(bool& which);
  void close_sheets();
  void hold_or_resume();
  void go_back();
  void end_range_at_playhead(Context& context, bool first);
  Place place_shown(Context& context);
  void pin(Context& context);
  void describe(Context& context);
  void move_lane(int by);
  void rebind();
  void copy_text(Context& context, bool table);
  void scale(int percent);
  void run(bool race);
  void load();
  bool take_prompts(const std::string& path);
  bool open_model(const std::string& path);
  bool open_folder(const std::string& path);

  const Catalog& catalog_;          // owned by the caller, outlives the shell
  engine::CommandQueue& commands_;  // owned by the caller, outlives the shell
  std::filesystem::path folder_;
  Settings settings_;
  bool desktop_animates_ = desktop_animates();
  std::string settings_kept_;  // the text of the settings as they were saved last
  Autosave autosave_;
  std::vector<UnsavedSession> unsaved_sessions_;
  std::optional<UnsavedSession> restored_;  // the one of them that was opened
  std::set<engine::RunId> unsaved_;  // live runs with events that no recording of the user has
  Session session_;
  Selection selection_;
  Playhead playhead_;
  PanelStates states_;
  DriveKeys drive_;
  Jumps play_jumps_, drive_jumps_;  // of the playing view, of held keys
  SetupForm form_;
  bool form_waits_ = false;  // the files of its model are still being read
  ModelChoice requested_,
      loaded_;  // requested_: the model requested last; loaded_: the model in memory, as far as known
  std::vector<ModelChoice> known_;                    // models that were loaded before
  double requested_since_ = -1;                       // clock_ at the pending request; -1: none
  std::optional<engine::Command> requested_command_;  // the command that requested_ belongs to
  engine::RunId requested_first_run_ = 0;             // the first run since that command; 0: none
  std::optional<engine::RunFailed>
      gpu_failed_;                     // the failure of the last command, if it used a GPU
  std::set<engine::RunId> dismissed_;  // failed runs whose bar was dismissed
  StepDeadlines deadlines_;
  bool late_dismissed_ = false;  // the bar of a late GPU was dismissed; reset by progress
  bool exits_when_saved_ = false, wants_to_close_ = false;
  double closes_at_ = -1;    // clock_ at which the window closes after a save; -1: it stays open
  std::string saved_path_;   // the path that is shown until the window closes
  bool awaits_run_ = false;  // the pending request is a run, not a model alone
  bool requested_held_ = false;  // that run starts paused
  Following following_;
  Requests requests_;
  std::unique_ptr<Opening> opening_;
  bool opening_is_shown_ = false;  // the first events of that recording have arrived
  bool opening_keeps_screen_ = false;
  double opening_since_ = 0;
  std::unique_ptr<LessonProgress> lesson_;             // null: none is open
  std::map<std::string, std::string> lesson_results_;  // by path: "5 of 6 right"
  LessonRequest lesson_request_ = {};                  // of the card's buttons in the last frame
  int lesson_scrolls_ = 0;  // frames in which the text still scrolls to the card's step
  std::unique_ptr<engine::TrainingReader> training_;  // null: no training run is open
  bool training_is_behind_ = false;                   // a part of the files is not read yet
  double training_looked_ = 0;                        // clock_ at the last check of the files
  std::chrono::steady_clock::time_point
      looked_at_;  // time of that check, on a clock that also runs while no frames are drawn
  std::unique_ptr<Saving> saving_;
  Notes saving_notes_;  // notes to save beside that recording
  double saving_since_ = 0;
  std::unique_ptr<Exporting> exporting_;
  double exporting_since_ = 0;
  std::vector<engine::Event>
      held_back_;             // events that wait while the live timeline must not change
  Notes notes_;               // notes on the document shown
  std::string notes_source_;  // the recording that notes_ belong to; empty: the live session
  Notes notes_kept_;          // notes_ as they were saved last
  Notes live_notes_;          // notes of the live session, while a recording is shown
  std::string
      live_saved_as_;  // the file with the live session's runs that was saved last; empty: none
  Notes live_notes_saved_;  // notes as they were saved beside it
  std::vector<MeasuredRange>
      ranges_to_restore_;  // the saved ranges of the recording that is being read
  Screen screen_ = Screen::Welcome;
  enum class Watched {
    No,
    Reading,
    Playing
  } watched_ = Watched::No;  // the race that plays by itself
  std::vector<Caption> captions_shown_;
  bool tour_begins_ = false;  // the tour has not chosen a run yet
  int tour_step_ = 0;         // of the tour, from 1; 0: no tour
  Place tour_place_;          // the selected place when the tour's step began
  double watched_since_ = 0;  // clock_ when it began to play
  bool lab_begins_ = false;   // the Laboratory was opened, and has not chosen a run yet
  double clock_ = 0, since_event_ = 0;
  SteadyWords steady_state_, steady_bar_;  // of the top bar and of the status bar
  bool style_is_stale_ = true, reset_layout_ = false;
  bool preset_changed_ = false;  // the layouts of Live and Compare must be built again
  std::pair<Screen, Room> laid_out_{Screen::Welcome,
                                    Room::Small};  // for which the layout was checked last
  bool chip_has_model_ = false;                    // the top bar has the model's name and size
  float bar_end_ = 240;                            // width of the buttons at the end of the top bar
  float controls_width_ = 300;                     // of Run to Stop in the top bar
  bool help_ = false, palette_ = false, find_ = false, open_dialog_ = false, export_dialog_ = false;
  bool save_dialog_ = false, close_dialog_ = false, settings_sheet_ = false;
  std::optional<std::string> font_typed_;  // a path that is being typed or was refused
  std::string font_refused_;               // why the font was refused; empty: it was not
  std::optional<int> pending_scale_;       // set by the slider that the mouse holds
  History history_;
  std::string
      layout_pressed_;  // the layout when the mouse button was pressed last; empty: compared
  std::tuple<Screen, float, float, float> docked_,
      docked_pressed_;  // screen, width, top and bottom of the docked panels: now, and when the mouse was pressed
  std::string layout_to_load_;   // by the next frame; empty: none
  std::string layout_at_begin_;  // word of the layout preset when the document was shown first
  struct OwnLayout {
    std::string preset, panels;  // the setting `layout`, and layout_text()
  };
  std::optional<OwnLayout> own_layout_;  // the user's, before the document's layout replaced it
  bool layout_is_of_document_ = false;   // the panels are arranged as the notes of the document say
  // How the user has changed the layout since the document was shown.
  enum class LayoutChange { None, Preset, Moved } layout_change_ = LayoutChange::None;
  bool preset_pressed_ = false;  // the layout changes because a preset was chosen
  int layout_settles_ = 0;       // frames until the layout after the release is compared
  double stops_since_ = -1;      // clock_ when "Save and close" stopped the runs; -1: it did not
  bool export_prompt_text_ = false, export_range_only_ = false, export_own_compute_ = false,
       export_for_spreadsheets_ = false, export_any_page_size_ = false;  // checkboxes of the dialog
  std::string export_path_, export_said_, save_path_;
  std::string save_folder_;  // folder of the last save in this session; empty: none yet
  bool overlay_begins_ = false;
  bool presents_ = false;
  bool captions_ = false, quiet_ = false, unfocused_ = false;
  std::optional<Picture>
      picture_;  // the requested picture, or what the frames of an animation show
  std::unique_ptr<Animating> animating_;
  std::pair<std::string, std::string> animation_done_;
  bool animates_at_once_ = false;
  Playhead playhead_before_;      // before the animation
  AnimationPlan animation_plan_;  // as chosen in the dialog
  int frames_until_picture_ = 0;
  std::string picture_panel_;             // the panel chosen in the dialog
  std::string called_panel_;              // the panel requested by name last
  std::set<std::string> offered_panels_;  // the optional panels that have a tab
  int picture_times_ = 2;
  std::vector<BoundKey> keys_;
  const KeyAction* rebinding_ = nullptr;  // the action that waits for a new key
  bool panel_ring_ = false;               // F6 has reached a panel, so a ring is drawn around it
  engine::RunId fitted_run_ = 0;  // the run for which a fitting panel was brought to the front
  bool thoughts_shown_ = false;   // the panel Thoughts was brought to the front for this document
  Place fitted_;                  // the place that F centred
  bool centred_ = false;          // the last key was F, so the next F zooms
  std::string message_, palette_text_, path_, find_text_, find_result_;
  double message_until_ = 0;
  float draw_ms_ = 0;  // time to draw a frame, smoothed
};

}  // namespace ui

// Everything inside the window, without the window: takes events, draws a frame of Dear ImGui,
// pushes commands. Tests drive it with no display.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/event/queue.h"
#include "engine/trace/export.h"
#include "engine/event/recording/training_history.h"
#include "ui/shell/context.h"
#include "ui/files/exporting.h"
#include "ui/shell/keys.h"
#include "ui/shell/layout.h"
#include "ui/files/opening.h"
#include "ui/shell/panel.h"
#include "ui/prepare/time/following.h"
#include "ui/prepare/time/responding.h"
#include "ui/files/session.h"

namespace ui {

/// A picture a person asked for.
struct Picture {
  std::string path;
  std::string panel;  // its id; empty: the whole window
  int times = 1;      // pixels of the picture to one of the window, in each direction
  ImVec2 min, max;    // the part of the window, in its pixels
  std::string says;   // what it shows, to be kept in the file
};

class Shell {
 public:
  /// @param folder  of the settings; empty: nothing is kept
  Shell(const Catalog& catalog, engine::CommandQueue& commands, std::filesystem::path folder);
  /// Saves the settings.
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  void take(std::vector<engine::Event> events);
  /// One frame, between NewFrame and Render, `seconds` after the one before.
  void draw(double seconds);

  void show(Screen screen);
  void set_theme(ThemeName theme);
  /// Opens a recording, a training by its log or folder, or a model's folder; failures become a
  /// message on screen. A folder that holds a model and its training is opened as the model, and on
  /// the screen Training as what is shown there.
  /// A recording is read beside the window: what is read so far is shown, frame by frame.
  /// @param keep_screen  else Compare is shown for a race, Live for a run alone
  void open(const std::string& path, bool keep_screen = false);
  /// Opens a training by its folder or its training.jsonl, on the screen Training; it is read on
  /// while it grows. @return false: it cannot be, a message says why
  bool open_training(const std::string& path);
  /// The training that is open, or nullptr.
  const engine::TrainingHistory* training() const {
    return training_ ? &training_->history() : nullptr;
  }
  /// Whether not all of it is read yet.
  bool reads_training() const { return training_is_behind_; }
  /// Whether files that the screen shows may have grown since the last frame. Cheap, for asking now
  /// and then while nothing is drawn.
  bool has_news() const;
  /// Whether a recording is being read.
  bool reads() const { return opening_ != nullptr; }
  /// The share of it read so far, 0 to 1, once it is shown; -1: all of what is shown is there.
  double reading() const;
  /// Begins to write what is shown, and the notes on it beside it; a message says how it ended.
  void save(const std::string& path);
  /// Whether a recording is being written. What the live engine tells meanwhile waits.
  bool saves() const { return saving_ != nullptr; }
  /// Begins to export a trace of what is shown; a message says how it ended.
  void export_trace(const std::string& path, engine::TraceOptions options);
  /// Whether one is being written. Events wait meanwhile, and no other document is shown.
  bool exports() const { return exporting_ != nullptr; }
  /// Wants a picture (.png) of a panel of this screen, or of the window. Once that is what a frame
  /// shows, picture_due() says where; whoever has drawn it tells picture_taken() how it ended.
  void ask_picture(const std::string& path, const std::string& panel, int times);
  std::optional<Picture> picture_due();
  bool wants_picture() const { return picture_.has_value(); }
  void picture_taken(const std::string& said);
  void perform(Action action);
  /// The key where a US keyboard has this letter is down or not: W, S, A and D move the time line.
  void key_at(char us_letter, bool down);
  /// While pictures are taken the bar at the foot says what they show, and what the small letters
  /// mean.
  void caption_pictures(bool on) { captions_ = on; }
  /// Asks the engine for the race set up. @return why it cannot run; empty: it was asked for
  std::string run_race();
  /// Selects the lane of the newest race whose steps bring most, of those with guesses that settle:
  /// so every panel of Live has something to show.
  void show_a_lane_of_guesses();
  /// Another document of the session is shown: selects its newest run.
  void adopt_document();

  Screen screen() const { return screen_; }
  /// Whether the window is to fill its screen (presentation mode).
  bool presents() const { return presents_; }
  Session& session() { return session_; }
  Selection& selection() { return selection_; }
  Playhead& playhead() { return playhead_; }
  ViewState& view() { return view_; }
  SetupForm& form() { return form_; }
  const Catalog& catalog() const { return catalog_; }
  Settings& settings() { return settings_; }
  const std::string& message() const { return message_; }
  /// Whether the picture changes by itself: playing, or a clock beside a running phase.
  bool animates() const;
  /// Whether a coarse clock is on screen (a run is going): a frame now and then is enough.
  bool ticks() const;
  /// Whether the live engine is taking steps, whose times are measured.
  bool measures() const;
  /// How long a GPU may take before the window says so.
  void hold_gpus_to(const StepDeadlines& deadlines) { deadlines_ = deadlines; }
  /// The GPU at work, if it has not answered in time.
  std::optional<Unanswered> late_gpu() const;
  /// Whether the window is to close: what a person wanted kept is kept.
  bool wants_to_close() const { return wants_to_close_; }
  /// Frames come seldom for that: the bar at the foot says so.
  void quiet(bool on) { quiet_ = on; }

 private:
  // A small recording is read or written before a bar could be seen.
  static constexpr double kBarAfterSeconds = 0.3;
  // Where "Save and exit" wrote can be read for so long.
  static constexpr double kCloseAfterSeconds = 3;

  Context context();
  void read_on();
  void take_read(std::vector<engine::Event> events);
  void end_reading();
  void show_live();
  void follow_news(const std::vector<engine::Event>& events);
  void follow_reasoning(const std::vector<engine::Event>& events);
  void follow_models(const std::vector<engine::Event>& events);
  void model_failed(const engine::RunFailed& failed);
  void follow_failures(const std::vector<engine::Event>& events);
  /// Whether what failed on a GPU is offered to the CPU, beside the run shown or none.
  bool cpu_can_go_on(const engine::RunRecord* shown) const;
  void go_on_with_cpu();
  void ask(engine::Command command);
  void draw_top_bar(Context& context);
  void draw_screen_choice();
  void draw_run_controls(Context& context);
  void draw_model_chip(Context& context);
  void draw_state(Context& context);
  void draw_status_bar(Context& context);
  void draw_training_state();
  std::string training_bar() const;
  void read_training();
  bool act_on_training(Action action);
  float draw_failure_bar(Context& context, float top);
  float draw_late_bar(float top);
  void save_and_exit();
  float draw_saved_bar(float top);
  float draw_reading_bar(Context& context, float top);
  float draw_saving_bar(float top);
  void draw_docked(Context& context, float top, float bottom);
  void draw_panel(Context& context, const Panel& panel);
  bool offers(const char* id) const;
  void open_what_fits(Context& context);
  void draw_overlays(Context& context);
  void draw_help();
  void key_row(const BoundKey& key);
  void draw_palette();
  void draw_find(Context& context);
  void draw_open_dialog(Context& context);
  void draw_export_dialog(Context& context);
  void export_choices(Context& context, engine::TraceOptions& options);
  void picture_row();
  std::string picture_path(const std::string& typed) const;
  std::optional<engine::TraceOptions> trace_of_range(Context& context);
  void draw_save_dialog();
  void export_on();
  void end_exporting();
  bool export_waits();
  float draw_exporting_bar(float top);
  void save_on();
  void end_saving();
  /// What would be kept beside a recording of the document shown.
  Notes notes() const;
  void keep_notes();
  void adopt_notes();
  /// A path with that name in the folder saved to last, else among the person's documents.
  std::string suggested(const char* name) const;
  void draw_message();
  void find(Context& context, bool backwards);
  void handle_keys();
  void handle_requests(Context& context);
  void step_view(Context& context, int direction, bool notable);
  void walk_iterations(Context& context, int direction);
  void walk_lane(Context& context, int direction);
  void walk_flow(Context& context, int direction);
  void fit_selection(Context& context);
  void fit_schedule(const Context& context, const Place& place);
  void range_from_selection(Context& context);
  void mark(Context& context, Bookmark::Kind kind);
  void keep_mark();
  void jump(Context& context, int number);
  void walk_panels(int direction);
  void bring_into_view(Context& context, double from, double to);
  /// Where a step lies on the clock shown. @return false: it is not there, or not complete
  bool place_of(Context& context, engine::RunId run, engine::StepId step, double& from, double& to);
  // Of perform(): each @return whether the action is its own.
  bool act_on_engine(Context& context, Action action);
  bool act_on_playhead(Context& context, Action action);
  bool act_on_time_line(Context& context, Action action);
  bool act_on_marks(Context& context, Action action);
  bool act_on_view(Action action);
  bool act_on_answer(Context& context, Action action);
  bool act_on_files(Action action);
  bool act_on_window(Action action);
  void show_overlay(bool& which);
  void go_back();
  void end_range_at_playhead(Context& context, bool first);
  Place place_shown(Context& context);
  void pin(Context& context);
  void describe(Context& context);
  void move_lane(int by);
  void rebind();
  void copy_text(Context& context, bool table);
  void scale(int percent);
  void say(const std::string& message);
  void run(bool race);
  void load();
  bool open_model(const std::string& path);
  bool open_folder(const std::string& path);

  const Catalog& catalog_;          // owned by the caller, outlives the shell
  engine::CommandQueue& commands_;  // likewise
  std::filesystem::path folder_;
  Settings settings_;
  Session session_;
  Selection selection_;
  Playhead playhead_;
  ViewState view_;
  SetupForm form_;
  ModelChoice asked_, loaded_;                    // asked for last; there, as far as is known
  std::vector<ModelChoice> known_;                // were loaded once
  double asked_since_ = -1;                       // -1: nothing is awaited
  std::optional<engine::Command> asked_command_;  // asked for last, by asked_
  engine::RunId asked_first_run_ = 0;             // the first that started since; 0: none has
  std::optional<engine::RunFailed> gpu_failed_;   // what it was asked of is a GPU, and that failed
  std::set<engine::RunId> dismissed_;             // failed, of what is shown, and told long enough
  StepDeadlines deadlines_;
  bool late_dismissed_ = false;  // until something is told again
  bool exits_when_saved_ = false, wants_to_close_ = false;
  double closes_at_ = -1;    // by the view's clock, saved; -1: nobody asked
  std::string saved_path_;   // what was saved then
  bool awaits_run_ = false;  // else a model alone
  Following following_;
  Prepared prepared_;
  Requests requests_;
  std::unique_ptr<Opening> opening_;
  bool opening_is_shown_ = false;  // the first of its events has come
  bool opening_keeps_screen_ = false;
  double opening_since_ = 0;
  std::unique_ptr<engine::TrainingReader> training_;  // open on the screen Training; null: none
  bool training_is_behind_ = false;                   // there is more to read at once
  double training_looked_ = 0;                        // the view's clock at the last look
  std::chrono::steady_clock::time_point
      looked_at_;  // the same on a clock that idle times do not hold
  std::unique_ptr<Saving> saving_;
  Notes saving_notes_;  // to be kept beside it
  double saving_since_ = 0;
  std::unique_ptr<Exporting> exporting_;
  double exporting_since_ = 0;
  std::vector<engine::Event> held_back_;  // while the live timeline must not change
  std::string notes_source_;  // the recording whose notes are shown; empty: the live session
  Notes notes_kept_;          // of it, as they are in its file
  Notes live_notes_;          // while a recording is shown
  Screen screen_ = Screen::Welcome;
  double clock_ = 0, since_event_ = 0;
  bool style_is_stale_ = true, reset_layout_ = false;
  bool help_ = false, palette_ = false, find_ = false, open_dialog_ = false, export_dialog_ = false;
  bool save_dialog_ = false;
  bool export_prompt_text_ = false, export_range_only_ = false;  // ticked in the dialog
  std::string export_path_, export_said_, save_path_;
  std::string save_folder_;  // of this session's last save; empty: ask where
  bool overlay_begins_ = false;
  bool presents_ = false;
  bool captions_ = false, quiet_ = false;
  std::optional<Picture> picture_;  // wanted
  int frames_until_picture_ = 0;
  std::string picture_panel_;             // chosen in the dialog
  std::string called_panel_;              // asked for by name last
  std::set<std::string> offered_panels_;  // of those that are not always
  int picture_times_ = 2;
  std::vector<BoundKey> keys_;
  const KeyAction* rebinding_ = nullptr;  // whose new key is awaited
  bool panel_ring_ = false;               // a panel was reached by F6: its focus is drawn
  engine::RunId fitted_run_ = 0;          // a panel that fits it was brought forward
  bool thoughts_shown_ = false;           // likewise the tree of thoughts of what is shown
  Place fitted_;                          // what F centred
  bool centred_ = false;                  // by the key before: F once more zooms
  std::string message_, palette_text_, path_;
  double message_until_ = 0;
  float draw_ms_ = 0;  // a frame's own time, smoothed
};

}  // namespace ui

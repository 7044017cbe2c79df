#include "ui/shell/window.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/ranges.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <implot.h>

#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "engine/event/queue.h"
#include "engine/event/recording/recording.h"
#include "engine/event/recording/training_history.h"
#include "engine/lesson/lesson.h"
#include "ui/files/autosave.h"
#include "ui/files/offscreen.h"
#include "ui/files/png.h"
#include "ui/files/screenshot.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/shell/catalog.h"
#include "ui/shell/frame_pace.h"
#include "ui/shell/shell.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

using engine::Error;
using engine::ErrorCode;

constexpr double kTickSeconds = 0.25;
// A longer time between two frames counts as this time. Otherwise a key pressed after an idle hour
// would move the view by an hour's distance.
constexpr float kMaxFrameSeconds = 0.1f;
constexpr int kQuietFrames = 3;
constexpr int kFramesToLayOut = 6;  // frames before an animation, so that all panels are laid out
constexpr std::size_t kEventsAFrame = 20'000;

std::string glfw_reason() {
  const char* text = nullptr;
  glfwGetError(&text);
  return text ? text : "no reason given";
}

// Returns why no display can be opened. If DISPLAY is empty, GLFW's message would lack the name. (Debian's GLFW supports X11 only, so
// WAYLAND_DISPLAY is irrelevant.)
std::string why_no_display() {
  const char* display = std::getenv("DISPLAY");
  return display && *display ? glfw_reason() : "DISPLAY is empty";
}

// Owns the library, the window and its OpenGL context.
class Display {
 public:
  Display(int width, int height) {
    if (!glfwInit())
      throw Error(ErrorCode::Device,
                  "window: no display can be opened: " + why_no_display() +
                      "; set DISPLAY, or use `decoscope compare` in the terminal");
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 0);
    window_ = glfwCreateWindow(width, height, "Decoscope", nullptr, nullptr);
    if (!window_) {
      const std::string why = glfw_reason();
      glfwTerminate();
      throw Error(ErrorCode::Device,
                  "window: cannot be created with OpenGL 3.0: " + why +
                      "; update the graphics driver, or install Mesa's software renderer");
    }
    glfwSetWindowSizeLimits(window_, kLeastWidth, kLeastHeight, GLFW_DONT_CARE, GLFW_DONT_CARE);
    glfwMakeContextCurrent(window_);
    glfwSwapInterval(1);
  }
  ~Display() {
    glfwDestroyWindow(window_);
    glfwTerminate();
  }
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;
  GLFWwindow* window() const { return window_; }

 private:
  GLFWwindow* window_ = nullptr;
};

// Owns the contexts of Dear ImGui and ImPlot, so that a later exception destroys them.
class GuiContext {
 public:
  GuiContext() {
    IMGUI_CHECKVERSION();
    ImGui::CreateContext();
    ImPlot::CreateContext();
  }
  ~GuiContext() {
    ImPlot::DestroyContext();
    ImGui::DestroyContext();
  }
  GuiContext(const GuiContext&) = delete;
  GuiContext& operator=(const GuiContext&) = delete;
};

// Owns the context and its two backends.
class Gui {
 public:
  Gui(GLFWwindow* window, const std::filesystem::path& folder) {
    ImGuiIO& io = ImGui::GetIO();
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;
    io.ConfigInputTextCursorBlink = false;  // a blinking cursor would prevent idling
    io.ConfigWindowsMoveFromTitleBarOnly = true;
    io.IniFilename = nullptr;  // save_wanted_layout() writes the file
    if (!folder.empty()) {
      layout_path_ = folder / "layout.ini";
      keep_layout_in(layout_path_);
      load_layout_of(layout_path_);
    }
    load_fonts(saved_text_font(folder));
    ImGui_ImplGlfw_InitForOpenGL(window, true);
    if (ImGui_ImplOpenGL3_Init("#version 130")) return;
    ImGui_ImplGlfw_Shutdown();
    throw Error(ErrorCode::Device,
                "window: the OpenGL functions cannot be loaded; update the graphics driver, or "
                "install Mesa's software renderer");
  }
  ~Gui() {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
  }
  Gui(const Gui&) = delete;
  Gui& operator=(const Gui&) = delete;

  // Saves the layout when Dear ImGui asks for it, some seconds after a change. @return empty, or why it could not be saved
  std::string save_wanted_layout(const Shell& shell) const {
    return ImGui::GetIO().WantSaveIniSettings ? save_layout_of(shell) : "";
  }
  std::string save_layout_of(const Shell& shell) const {
    return layout_path_.empty() ? "" : save_layout(layout_path_, shell.layout_to_save());
  }

 private:
  std::filesystem::path layout_path_;  // empty: the layout is not saved
  GuiContext context_;
};

// Calls a hook and saves the layout before Dear ImGui's context is destroyed, also after an exception.
class Teardown {
 public:
  Teardown(const std::function<void()>& hook, const Gui& gui, const Shell& shell)
      : hook_(hook), gui_(gui), shell_(shell) {}
  ~Teardown() {
    if (hook_) hook_();
    // Without a frame the context has no windows, and their layout would be lost.
    if (ImGui::GetFrameCount() > 0) gui_.save_layout_of(shell_);
  }
  Teardown(const Teardown&) = delete;
  Teardown& operator=(const Teardown&) = delete;

 private:
  const std::function<void()>& hook_;  // a member of the options, which outlive the window
  const Gui& gui_;
  const Shell& shell_;
};

// Input that Dear ImGui does not handle: dropped files, and keys by position. Dear ImGui identifies keys by their label, GLFW by their
// position on a US keyboard.
struct Input {
  struct Key {
    int key;  // GLFW's constant, equal to the letter
    bool down = false, tapped = false;
  };
  std::vector<std::string> dropped;
  Key keys[4] = {{GLFW_KEY_W}, {GLFW_KEY_S}, {GLFW_KEY_A}, {GLFW_KEY_D}};
  GLFWkeyfun then = nullptr;  // Dear ImGui's callback

  // Reports the held keys to the shell. A key that was pressed and released between two frames counts as held for one frame.
  void report(Shell& shell) {
    for (Key& key : keys) {
      shell.key_at(static_cast<char>(key.key), key.down || key.tapped);
      key.tapped = false;
    }
  }
  bool any() const {
    return std::ranges::any_of(keys, [](const Key& key) { return key.down || key.tapped; });
  }
};

void watch_input(GLFWwindow* window, Input& input) {
  glfwSetWindowUserPointer(window, &input);
  glfwSetDropCallback(window, [](GLFWwindow* w, int n, const char** paths) {
    auto* to = static_cast<Input*>(glfwGetWindowUserPointer(w));
    for (int i = 0; i < n; ++i) to->dropped.emplace_back(paths[i]);
  });
  input.then =
      glfwSetKeyCallback(window, [](GLFWwindow* w, int key, int code, int action, int mods) {
        auto* to = static_cast<Input*>(glfwGetWindowUserPointer(w));
        for (Input::Key& known : to->keys) {
          if (known.key != key) continue;
          known.down = action != GLFW_RELEASE;
          known.tapped = known.tapped || known.down;
        }
        if (to->then) to->then(w, key, code, action, mods);
      });
}

// Returns true if Dear ImGui has input that no frame has handled, or a button is held. Press and release of a key are handled in two frames, so
// the keys of one poll may need several frames.
bool input_waits() {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::GetCurrentContext()->InputEventsQueue.Size > 0) return true;
  for (const bool down : io.MouseDown)
    if (down) return true;
  return ImGui::IsAnyItemActive();
}

void fill_form(Shell& shell, const WindowOptions& options) {
  SetupForm& form = shell.form();
  if (!options.model.empty()) {
    choose_model(form, shell.catalog(), options.model);
    fit_to_model(form, shell.catalog());
  }
  if (!options.scale.empty()) form.scale = options.scale;
  if (!options.dtype.empty()) form.dtype = options.dtype;
  if (!options.cache_type.empty()) form.cache_type = options.cache_type;
  if (!options.device.empty()) form.device = options.device;
  if (options.context > 0) form.context = options.context;
  if (!options.draft.empty()) form.draft = options.draft;
  if (!options.draft_scale.empty()) form.draft_scale = options.draft_scale;
  for (const std::string& name : options.heads)
    for (const CatalogHeads& heads : shell.catalog().heads)
      if (heads.name == name) form.heads[heads.kind] = name;
}

void start_race(Shell& shell, const WindowOptions& options) {
  if (!options.race_first) return;
  shell.show(Screen::Compare);
  const std::string why = shell.run_race();
  // The window shows the reason; a screenshot without a race has to fail instead.
  if (!why.empty() && !options.screenshot.empty())
    throw Error(ErrorCode::BadInput, "window: the race cannot start: " + why);
}

void choose_screen(Shell& shell, const WindowOptions& options) {
  if (!options.screen.empty()) shell.show(screen_named(options.screen));
  if (options.ui_scale > 0) shell.settings().scale_percent = options.ui_scale;
  for (const NamedTheme& named : kThemes)
    if (options.theme == named.word) shell.set_theme(named.theme->name);
}

// Wakes the loop when an event arrives.
class Waker {
 public:
  explicit Waker(engine::EventQueue& events) : events_(events) {
    events_.on_arrival([] { glfwPostEmptyEvent(); });
  }
  ~Waker() { events_.on_arrival({}); }
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

 private:
  engine::EventQueue& events_;  // outlives the window
};

class Loop {
 public:
  Loop(engine::EventQueue& events,
       GLFWwindow* window,
       const Gui& gui,
       Shell& shell,
       const WindowOptions& options)
      : events_(events),
        window_(window),
        gui_(gui),
        shell_(shell),
        options_(options),
        software_(draws_in_software(reinterpret_cast<const char*>(glGetString(GL_RENDERER)))),
        pace_(software_) {
    watch_input(window_, input_);
    last_ = last_input_ = glfwGetTime();
  }

  void run() {
    while (!shell_.wants_to_close()) {
      if (glfwWindowShouldClose(window_)) {
        if (!options_.screenshot.empty() || shell_.may_close()) break;
        glfwSetWindowShouldClose(window_, GLFW_FALSE);
        n_quiet_ = 0;
      }
      wait();
      if (options_.hooks.wants_to_close && options_.hooks.wants_to_close()) break;
      if (has_news()) n_quiet_ = 0;
      std::vector<engine::Event> news = events_.take(kEventsAFrame);
      if (options_.race_first && !options_.screenshot.empty()) fail_with(news);
      shell_.take(std::move(news));
      for (const std::string& path : input_.dropped) shell_.open(path);
      input_.dropped.clear();
      frame();
      if (const std::string why = gui_.save_wanted_layout(shell_); !why.empty()) shell_.say(why);
      if (options_.step >= 0 && !step_selected_) select_step();
      if (!options_.animation.empty() && animation_is_written()) break;
      if (const auto picture = shell_.picture_due()) take(*picture);
      fill_the_screen(shell_.presents());
      if (!options_.screenshot.empty() && picture_is_due()) break;
    }
    if (!options_.screenshot.empty() && options_.panel.empty()) take_picture();
  }

 private:
  // Returns true if input waits for a frame, or a held key moves the view.
  bool waits() const { return input_waits() || input_.any(); }

  // Returns true while a recording plays, and while a picture or an animation is made.
  bool keeps_rate() const {
    return shell_.playhead().mode == Playhead::Mode::Playing || shell_.wants_picture() ||
           !options_.screenshot.empty() || !options_.animation.empty();
  }

  // Sleeps until a frame is needed. Three frames follow every input or event, so that hovers and layouts settle.
  void wait() {
    const bool plays = keeps_rate();
    if (waits() || plays) last_input_ = glfwGetTime();
    if (waits()) n_quiet_ = 0;
    pace_.since_input(glfwGetTime() - last_input_);
    pace_.limit(shell_.settings().frames_per_second);
    pace_.measuring(shell_.measures() && !options_.hooks.draw_always, shell_.measures_set());
    pace_.focus(plays || !shell_.measures() || glfwGetWindowAttrib(window_, GLFW_FOCUSED));
    shell_.pace(pace_.quiet(), pace_.unfocused());
    const bool busy = options_.hooks.draw_always || !options_.screenshot.empty() ||
                      !options_.animation.empty() || shell_.animates();
    glfwPollEvents();
    if (!busy && n_quiet_ >= kQuietFrames && events_.size() == 0) {
      sleep(shell_.ticks());
      n_quiet_ = 0;
    }
    if (!options_.hooks.draw_always) wait_for_the_pace();
    if (events_.size() > 0 || waits()) n_quiet_ = 0;
    if (waits()) last_input_ = glfwGetTime();  // the frame that follows handles this input
  }

  // Waits until the minimum time between frames has passed. The loop is needed because an event ends glfwWaitEventsTimeout() early.
  void wait_for_the_pace() {
    const auto left = [this] { return last_ + pace_.gap(waits()) - glfwGetTime(); };
    while (left() > 0.0005 && !closes()) glfwWaitEventsTimeout(std::min(left(), kTickSeconds));
  }

  bool has_news() const { return options_.hooks.has_news && options_.hooks.has_news(); }

  bool closes() const {
    return glfwWindowShouldClose(window_) ||
           (options_.hooks.wants_to_close && options_.hooks.wants_to_close());
  }

  // Waits for input, events or a tick. Checks at intervals without drawing, because a signal to close does not wake the window system.
  void sleep(bool ticks) {
    while (!closes()) {
      const double begun = glfwGetTime();
      glfwWaitEventsTimeout(kTickSeconds);
      const bool woken = glfwGetTime() - begun < 0.98 * kTickSeconds;
      if (ticks || woken || events_.size() > 0 || waits() || shell_.has_news() || has_news())
        return;
    }
  }

  void frame() {
    const double begun = glfwGetTime();
    draw(1, !options_.screenshot.empty());
    // A screenshot reads the back buffer, so buffers are not swapped; without glFinish() the driver would then queue frames without limit.
    if (options_.screenshot.empty()) glfwSwapBuffers(window_);
    if (software_ || !options_.screenshot.empty()) glFinish();
    pace_.drew(glfwGetTime() - begun);
    ++n_quiet_;
    if (options_.hooks.frame_shown) options_.hooks.frame_shown();
  }

  // Draws into the current frame buffer with `density` pixels per pixel of the window, in each direction.
  void draw(float density, bool for_picture) {
    ImGuiIO& io = ImGui::GetIO();
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    io.DisplayFramebufferScale.x *= density;
    io.DisplayFramebufferScale.y *= density;
    // The pointer leaves the window, so that a picture shows no hover effects.
    if (for_picture) io.AddMousePosEvent(-FLT_MAX, -FLT_MAX);
    io.DeltaTime = std::min(io.DeltaTime, kMaxFrameSeconds);
    ImGui::NewFrame();
    const double now = glfwGetTime();
    input_.report(shell_);
    shell_.draw(now - last_);
    last_ = now;
    ImGui::Render();
    glViewport(0, 0, static_cast<int>(io.DisplaySize.x * io.DisplayFramebufferScale.x),
               static_cast<int>(io.DisplaySize.y * io.DisplayFramebufferScale.y));
    glClearColor(0, 0, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  }

  // Takes a requested picture: draws the window again at the size of the picture.
  void take(const Picture& picture) {
    ImGuiIO& io = ImGui::GetIO();
    const ImVec2 mouse = io.MousePos;
    shell_.caption_pictures(true);
    try {
      const auto times = static_cast<float>(picture.times);
      const auto pixels = [times](float of_window) {
        return static_cast<int>(std::lround(of_window * times));
      };
      const int high = pixels(io.DisplaySize.y);
      const Offscreen target(pixels(io.DisplaySize.x), high);
      draw(times / io.DisplayFramebufferScale.x, true);
      glFinish();
      const int left = pixels(picture.min.x), top = pixels(picture.min.y),
                width = pixels(picture.max.x) - left, height = pixels(picture.max.y) - top;
      const auto pixels_of_part = read_pixels(left, high - top - height, width, height);
      if (shell_.wants_frames()) {
        shell_.take_frame(pixels_of_part, width, height, picture.says);
      } else {
        engine::OutputFile file(picture.path, {}, engine::OutputFile::IfExists::NewName);
        file.write(png_of(pixels_of_part, width, height, picture.says));
        file.finish();
        shell_.picture_taken("Picture: " + file.path());
      }
    } catch (const Error& error) {
      shell_.picture_taken(error.what());
    }
    shell_.caption_pictures(!options_.screenshot.empty());
    io.AddMousePosEvent(mouse.x, mouse.y);
    n_quiet_ = 0;
    if (options_.hooks.frame_shown) options_.hooks.frame_shown();
  }

  // Enters or leaves presentation mode.
  void fill_the_screen(bool fill) {
    if (fill == fills_) return;
    fills_ = fill;
    GLFWmonitor* monitor = glfwGetPrimaryMonitor();
    const GLFWvidmode* mode = monitor ? glfwGetVideoMode(monitor) : nullptr;
    if (!mode) return;
    if (fill) {
      glfwGetWindowPos(window_, &place_[0], &place_[1]);
      glfwGetWindowSize(window_, &place_[2], &place_[3]);
      glfwSetWindowMonitor(window_, monitor, 0, 0, mode->width, mode->height, mode->refreshRate);
    } else {
      glfwSetWindowMonitor(window_, nullptr, place_[0], place_[1], place_[2], place_[3], 0);
    }
    n_quiet_ = 0;
  }

  // Returns true if the race has ended and its last state has been drawn.
  bool picture_is_due() {
    if (shell_.reads() || shell_.reads_training()) return false;
    if (options_.race_first && n_frames_due_ == 0) {
      const auto runs = shell_.session().live().timeline.runs();
      const bool over =
          !runs.empty() && runs.size() >= shell_.form().lanes.size() &&
          std::all_of(runs.begin(), runs.end(), [](const auto& r) { return r.over(); });
      if (!over) return false;
      shell_.show_a_lane_with_trajectory();
    }
    if (++n_frames_due_ < options_.screenshot_frames) return false;
    if (options_.panel.empty()) return true;
    if (!std::exchange(panel_asked_, true)) {
      const auto here = panels_of(shell_.screen());
      if (std::find(here.begin(), here.end(), options_.panel) == here.end())
        throw Error(
            ErrorCode::Usage,
            fmt::format("--panel {}: the screen {} does not have it; it has {}", options_.panel,
                        screen_name(shell_.screen()), fmt::join(here, ", ")));
      shell_.ask_picture(options_.screenshot, options_.panel, 1);
    }
    if (shell_.wants_picture()) return false;
    if (!shell_.message().starts_with("Picture: "))
      throw Error(ErrorCode::Resources, shell_.message());
    return true;
  }

  // Begins the animation when the recording is read and laid out. @return whether it is written
  bool animation_is_written() {
    if (shell_.reads() || ++n_frames_due_ < kFramesToLayOut) return false;
    if (!std::exchange(animation_asked_, true)) {
      if (options_.run > 0) shell_.selection().run = static_cast<engine::RunId>(options_.run);
      if (options_.wall_clock) shell_.state<TimelineView>().clock = ClockKind::Wall;
      shell_.ask_animation(
          options_.animation, options_.panel, 1,
          shell_.plan_of_steps(options_.animation_plan, options_.first_step, options_.last_step),
          true);
    }
    if (shell_.wants_picture()) return false;
    if (!shell_.message().starts_with("Animation: "))
      throw Error(ErrorCode::Resources, shell_.message());
    const auto& [path, words] = shell_.animation_done();
    if (options_.hooks.animation_written) options_.hooks.animation_written(path, words);
    return true;
  }

  void select_step() {
    const engine::RunId run = shell_.selection().run;
    if (shell_.reads() || !shell_.session().shown().timeline.run(run)) return;
    shell_.selection().locked = {run, options_.step, -1, -1};
    step_selected_ = true;
  }

  // Throws the error of a failed race, which must not give a screenshot.
  static void fail_with(const std::vector<engine::Event>& news) {
    for (const engine::Event& event : news)
      if (const auto* failed = std::get_if<engine::RunFailed>(&event))
        throw Error(static_cast<ErrorCode>(failed->code), failed->message);
  }

  void take_picture() {
    int width = 0, height = 0;
    glfwGetFramebufferSize(window_, &width, &height);
    write_screenshot(options_.screenshot, width, height);
  }

  engine::EventQueue& events_;
  GLFWwindow* window_;
  const Gui& gui_;
  Shell& shell_;
  const WindowOptions& options_;
  bool software_;
  FramePace pace_;
  Input input_;
  double last_input_ = 0;
  double last_ = 0;
  int n_quiet_ = 0, n_frames_due_ = 0;
  bool fills_ = false, panel_asked_ = false, step_selected_ = false, animation_asked_ = false;
  int place_[4] = {0, 0, 0, 0};  // x, y, width, height before presentation mode
};

}  // namespace

void check_opens(const std::string& path) {
  std::error_code none;
  if (engine::looks_like_lesson(path)) {
    const engine::Lesson lesson = engine::read_lesson(path);
    engine::solve_lesson(lesson, engine::load_lesson_recording(lesson));
  } else if (engine::looks_like_training(path) || std::filesystem::is_directory(path, none))
    engine::TrainingReader reader(path);
  else
    engine::RecordingReader(engine::open_file(path));
}

int run_window(engine::EventQueue& events,
               engine::CommandQueue& commands,
               const Catalog& catalog,
               const WindowOptions& options) {
  const std::filesystem::path folder = options.config_dir == "-" ? std::filesystem::path()
                                       : options.config_dir.empty()
                                           ? settings_folder()
                                           : std::filesystem::path(options.config_dir);
  // A picture and a window without settings leave no session.
  const std::filesystem::path sessions = options.config_dir == "-"    ? std::filesystem::path()
                                         : options.config_dir.empty() ? state_folder()
                                                                      : folder / "sessions";
  Display display(options.width, options.height);
  Gui gui(display.window(), folder);
  bool answers = true;
  {
    Shell shell(catalog, commands, folder, sessions);
    shell.set_deadlines(options.deadlines);
    if (!options.open.empty()) {
      check_opens(options.open);
      // A training folder may also hold a model, which --open does not open.
      if (!engine::looks_like_training(options.open))
        shell.open(options.open, !options.screen.empty());
      else if (shell.open_training(options.open))
        shell.show(Screen::Training);
    }
    shell.caption_pictures(!options.screenshot.empty());
    fill_form(shell, options);
    start_race(shell, options);
    choose_screen(shell, options);
    const Waker waker(events);
    const Teardown teardown(options.hooks.before_teardown, gui, shell);
    if (options.hooks.form_made) options.hooks.form_made(shell.form());
    if (options.hooks.shell_made) options.hooks.shell_made(shell);
    if (options.hooks.context_made) options.hooks.context_made();
    Loop(events, display.window(), gui, shell, options).run();
    // With a deadline of 0, any GPU that is computing now is late: it may hang even if it has not exceeded the usual deadline.
    const StepDeadlines at_once{.report_s = 0, .emulated = options.deadlines.emulated};
    answers = !unanswered(shell.session().live().timeline, 0, at_once);
  }
  commands.push(engine::StopRun{});
  return answers ? 0 : static_cast<int>(ErrorCode::Device);
}

}  // namespace ui

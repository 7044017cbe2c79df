// Draws a frame: bars, docked panels, screens.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "ui/lesson/lesson_card.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/gantt.h"
#include "ui/settings/layout_presets.h"
#include "ui/shell/catalog.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"
#include "ui/shell/states.h"
#include "ui/shell/welcome.h"
#include "ui/widgets/area.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

constexpr float kTopBar = 44, kStatusBar = 28, kHead = 30;
// Width that the top bar keeps for the run's name and the state.
constexpr float kStateRoom = 200;
// Presentation mode enlarges everything by this factor.
constexpr float kPresenting = 1.35f;
// If frames are further apart than this, the window was idle in between.
constexpr double kMaxFrameSeconds = 0.1;

Rgb level_colour(Status::Level level) {
  switch (level) {
    case Status::Level::Good:
      return theme().good;
    case Status::Level::Amber:
      return theme().warn;
    case Status::Level::Bad:
      return theme().bad;
    case Status::Level::Quiet:
      break;
  }
  return theme().dim;
}

// Fills the area outside a rounded corner with the background colour.
void cut_corner(ImDrawList* list, ImVec2 corner, ImVec2 centre, float from, float radius) {
  list->PathLineTo(corner);
  list->PathArcTo(centre, radius, from, from + IM_PI / 2, 8);
  list->PathFillConvex(colour(theme().ground));
}

// Draws rounded corners, a border and a line below the head around a docked panel.
void card_frame(ImGuiWindow* window) {
  ImDrawList* list = window->DrawList;
  const ImGuiDockNode* node = window->DockNode;
  const ImVec2 min = node ? node->Pos : window->Pos;
  const ImVec2 max = node ? ImVec2{node->Pos.x + node->Size.x, node->Pos.y + node->Size.y}
                          : ImVec2{window->Pos.x + window->Size.x, window->Pos.y + window->Size.y};
  const float r = px(8);
  list->PushClipRect(min, max, false);
  cut_corner(list, min, {min.x + r, min.y + r}, IM_PI, r);
  cut_corner(list, {max.x, min.y}, {max.x - r, min.y + r}, IM_PI * 1.5f, r);
  cut_corner(list, max, {max.x - r, max.y - r}, 0, r);
  cut_corner(list, {min.x, max.y}, {min.x + r, max.y - r}, IM_PI * 0.5f, r);
  list->AddRect(min, max, colour(theme().line), r);
  if (node && node->TabBar) {
    const float y = node->TabBar->BarRect.Max.y;
    list->AddLine({min.x, y}, {max.x, y}, colour(theme().line));
  }
  list->PopClipRect();
}

// Marks the panel that F6 has reached.
void focus_ring(ImGuiWindow* window) {
  const ImVec2 min = window->Pos,
               max{window->Pos.x + window->Size.x, window->Pos.y + window->Size.y};
  ImDrawList* list = window->DrawList;
  list->PushClipRect(min, max, false);
  list->AddRect({min.x + 1, min.y + 1}, {max.x - 1, max.y - 1}, colour(theme().accent), px(6),
                px(2));
  list->PopClipRect();
}

// The width below which the top bar omits the program's name, the model, and buttons that cannot be used now; below which the buttons at its
// right end are in a popup; and below which the names of the screens are in a list. In px at 100 %.
constexpr float kNarrowBar = 1060, kNarrowerBar = 900, kNarrowestBar = 760;

bool bar_is_below(float width) {
  return frame_area().wide() < px(width);
}

bool is_narrow() {
  return bar_is_below(kNarrowBar);
}

// Returns the number of parameters of a model and its scale: "86.5 M at 4x2".
std::string size_words(const engine::ModelLoaded& model) {
  const std::string size =
      model.n_params >= 1'000'000
          ? fmt::format("{} M", short_number(static_cast<double>(model.n_params) / 1e6))
          : with_commas(model.n_params);
  return model.scale == "1x1" || model.scale.empty() ? size : size + " at " + model.scale;
}

// Moves the tabs that Dear ImGui scrolls into view to their end at once.
void stop_gliding_tabs() {
  for (const ImGuiStoragePair& one : ImGui::GetCurrentContext()->DockContext.Nodes.Data) {
    const auto* node = static_cast<const ImGuiDockNode*>(one.val_p);
    if (node && node->TabBar) node->TabBar->ScrollingAnim = node->TabBar->ScrollingTarget;
  }
}

// Lists the names of all tabs of a place, in as many columns as the height of the window requires.
void list_tabs(ImGuiContext*, ImGuiDockNode*, ImGuiTabBar* bar) {
  float wide = 0;
  for (ImGuiTabItem& tab : bar->Tabs)
    wide = std::max(wide, ImGui::CalcTextSize(ImGui::TabBarGetTabName(bar, &tab), nullptr, true).x);
  const float room = frame_area().max.y - ImGui::GetCursorScreenPos().y - px(10);
  const int most = std::max(1, static_cast<int>(room / px(kLeastTarget)));
  const int n_columns = (bar->Tabs.Size + most - 1) / most;
  for (int i = 0; i < bar->Tabs.Size; ++i) {
    ImGuiTabItem& tab = bar->Tabs[i];
    if (i % n_columns > 0) ImGui::SameLine(0, px(20));
    if (selectable(ImGui::TabBarGetTabName(bar, &tab), tab.ID == bar->SelectedTabId, 0, {wide, 0}))
      ImGui::TabBarQueueFocus(bar, &tab);
  }
}

// Lets Dear ImGui's button before the tabs show this list.
void set_list_of_tabs() {
  static constexpr ImGuiLocEntry kWords[] = {
      {ImGuiLocKey_DockingDragToUndockOrMoveNode, "List all tabs of this group"}};
  ImGui::LocalizeRegisterEntries(kWords, 1);
  ImGui::GetCurrentContext()->DockNodeWindowMenuHandler = list_tabs;
}

// Returns the scale at which the window is drawn: the user's, or the largest at which a small window has room for kLeastSize.
float scale_within(ImVec2 size, float wanted) {
  const float fits = std::min(size.x / kLeastWidth, size.y / kLeastHeight);
  return std::max(std::min(wanted, fits), 0.5f);
}

}  // namespace

void Shell::draw(double seconds) {
  const auto begun = std::chrono::steady_clock::now();
  if (!layout_to_load_.empty()) {
    load_layout(std::exchange(layout_to_load_, ""));
    laid_out_ = {};  // the window may have had another size
  }
  const Area window = whole_window();
  set_frame_area(presents_ ? safe_area(window) : window);
  const Area area = frame_area();
  const float scale = scale_within(area.size(), static_cast<float>(settings_.scale_percent) / 100 *
                                                    (presents_ ? kPresenting : 1));
  if (style_is_stale_) set_list_of_tabs();
  if (style_is_stale_ || scale != px(1)) apply_theme(settings_.theme, scale);
  style_is_stale_ = false;
  show_space_dots(settings_.space_dots);
  follow_units();
  clock_ += seconds;
  since_event_ += seconds;
  selection_.begin_frame();
  handle_keys();
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) panel_ring_ = false;
  read_on();
  save_on();
  export_on();
  close_when_stopped();
  read_training();
  fit_form();
  follow_lesson();
  const double play_seconds = seconds_to_move(seconds);
  Context c = context();
  select_run_for_lab(c.timeline);
  follow_tour(c);
  follow_watched_race(c);
  playhead_.advance(play_seconds, c.end());
  ImGui::GetBackgroundDrawList()->AddRectFilled(window.min, window.max, colour(theme().ground));
  if (!lectures()) draw_top_bar(c);
  const float bars = draw_exporting_bar(
      draw_saving_bar(draw_reading_bar(c, area.min.y + (lectures() ? 0 : px(kTopBar)))));
  const float reports = draw_damage_bar(draw_restore_bar(draw_late_bar(bars)));
  const float top = draw_failure_bar(c, draw_saved_bar(reports));
  const float bottom = draw_tour(draw_caption(c, area.max.y - (lectures() ? 0 : px(kStatusBar))));
  if (screen_ == Screen::Lesson)
    draw_lesson_screen(top, bottom);
  else
    draw_docked(c, top, bottom);
  if (!lectures()) draw_status_bar(c);
  if (presents_) draw_laser_spot();
  draw_overlays(c);
  handle_requests(c);
  follow_arrangement();
  save_changed_settings();
  if (frames_until_picture_ > 0) --frames_until_picture_;
  const std::chrono::duration<float, std::milli> spent = std::chrono::steady_clock::now() - begun;
  draw_ms_ = draw_ms_ * 0.9f + 0.1f * spent.count();
}

double Shell::seconds_to_move(double frame_seconds) {
  // Idle time does not advance the view.
  const double seconds = std::min(frame_seconds, kMaxFrameSeconds);
  const double between = seconds_between_moves(shown_motion(settings_.motion, desktop_animates_));
  if (between > 0) stop_gliding_tabs();
  // The first jump follows the key at once.
  if (!drive_.any()) drive_jumps_.make_due(between);
  drive_.seconds = drive_.any() ? drive_jumps_.take(seconds, between) : 0;
  return playhead_.mode == Playhead::Mode::Playing ? play_jumps_.take(seconds, between) : 0;
}

// When the Laboratory opens on a run without proposals (plain decoding), selects the first run of its race that has proposals.
void Shell::select_run_for_lab(const engine::Timeline& timeline) {
  if (!lab_begins_ || reads()) return;
  const engine::RunRecord* run = timeline.run(selection_.run);
  if (!run) return;
  lab_begins_ = false;
  if (run->totals.n_proposed > 0 || run->started.race == 0) return;
  const auto race = timeline.race(run->started.race);
  const auto found = std::ranges::find_if(
      race, [](const engine::RunRecord* one) { return one->totals.n_proposed > 0; });
  if (found != race.end()) selection_.run = (*found)->id();
}

void Shell::draw_screen_choice() {
  struct Choice {
    Screen screen;
    const char *name, *keys;
  };
  static constexpr Choice kChoices[] = {
      {Screen::Welcome, "Welcome", "Alt+0"}, {Screen::Live, "Live", "Alt+1"},
      {Screen::Compare, "Compare", "Alt+2"}, {Screen::Lesson, "Lessons", "Alt+3"},
      {Screen::Lab, "Lab", "Alt+4"},         {Screen::Training, "Training", "Alt+5"}};
  if (bar_is_below(kNarrowestBar)) {
    const auto shown = std::ranges::find(kChoices, screen_, &Choice::screen);
    if (ImGui::Button((std::string(shown->name) + "...###screens").c_str()))
      ImGui::OpenPopup("screens");
    if (ImGui::BeginPopup("screens")) {
      for (const Choice& choice : kChoices)
        if (menu_item(choice.name, choice.keys, screen_ == choice.screen)) show(choice.screen);
      ImGui::EndPopup();
    }
    ImGui::SameLine();
    return;
  }
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(8), px(5)));
  for (const Choice& choice : kChoices) {
    const bool on = screen_ == choice.screen;
    ImGui::PushStyleColor(ImGuiCol_Button, on ? colour(theme().button) : IM_COL32(0, 0, 0, 0));
    ImGui::PushStyleColor(ImGuiCol_Text, colour(on ? theme().bright : theme().dim));
    if (ImGui::Button(choice.name)) show(choice.screen);
    ImGui::PopStyleColor(2);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayNormal)) tooltip(choice.keys);
    ImGui::SameLine(0, px(2));
  }
  ImGui::PopStyleVar();
}

void Shell::draw_model_chip(Context& c) {
  const engine::RunRecord* run = c.run();
  const engine::ModelLoaded* model = run ? c.timeline.model(run->started.model) : nullptr;
  // Without the whole name and the size here, the status bar has them.
  chip_has_model_ = false;
  if (!model || is_narrow()) return;
  ImGui::SameLine(0, px(12));
  // The state has precedence over the model, which the status bar has too. Its room is constant, so the buttons keep their places.
  const float room = frame_area().max.x - bar_end_ - px(20 + 14 + kStateRoom) - controls_width_ -
                     ImGui::GetCursorScreenPos().x;
  if (room < px(60)) return;
  ImGui::BeginGroup();
  ImGui::AlignTextToFramePadding();
  ImGui::PushFont(fonts().bold, kTextSize);
  const std::string shown = elided(model->name, room);
  const float left = room - ImGui::CalcTextSize(shown.c_str()).x - px(6);
  words(shown, theme().bright);
  ImGui::PopFont();
  const std::string size = size_words(*model);
  const std::string how =
      fmt::format("{}, {}, {} {} threads", size, model->dtype, model->device, model->n_threads);
  // Without room for all of these words the size alone is shown, or nothing; the tooltip has them.
  const auto fits = [left](const std::string& text) {
    return ImGui::CalcTextSize(text.c_str()).x <= left;
  };
  chip_has_model_ = fits(size) && shown == model->name;
  if (fits(size)) {
    ImGui::SameLine(0, px(6));
    words(fits(how) ? how : size, theme().dim);
  }
  ImGui::EndGroup();
  if (ImGui::IsItemHovered())
    tooltip(fmt::format("{}\n{}\n{} layers, dim {}, vocabulary {}, {} MB of weights, kernels {}",
                        model->name, how, model->n_layers, model->dim,
                        with_commas(model->vocab_size), model->weight_bytes / 1'000'000,
                        model->ops));
}

void Shell::draw_run_controls(Context& c) {
  const bool race = screen_ == Screen::Compare;
  const std::string why = why_not(form_, catalog_, race);
  const float begin = ImGui::GetItemRectMax().x;
  ImGui::SameLine(0, px(14));
  if (button(race ? "Run race###run" : "Run###run", true, why.empty(),
             !why.empty()               ? why.c_str()
             : session_.live_is_shown() ? "Ctrl+Enter"
                                        : "start the next run in this session (Ctrl+Enter)"))
    run(race);
  const engine::Timeline& live = session_.live().timeline;
  const bool going = is_going(live);
  ImGui::SameLine();
  // Before a run the button sets how the next run starts.
  const bool awaited = !going && requested_since_ >= 0 && awaits_run_;
  const bool held = going ? live.held() : awaited ? requested_held_ : form_.start_held;
  if (button(held ? "Resume###hold" : "Pause###hold", false, true,
             going ? "pause the engine before the next step (Shift+Space)"
                   : "start the next run paused (Shift+Space)"))
    perform(Action::HoldEngine);
  const bool can_step = going && live.held(), can_stop = going || requested_since_ >= 0;
  if (can_step || !is_narrow()) {
    ImGui::SameLine();
    if (button("Step", false, can_step, "compute one step while the engine is paused (N)"))
      perform(Action::StepEngine);
  }
  if (can_stop || !is_narrow()) {
    ImGui::SameLine();
    if (button("Stop", false, can_stop, "stop within one step (Ctrl+.)")) perform(Action::Stop);
  }
  controls_width_ = ImGui::GetItemRectMax().x - begin;
  (void)c;
}

Shell::BarState Shell::bar_state(Context& c) {
  const engine::RunRecord* run = c.run();
  const auto lanes = c.shown_runs();
  BarState state;
  Status& status = state.status;
  status = status_of(c.timeline, run, since_event_, !session_.live_is_shown());
  if (c.reading >= 0) status = {.text = "reading"};
  const auto late = session_.live_is_shown() ? late_gpu() : std::nullopt;
  if (late)
    status = {.level = Status::Level::Amber,
              .text = words_of(*late),
              .working = true,
              .shorter = {"GPU not responding"}};
  const bool waits = c.waiting >= 0 && status.share < 0 && !late;
  if (waits)
    status = {.text = fmt::format("loading, {:.1f} s", c.waiting),
              .working = true,
              .shorter = {"loading"}};
  if (screen_ == Screen::Compare && status.level == Status::Level::Quiet && !waits &&
      lanes.size() > 1) {
    const double at = std::min(playhead_.at, c.end());
    std::size_t n_done = 0, n_stopped = 0;
    for (const engine::RunRecord* lane : lanes)
      if (lane->over() && c.times(*lane).end_compute() <= at)
        ++(lane->was_stopped() ? n_stopped : n_done);
    Status race = race_status(at, n_done, n_stopped, lanes.size());
    status.text = std::move(race.text);
    status.shorter = std::move(race.shorter);
  }
  if (status.level == Status::Level::Bad) status.text = "failed", status.shorter.clear();
  const engine::RunRecord* of_set =
      screen_ == Screen::Compare && !lanes.empty() ? lanes.front() : run;
  const std::string place = of_set ? set_words(of_set->started.place) : "";
  const bool changes = status.working || playhead_.mode == Playhead::Mode::Playing;
  state.forms = steady_state_.show(forms_of(status, place), clock_, changes);
  const auto set = !place.empty() && session_.live_is_shown() ? set_of(c.timeline) : std::nullopt;
  if (set && status.share < 0)
    status.share = static_cast<double>(set->n_begun) / static_cast<double>(set->n_races);
  if (screen_ == Screen::Live && run && !waits) state.name = c.name_of(*run);
  if (screen_ != Screen::Compare) state.agreement = agreement_of(run);
  return state;
}

void Shell::draw_state(Context& c, const BarState& state) {
  ImGui::SameLine(0, px(14));
  ImGui::AlignTextToFramePadding();
  const Status& status = state.status;
  const Status& agreement = state.agreement;
  const float bar = status.share >= 0 ? px(90) : 0,
              beside = (bar > 0 ? bar + ImGui::GetStyle().ItemSpacing.x : 0) +
                       (agreement.text.empty() ? 0 : px(14 + 14));
  // The text ends before the buttons at the right end of the bar.
  const float end = frame_area().wide() - bar_end_ - px(20);
  const auto room = [end] { return std::max(px(40), end - ImGui::GetCursorPosX()); };
  const auto is_full = [end] { return ImGui::GetCursorPosX() + px(40) > end; };
  if (is_full()) return;
  // Without room for both, the run's name is cut before the state.
  const float named = room() - ImGui::CalcTextSize(state.forms.back().c_str()).x - px(9) - beside;
  if (!state.name.empty() && named > px(28)) {
    words(elided(state.name, named), theme().bright);
    if (ImGui::IsItemHovered())
      tooltip(
          fmt::format("{}\nrun {}: selected in Runs, or started last", state.name, c.run()->id()));
    ImGui::SameLine(0, px(8));
  }
  words_within(state.forms, level_colour(status.level), std::max(px(40), room() - beside));
  if (bar > 0) {
    ImGui::SameLine();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(11));
    share_bar(static_cast<float>(status.share), {bar, px(5)}, handle_on(theme()));
    ImGui::SameLine();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(11));
  }
  if (agreement.text.empty()) return;
  ImGui::SameLine(0, px(14));
  // Without room for the words the sign stands alone.
  const std::string sign = agreement.level == Status::Level::Good ? "+" : "!",
                    whole = sign + " " + agreement.text;
  const float left = end - ImGui::GetCursorPosX();
  const bool fits = ImGui::CalcTextSize(whole.c_str()).x <= left;
  if (!fits && left < px(14)) return;
  words(fits ? whole : sign, level_colour(agreement.level));
  if (!fits && ImGui::IsItemHovered()) tooltip(whole);
}

void Shell::draw_file_buttons(const Context& c) {
  if (button("Open")) requests_.open = "";
  ImGui::SameLine();
  const bool shows_training = screen_ == Screen::Training && training_;
  if (button("Export", false, shows_training || !c.timeline.runs().empty(),
             shows_training ? "export a picture (Ctrl+E)"
                            : "export a trace, tables or a picture (Ctrl+E)"))
    perform(Action::Export);
  ImGui::SameLine();
  if (button("Find", false, true, "find a step or text (/)")) perform(Action::Find);
  ImGui::SameLine();
  if (button("?", false, true, "keyboard shortcuts")) perform(Action::Help);
}

void Shell::draw_top_bar(Context& c) {
  const Area area = frame_area();
  begin_bar("##top", area.min, {area.wide(), px(kTopBar)}, {px(14), px(8)});
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(12), px(5)));
  if (!is_narrow()) {
    ImGui::AlignTextToFramePadding();
    ImGui::PushFont(fonts().bold, 16.5f);
    words("Decoscope", theme().bright);
    ImGui::PopFont();
    ImGui::SameLine(0, px(14));
  }
  draw_screen_choice();
  if (screen_ == Screen::Training) {
    draw_training_state();
  } else if (screen_ != Screen::Welcome && screen_ != Screen::Lesson) {
    draw_model_chip(c);
    draw_run_controls(c);
    draw_state(c, bar_state(c));
  }
  // The buttons are placed by their width in the last frame, so that they end where the cards end.
  ImGui::SameLine(area.wide() - bar_end_ - px(8));
  ImGui::BeginGroup();
  if (!bar_is_below(kNarrowerBar)) {
    draw_file_buttons(c);
  } else {
    if (button("...###more", false, true, "Open, Export, Find, keyboard shortcuts"))
      ImGui::OpenPopup("more");
    if (ImGui::BeginPopup("more")) {
      draw_file_buttons(c);
      if (help_ || find_ || export_dialog_ || requests_.open) ImGui::CloseCurrentPopup();
      ImGui::EndPopup();
    }
  }
  ImGui::EndGroup();
  bar_end_ = ImGui::GetItemRectSize().x;
  ImGui::PopStyleVar();
  ImGui::End();
}

void Shell::draw_status_bar(Context& c) {
  const Area area = frame_area();
  begin_bar("##status", {area.min.x, area.max.y - px(kStatusBar)}, {area.wide(), px(kStatusBar)},
            {px(14), px(5)});
  const engine::Timeline& live = session_.live().timeline;
  BarFacts facts{
      .source = std::filesystem::path(c.source).filename().string(),
      .n_events = c.timeline.n_events(),
      .n_inconsistent = c.timeline.n_inconsistent(),
      .paused = live.held(),
      .quiet = quiet_,
      .unfocused = unfocused_,
      .draw_ms = draw_ms_,
      .scale_percent = static_cast<int>(std::lround(100 * px(1) / (presents_ ? kPresenting : 1)))};
  const bool has_chip =
      screen_ == Screen::Live || screen_ == Screen::Compare || screen_ == Screen::Lab;
  const engine::RunRecord* selected = c.run();
  const engine::ModelLoaded* model = selected ? c.timeline.model(selected->started.model) : nullptr;
  if (model && has_chip && !chip_has_model_)
    facts.model = fmt::format("{}, {}, {}", model->name, model->dtype, size_words(*model));
  facts.running = is_going(live);
  if (!facts.running)
    facts.paused = requested_since_ >= 0 && awaits_run_ ? requested_held_ : form_.start_held;
  for (const engine::RunRecord& run : c.timeline.runs())
    facts.n_dropped += static_cast<std::int64_t>(run.dropped.size());
  // Shows no load after the run, because the last sample is out of date.
  if (facts.running && !c.timeline.samples().empty()) {
    const engine::Sampled& s = c.timeline.samples().back();
    facts.device = s.busy_percent >= 0 ? fmt::format("{} {:.0f} % busy", s.device, s.busy_percent)
                                       : s.device + ": " + s.reason;
  }
  const auto& view = state<TimelineView>();
  if (view.range.range0 != view.range.range1)
    facts.range = length_words(view.clock, std::abs(view.range.range1 - view.range.range0));
  const bool writes = animating_ && animating_->state() == Animating::State::Writing;
  const auto forms = [&]() -> std::vector<std::string> {
    if (writes && !captions_)
      return {fmt::format("Writing {}: {}, Esc cancels",
                          std::filesystem::path(animating_->path()).filename().string(),
                          percent(animating_->fraction()))};
    if (screen_ == Screen::Training) return training_bar();
    if (captions_) return caption_forms(catalog_.app_version, c.timeline, c.shown_runs());
    return steady_bar_.show(bar_forms(facts), clock_, facts.running);
  }();
  words_within(forms, theme().dim, ImGui::GetContentRegionAvail().x);
  ImGui::End();
}

void Shell::draw_docked(Context& c, float top, float bottom) {
  const Area area = frame_area();
  docked_ = {screen_, area.wide(), top, bottom};
  ImGui::SetNextWindowPos({area.min.x, top});
  ImGui::SetNextWindowSize({area.wide(), std::max(px(50), bottom - top)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(8), px(8)));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, IM_COL32(0, 0, 0, 0));
  ImGui::Begin("##ground", nullptr, kFixedWindow | ImGuiWindowFlags_NoNavFocus);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const LayoutPreset& preset = preset_named(settings_.layout);
  if (std::exchange(preset_changed_, false))
    for (const Screen one : {Screen::Live, Screen::Compare})
      if (const ImGuiID its = ImGui::GetID(screen_name(one)); !lacks_layout(its))
        build_layout(one, preset, its, room);
  if (screen_ == Screen::Welcome) {
    draw_welcome(c);
    ImGui::End();
    return;
  }
  const ImGuiID space = ImGui::GetID(screen_name(screen_));
  const std::pair<Screen, Room> laid_out{screen_, room_of(room)};
  if (reset_layout_ || lacks_layout(space) ||
      (laid_out != laid_out_ && is_preset_of_other_room(screen_, preset, laid_out.second)))
    build_layout(screen_, preset, space, room);
  laid_out_ = laid_out;
  reset_layout_ = false;
  // Panel heads are tab bars with bold titles, 30 px high.
  ImGui::PushFont(fonts().bold, kTextSize);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding,
                      ImVec2(px(kHeadPadding), (px(kHead) - ImGui::GetFontSize()) / 2));
  // Dear ImGui draws the 8 px between cards in the border colour; use the background colour.
  ImGui::PushStyleColor(ImGuiCol_Border, colour(theme().ground));
  ImGui::DockSpace(space, {0, 0}, ImGuiDockNodeFlags_NoCloseButton);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::End();
  for (const char* id : panels_of(screen_)) {
    if (offers(id))
      draw_panel(c, *panel_named(id));
    else
      offered_panels_.erase(id);
  }
  if (screen_ == Screen::Live) open_what_fits(c);
}

void Shell::draw_panel(Context& c, const Panel& panel) {
  const bool bare = panel.bare;
  const std::string name = window_name(
      screen_, panel.id, c.compare && *panel.compare_title ? panel.compare_title : panel.title);
  const ImGuiWindow* before = ImGui::FindWindowByName(name.c_str());
  const bool has_tab = before && before->DockNode && before->DockNode->TabBar;
  if (bare) ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, has_tab ? px(6) : 0));
  if (bare) ImGui::PushStyleColor(ImGuiCol_WindowBg, colour(theme().ground));
  const std::string empty = panel.empty(c);
  ImGuiWindowFlags flags = ImGuiWindowFlags_NoCollapse;
  if (panel.wide) flags |= ImGuiWindowFlags_HorizontalScrollbar;
  // A tab that appears because of new events comes to the front but does not take the keyboard.
  const bool comes = panel.offered && offered_panels_.insert(panel.id).second;
  if (comes && called_panel_ != panel.id) flags |= ImGuiWindowFlags_NoFocusOnAppearing;
  ImGuiWindowClass place;
  place.DockNodeFlagsOverrideSet = lists_tabs(before) ? 0 : ImGuiDockNodeFlags_NoWindowMenuButton;
  if (has_cut_tab(before)) place.TabItemFlagsOverrideSet = ImGuiTabItemFlags_Invisible;
  ImGui::SetNextWindowClass(&place);
  const bool visible = ImGui::Begin(name.c_str(), nullptr, flags);
  if (bare) ImGui::PopStyleColor();
  if (bare) ImGui::PopStyleVar();
  if (visible) {
    draw_head_inside(c, panel);
    if (empty.empty())
      panel.draw(c);
    else
      draw_empty(c, panel, empty);
    if (!bare) card_frame(ImGui::GetCurrentWindow());
    if (panel_ring_ && ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows))
      focus_ring(ImGui::GetCurrentWindow());
  }
  ImGuiWindow* window = ImGui::GetCurrentWindow();
  if (comes && window->DockNode && window->DockNode->TabBar)
    window->DockNode->TabBar->NextSelectedTabId = window->TabId;
  ImGui::End();
  if (visible) draw_head(c, panel, window);
}

}  // namespace ui

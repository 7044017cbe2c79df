// The sheets above the panels: keys, palette, find, open, export, save, and messages.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <imgui.h>

#include "engine/base/text.h"
#include "engine/event/queue.h"
#include "engine/event/recording/training_history.h"
#include "engine/trace/export.h"
#include "ui/files/exporting.h"
#include "ui/files/files.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/search.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/run_times.h"
#include "ui/settings/layout_presets.h"
#include "ui/shell/catalog.h"
#include "ui/shell/shell.h"
#include "ui/widgets/area.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/sheet.h"

namespace ui {
namespace {

// Draws a text field. @return whether Enter was pressed
bool text_field(const char* id, const char* hint, std::string& text, bool focus) {
  if (focus) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-FLT_MIN);
  return text_line(id, hint, text,
                   ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
}

}  // namespace

void Shell::draw_overlays(Context& c) {
  if (help_) draw_help();
  if (palette_) draw_palette();
  if (find_) draw_find(c);
  if (open_dialog_) draw_open_dialog(c);
  if (export_dialog_) draw_export_dialog(c);
  if (save_dialog_) draw_save_dialog();
  if (close_dialog_) draw_close_dialog();
  if (settings_sheet_) draw_settings();
  overlay_begins_ = false;
  draw_message();
}

// Draws a row with a key and its action. After a click the next key pressed becomes the key of the action.
void Shell::key_row(const BoundKey& key) {
  ImGui::TableNextColumn();
  ImGui::PushID(key.of->name);
  const bool awaited = rebinding_ == key.of;
  const KeyAction* first = taken_by(keys_, key);
  ImGui::PushStyleColor(ImGuiCol_Text, colour(awaited || first ? theme().warn : theme().bright));
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(0, target_padding()));
  const std::string shown = awaited ? "press a key" : key.keys + (key.changed ? " (changed)" : "");
  ImGui::PushStyleVar(ImGuiStyleVar_ButtonTextAlign, ImVec2(0, 0.5f));
  const float wide = std::max(ImGui::CalcTextSize(shown.c_str()).x, px(kLeastTarget));
  if (ImGui::Button((shown + "###key").c_str(), {wide, 0})) rebinding_ = key.of;
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(2);
  if (ImGui::IsItemHovered())
    tooltip(first
                ? fmt::format(
                      "\"{}\" has the same key and takes precedence. Click to choose another key.",
                      first->does)
                : "Click, then press another key. Delete restores the default key, Esc cancels.");
  ImGui::SameLine(px(150));
  wrapped(key.of->does, theme().dim);
  ImGui::PopID();
}

void Shell::draw_help() {
  if (begin_sheet("##help", {px(1400), px(760)}, overlay_begins_)) {
    static const std::string kMouse =
        "Click a key to change it; changes are saved in settings.txt. On a timeline: the wheel "
        "zooms at the mouse, a right drag pans, a left drag measures, the ruler moves the "
        "playhead; W S A D (by position on the keyboard) zoom and pan; a double click shows "
        "details, a middle click zooms to a slice. In Mask, Ctrl and the wheel zoom.";
    heading("Keys");
    ImGui::SameLine(0, px(16));
    if (link("Tour of the screen Live###tour")) {
      requests_.tour = true;
      help_ = false;
    }
    ImGui::SameLine(right_edge() - px(60));
    if (button("Close")) help_ = false;
    if (!help_) rebinding_ = nullptr;
    ImGui::Dummy({1, px(4)});
    ImGui::BeginChild("rows", {0, -height_of(kMouse)});
    ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(6), 0));
    const int n_columns = static_cast<int>(ImGui::GetContentRegionAvail().x / px(380));
    if (ImGui::BeginTable("keys", std::clamp(n_columns, 1, 3))) {
      for (const BoundKey& key : keys_)
        if (!key.keys.empty()) key_row(key);
      ImGui::EndTable();
    }
    ImGui::PopStyleVar();
    ImGui::EndChild();
    wrapped(kMouse, theme().dim);
  }
  ImGui::End();
}

void Shell::draw_palette() {
  if (begin_sheet("##palette", {px(560), px(420)}, overlay_begins_)) {
    const bool enter = text_field("##text", "action", palette_text_, overlay_begins_);
    const std::string wanted(palette_text_.c_str());
    bool first = true;
    for (const BoundKey& key : keys_) {
      if (key.keys.empty() || !found_in(key.of->does, wanted)) continue;
      const bool chosen =
          selectable(fmt::format("{}##{}", key.of->does, key.of->name).c_str(), first) ||
          (enter && first);
      ImGui::SameLine(right_edge() - ImGui::CalcTextSize(key.keys.c_str()).x);
      words(key.keys, theme().dim);
      first = false;
      if (!chosen) continue;
      palette_ = false;
      perform(key.of->action);
      break;
    }
    // An entry without a key. @return whether it was chosen, which closes the palette
    const auto entry = [&](const std::string& does, const char* id) {
      if (!palette_ || !found_in(does.c_str(), wanted)) return false;
      const bool chosen = selectable((does + "##" + id).c_str(), first) || (enter && first);
      first = false;
      if (chosen) palette_ = false;
      return chosen;
    };
    if (entry("watch a race", "watch_race")) requests_.watch_race = true;
    if (entry("tour of the screen Live in four steps", "tour")) requests_.tour = true;
    for (const LayoutPreset& preset : layout_presets())
      if (entry(std::string("layout: ") + preset.label, preset.word)) use_layout(preset);
    for (const CatalogLesson& lesson : catalog_.lessons)
      if (entry("lesson: " + lesson.title, lesson.path.c_str()))
        requests_.open_lesson = lesson.path;
  }
  ImGui::End();
}

// Finds a step by its number, or the next token in which the text begins, and moves there.
void Shell::find(Context& c, bool backwards) {
  const engine::RunRecord* run = c.run();
  const std::string wanted(find_text_.c_str());
  if (!run || wanted.empty()) return;
  const RunTimes& times = c.times(*run);
  const auto go = [&](engine::StepId step, int position) {
    selection_.locked = {run->id(), step, position, -1};
    for (const StepSpan& s : times.steps)
      if (s.step == step) playhead_.go_to(s.compute1, c.end());
  };
  if (wanted.find_first_not_of("0123456789") == std::string::npos && wanted.size() < 9) {
    const int step = std::stoi(wanted);
    find_result_ = step < static_cast<int>(times.steps.size())
                       ? fmt::format("step {}", step)
                       : fmt::format("only {} steps", times.steps.size());
    if (step < static_cast<int>(times.steps.size())) go(step, -1);
    return;
  }
  const std::vector<std::size_t> all = tokens_with(c.timeline, *run, wanted);
  if (all.empty()) {
    find_result_ = "no token found";
    return;
  }
  // Takes the next or previous match after the selected token; after the last match it continues with the first.
  const auto position = [&](std::size_t token) { return run->tokens[token].pos; };
  const auto at = selection_.locked.position;
  auto found = backwards ? std::ranges::lower_bound(all, at, {}, position)
                         : std::ranges::upper_bound(all, at, {}, position);
  if (backwards)
    found = std::prev(found == all.begin() ? all.end() : found);
  else if (found == all.end())
    found = all.begin();
  const engine::TokenRecord& token = run->tokens[*found];
  go(token.step, token.pos);
  find_result_ =
      fmt::format("{} of {}: position {}", found - all.begin() + 1, all.size(), token.pos);
}

void Shell::draw_find(Context& c) {
  if (begin_sheet("##find", {px(420), px(92)}, overlay_begins_)) {
    if (text_field("##what", "step number or text", find_text_, overlay_begins_)) {
      find(c, ImGui::GetIO().KeyShift);
      ImGui::SetKeyboardFocusHere(-1);
    }
    words(find_result_.empty() ? "Enter: next, Shift+Enter: previous, Esc: close" : find_result_,
          theme().dim);
  }
  ImGui::End();
}

// Lists the recordings and models used last until the user types another path.
void Shell::recents_part(const std::string& typed) {
  constexpr std::size_t kMost = 4;
  if (typed != settings_.last_folder) return;
  for (const auto* paths : {&settings_.recents, &settings_.recent_models}) {
    if (paths->empty()) continue;
    small_label(paths == &settings_.recents ? "Recent recordings" : "Recent models");
    for (const std::string& path : std::span(*paths).first(std::min(paths->size(), kMost))) {
      if (!selectable((path + "##recent").c_str())) continue;
      open_dialog_ = false;
      requests_.open = path;
    }
  }
  small_label("Files");
}

void Shell::draw_open_dialog(Context& c) {
  namespace fs = std::filesystem;
  if (begin_sheet("##open", {px(680), px(480)}, overlay_begins_)) {
    heading("Open a model (.gguf or folder), a recording or a training run");
    const bool enter = text_field("##path", "path", path_, overlay_begins_);
    const std::string path(path_.c_str());
    if (button("Open###do_open", true) || enter) {
      std::error_code error;
      if (fs::is_directory(path, error)) {
        if (open_folder(path)) open_dialog_ = false;
      } else {
        open_dialog_ = false;
        open(path);
      }
    }
    ImGui::SameLine();
    if (button("Cancel###cancel_open")) open_dialog_ = false;
    ImGui::Dummy({1, px(2)});
    recents_part(path);
    for (const FileEntry& entry :
         entries_near(path, {".pdrun", ".gguf", engine::kTrainingLogName})) {
      if (!selectable((entry.shown + "##" + entry.path).c_str(), false,
                      ImGuiSelectableFlags_NoAutoClosePopups))
        continue;
      path_ = entry.path;
      if (!entry.is_folder) {
        open_dialog_ = false;
        open(entry.path);
      }
    }
  }
  ImGui::End();
  (void)c;
}

std::string Shell::suggested(const char* name) const {
  const std::string& chosen = save_folder_.empty() ? settings_.save_folder : save_folder_;
  const std::filesystem::path folder =
      chosen.empty() ? documents_folder() : std::filesystem::path(chosen);
  return (folder / name).string();
}

// Returns trace options for the steps of the selected run that overlap the measured range.
std::optional<engine::TraceOptions> Shell::trace_of_range(Context& c) {
  const auto& view = state<TimelineView>();
  const engine::RunRecord* run = c.run();
  const auto [from, to] = std::minmax(view.range.range0, view.range.range1);
  if (!run || !(to > from)) return std::nullopt;
  const RunTimes& times = c.times(*run);
  const double origin = c.wall_origin();
  engine::TraceOptions options{.run = run->id(), .first_step = -1};
  for (std::size_t i = first_ending_after(view.clock, times, from, origin);
       i < times.steps.size() && begin_on(view.clock, times, i, origin) < to; ++i) {
    if (options.first_step < 0) options.first_step = times.steps[i].step;
    options.last_step = times.steps[i].step;
  }
  if (options.first_step < 0) return std::nullopt;
  return options;
}

void Shell::export_choices(Context& c, engine::TraceOptions& options) {
  const auto range = trace_of_range(c);
  ImGui::BeginDisabled(!range);
  tick(range
           ? fmt::format("Only the measured range: run {}, steps {} to {}###range_only",
                         *range->run, range->first_step, range->last_step)
                 .c_str()
           : "Only the measured range (drag over the timeline or press R to set one)###range_only",
       export_range_only_);
  ImGui::EndDisabled();
  if (range && export_range_only_) options = *range;
  tick("Include the text of the prompt###prompt_text", export_prompt_text_);
  options.prompt_text = export_prompt_text_;
  tick(
      "CSV tables: put ' before texts that a spreadsheet would take for "
      "formulas###for_spreadsheets",
      export_for_spreadsheets_);
  tick("Traces: own compute instead of wall time, without waits###equal_compute",
       export_own_compute_);
  options.own_compute = export_own_compute_;
  tick(
      "Web page: no size limit (otherwise a page above 5 MB omits proposals, then "
      "runs)###any_page_size",
      export_any_page_size_);
  wrapped(
      export_prompt_text_
          ? "A trace, a web page or a report contains the full prompt; everyone who gets the file "
            "can read it."
          : "A trace contains only a hash of the prompt, a web page or a report leaves it out; all "
            "contain the answer.",
      theme().dim);
}

// Draws a button for each format.
void Shell::export_buttons(Context& c, const engine::TraceOptions& options) {
  const std::string path(export_path_.c_str());
  const bool any = !c.timeline.runs().empty(), starts = any && !exports();
  std::filesystem::path stem(path);
  if (stem.extension() == ".gz") stem.replace_extension();
  const auto with = [&](const char* ending) {
    return std::filesystem::path(stem).replace_extension(ending).string();
  };
  const auto next = [](const char* label, bool enabled, const char* why) {
    continue_row(label);
    return button(label, false, enabled, why);
  };
  const bool is_perfetto = engine::trace_format_of(path) == engine::TraceFormat::Perfetto;
  if (button("Chrome trace###do_trace", true, starts,
             "opens in Perfetto, chrome://tracing and Tracy"))
    export_trace(is_perfetto ? with(".json") : path, options);
  if (next("Perfetto trace###do_perfetto", starts,
           "Perfetto's own format: a smaller file; the slices of one step share a correlation id"))
    export_trace(is_perfetto ? path : with(".pftrace"), options);
  if (next("CSV tables###do_csv", any, "steps and tokens; the header row gives units"))
    export_said_ = export_tables(c.timeline, path, export_for_spreadsheets_);
  if (next("Web page###do_page", starts, "one file that plays the recording in a browser"))
    export_page(with(".html"), options.prompt_text, export_any_page_size_);
  if (next("Report###do_report", starts, "Markdown: settings, results and text of every run"))
    export_report(with(".md"), options.prompt_text);
  if (next("Description###do_description", starts,
           "plain text: every step in words, for screen readers"))
    export_description(with(".txt"));
  if (next("Close###cancel_export", true, "")) export_dialog_ = false;
}

void Shell::draw_export_dialog(Context& c) {
  if (begin_sheet("##export", {px(780), px(500)}, overlay_begins_)) {
    heading("Export");
    if (overlay_begins_) {
      // The user has to choose these each time.
      export_prompt_text_ = export_range_only_ = export_any_page_size_ = false;
      export_said_.clear();
      if (export_path_.empty()) export_path_ = suggested("trace.json");
    }
    text_field("##path", "trace.json, picture.png, or a name for the tables", export_path_,
               overlay_begins_);
    engine::TraceOptions options;
    export_choices(c, options);
    export_buttons(c, options);
    picture_row();
    animation_row(c);
    if (c.timeline.n_events() > engine::TraceOptions{}.warn_above / 2 && !options.run)
      wrapped(fmt::format("{} events are recorded; trace viewers fail above about {}. A measured "
                          "range keeps the trace small.",
                          with_commas(c.timeline.n_events()),
                          with_commas(engine::TraceOptions{}.warn_above)),
              theme().warn);
    if (exports()) {
      share_bar(static_cast<float>(exporting_->fraction()), {px(180), px(5)}, handle_on(theme()));
      ImGui::SameLine();
      if (link("Cancel###give_up")) exporting_->give_up();
    }
    wrapped(export_said_.empty() ? "Existing files are not replaced." : export_said_,
            export_said_.empty() ? theme().dim : theme().bright);
  }
  ImGui::End();
}

void Shell::draw_save_dialog() {
  if (begin_sheet("##save", {px(640), px(150)}, overlay_begins_)) {
    heading("Save as a recording");
    const bool enter = text_field("##path", "a name ending in .pdrun", save_path_, overlay_begins_);
    const std::string path(save_path_.c_str());
    if ((button("Save###do_save", true, !path.empty(), "Enter") || enter) && !path.empty())
      save(path);
    ImGui::SameLine();
    if (button("Cancel###cancel_save")) save_dialog_ = false;
    wrapped(
        "The recording contains everything, including the prompt. Existing files are not replaced.",
        theme().dim);
  }
  ImGui::End();
}

// Asks before the window closes with runs that are not saved.
void Shell::draw_close_dialog() {
  if (begin_sheet("##close", {px(560), px(124)}, overlay_begins_)) {
    heading("Save the session before closing?");
    const bool going = is_going(session_.live().timeline);
    wrapped(fmt::format("{} of this session {} not saved.{}",
                        engine::counted(std::ssize(unsaved_), "run"),
                        unsaved_.size() == 1 ? "is" : "are",
                        going ? " A run is decoding; closing stops it." : ""),
            theme().text);
    ImGui::Dummy({1, px(4)});
    if (overlay_begins_) ImGui::SetKeyboardFocusHere();
    const bool busy = exports() || saves() || reads();
    if (button("Save and close###save_close", true, !busy,
               busy ? "a file is being read or written"
                    : ("as " + suggested("session.pdrun")).c_str())) {
      close_dialog_ = false;
      stops_since_ = clock_;
      commands_.push(engine::StopRun{});
    }
    ImGui::SameLine();
    if (button("Discard###discard_close", false, true, "close without saving")) {
      unsaved_.clear();
      wants_to_close_ = true;
    }
    ImGui::SameLine();
    if (button("Cancel###cancel_close", false, true, "keep the window open (Esc)"))
      close_dialog_ = false;
  }
  ImGui::End();
}

void Shell::draw_message() {
  if (message_.empty() || clock_ >= message_until_) return;
  const Area area = frame_area();
  const float wide = std::min(px(720), area.wide() - px(40));
  ImGui::SetNextWindowPos({area.min.x + area.wide() / 2, area.max.y - px(44)}, 0, {0.5f, 1});
  ImGui::SetNextWindowSizeConstraints({px(100), 0}, {wide, px(300)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colour(theme().faint));
  ImGui::Begin("##message", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoDocking |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing |
                   ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoNav);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PushTextWrapPos(wide - px(30));
  words(message_, theme().bright);
  ImGui::PopTextWrapPos();
  ImGui::End();
}

}  // namespace ui

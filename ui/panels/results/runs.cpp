#include "ui/panels/results/runs.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/describe.h"
#include "ui/files/notes.h"
#include "ui/files/settings.h"
#include "ui/prepare/failure_words.h"
#include "ui/prepare/figure.h"
#include "ui/prepare/option_labels.h"
#include "ui/prepare/recorded_setup.h"
#include "ui/prepare/search_part.h"
#include "ui/prepare/status.h"
#include "ui/prepare/use_again.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

constexpr std::size_t kMaxCompared = 4;
constexpr const char* kNoteMark = "note";  // in the row of a run that has a note

RunsView& view_of(Context& context) {
  return context.states.get<RunsView>();
}

std::string result_of(const engine::RunRecord& run) {
  if (run.failed) return "failed";
  const double speed = run.tokens_per_second();
  const std::string tokens = speed > 0 ? short_number(speed) + " tok/s" : "-";
  if (!run.finished) return "live " + tokens;
  return run.was_stopped() ? "stopped " + tokens : tokens;
}

// Returns the hash of the weights; it tells apart two models with the same name.
std::string weights_of(const Context& context, const engine::RunRecord& run) {
  const engine::ModelLoaded* model = context.timeline.model(run.started.model);
  if (!model) return "";
  return "weights " + (model->weights_hash.empty() ? "without a hash" : model->weights_hash);
}

std::string draft_of(const Context& context, const engine::RunRecord& run) {
  const engine::ModelLoaded* draft = context.timeline.model(run.started.draft);
  if (!draft) return "";
  return fmt::format("draft model {}, weights {}", draft->name,
                     draft->weights_hash.empty() ? "without a hash" : draft->weights_hash);
}

// Returns the run's name in the list. For a run of a search, the part of the search that the run writes follows.
std::string row_name(const Context& context, const engine::RunRecord& run) {
  std::string part = part_of_search(context.timeline.searches(), run.started);
  if (run.started.race == 0 && run.started.place.n_repeats > 1) part = set_words(run.started.place);
  const std::string name = context.name_of(run);
  return part.empty() || context.given_name(run) ? name : name + " \xC2\xB7 " + part;
}

std::string facts_of(const Context& context, const engine::RunRecord& run) {
  const engine::RunStarted& s = run.started;
  const std::string* given = context.given_name(run);
  std::string text = given ? *given + "\n" : "";
  text += fmt::format("run {}: {}", run.id(), short_name(s.decoder));
  if (const engine::ModelLoaded* m = context.timeline.model(s.model))
    text += fmt::format(" on {} at {}, {}, {}\n{}", m->name, m->scale, m->dtype, m->device,
                        weights_of(context, run));
  if (const std::string draft = draft_of(context, run); !draft.empty()) text += "\n" + draft;
  const std::string part = part_of_search(context.timeline.searches(), s);
  if (!s.prompt_id.empty())
    text += fmt::format("\nprompt {}{}", s.prompt_id, part.empty() ? "" : " (" + part + ")");
  text += fmt::format("\nseed {}, temperature {}, at most {} tokens", s.seed, s.temperature,
                      s.max_tokens);
  for (const auto& [name, value] : s.options)
    text += fmt::format("\n{} = {}", label_with_name(s.decoder, name),
                        value_words(context.catalog, s.decoder, name, value));
  if (run.finished)
    text += fmt::format("\n{} tokens in {} steps, ended by {}", run.finished->n_tokens,
                        run.finished->n_steps, engine::ended_by(*run.finished));
  if (run.failed) text += "\n" + for_window(run.failed->message);
  if (const std::string* note = context.note_of(run)) text += "\nnote: " + *note;
  return text;
}

std::string why_no_runs(const Context& context) {
  return context.timeline.runs().empty() && context.source.empty() &&
                 context.settings.recents.empty()
             ? "Runs of this session and opened recordings are listed here."
             : "";
}

void begin_to_rename(Context& context, const engine::RunRecord& run) {
  RunsView& view = view_of(context);
  view.renaming = run.id();
  view.renaming_begins = true;
  view.new_name = context.name_of(run);
}

// Draws a text field instead of the row. Enter or a click elsewhere sets the name, Esc keeps the old one.
void name_field(Context& context, const engine::RunRecord& run) {
  RunsView& view = view_of(context);
  if (view.renaming_begins) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-FLT_MIN);
  text_line("##name", "a name for this run", view.new_name, ImGuiInputTextFlags_AutoSelectAll);
  const bool begins = std::exchange(view.renaming_begins, false);
  if (begins || !ImGui::IsItemDeactivated()) return;
  const std::string name(view.new_name.c_str());
  if (name.empty() || name == name_of(run))
    context.notes.run_names.erase(run.id());
  else if (ImGui::IsItemDeactivatedAfterEdit())
    context.notes.run_names[run.id()] = name;
  view.renaming = 0;
}

void begin_to_note(Context& context, const engine::RunRecord& run) {
  RunsView& view = view_of(context);
  const std::string* note = context.note_of(run);
  view.noting = run.id();
  view.noting_begins = true;
  view.new_note = note ? *note : "";
}

// Draws a field for the note below the row. Only "Save" changes the note; an empty one is removed.
void note_field(Context& context, const engine::RunRecord& run) {
  RunsView& view = view_of(context);
  if (std::exchange(view.noting_begins, false)) ImGui::SetKeyboardFocusHere();
  text_area("##note", view.new_note, {-FLT_MIN, px(86)});
  const std::string typed(view.new_note.c_str());
  const bool fits = typed.size() <= kMaxRunNote;
  if (button("Save###save_note", true, fits, fits ? "" : "shorten the note")) {
    const std::string note = as_run_note(typed);
    if (note.empty())
      context.notes.run_notes.erase(run.id());
    else
      context.notes.run_notes[run.id()] = note;
    view.noting = 0;
  }
  ImGui::SameLine();
  if (button("Cancel###cancel_note")) view.noting = 0;
  ImGui::SameLine();
  words_within(fmt::format("{} of {} bytes", with_commas(std::ssize(typed)),
                           with_commas(static_cast<std::int64_t>(kMaxRunNote))),
               fits ? theme().dim : theme().warn, ImGui::GetContentRegionAvail().x);
}

// Marks a run for comparison, or removes the mark; the first mark also marks the run shown.
void mark_to_compare(Context& context, engine::RunId run) {
  std::vector<engine::RunId>& marked = view_of(context).marked;
  if (std::erase(marked, run) > 0) return;
  const engine::RunId shown = context.selection.run;
  if (marked.empty() && shown != 0 && shown != run) marked.push_back(shown);
  if (marked.size() == kMaxCompared) {
    context.requests.say = fmt::format("At most {} runs can be compared.", kMaxCompared);
    return;
  }
  marked.push_back(run);
}

void show_run(Context& context, const engine::RunRecord& run) {
  Selection& selection = context.selection;
  selection.run = run.id();
  const auto& compared = selection.compared;
  const bool is_there = std::find(compared.begin(), compared.end(), run.id()) != compared.end();
  if (run.started.race && !is_there) {
    selection.race = run.started.race;
    selection.compared.clear();
  }
  view_of(context).marked.clear();
  context.show_whole_timeline();
}

void run_menu(Context& context, const engine::RunRecord& run) {
  if (!ImGui::BeginPopupContextItem("menu")) return;
  if (menu_item("Use these settings again"))
    use_again(context.form, context.catalog, context.timeline, run);
  if (has_recorded_sizes(context.timeline, run) && menu_item("Repeat with the recorded sizes")) {
    use_with_sizes(context.form, context.catalog, context.timeline, run);
    (run.started.race ? context.requests.race : context.requests.run) = true;
  }
  if (menu_item("Rename")) begin_to_rename(context, run);
  if (menu_item(context.note_of(run) ? "Edit the note###note" : "Add a note###note"))
    begin_to_note(context, run);
  const auto& marked = view_of(context).marked;
  const bool is_marked = std::find(marked.begin(), marked.end(), run.id()) != marked.end();
  if (menu_item("Compare", "Ctrl+click", is_marked)) mark_to_compare(context, run.id());
  if (menu_item("Copy description")) context.requests.copy = facts_of(context, run);
  ImGui::EndPopup();
}

// Draws the settings of a lane that differ from those of the other lanes, up to `end`.
void settings_beside(const Context& context, const engine::RunRecord& run, float end) {
  if (run.started.race == 0 || !ImGui::IsItemVisible()) return;
  const std::string differs = differing_settings(context.timeline, context.catalog, run,
                                                 context.timeline.race(run.started.race));
  ImGui::SameLine(0, px(8));
  const float room = end - ImGui::GetCursorPosX();
  if (differs.empty() || room < px(30)) return;
  words(elided(differs, room), theme().dim);
}

// Draws the result at the end of the row, and before it a mark if the run has a note.
// @param left, end  the ends of the mark and of the result, relative to the window
void row_end(const engine::RunRecord& run, float left, float end) {
  if (left < end) {
    ImGui::SameLine(left);
    words(kNoteMark, theme().dim);
  }
  ImGui::SameLine(end);
  ImGui::PushFont(fonts().bold, kTextSize);
  words(result_of(run), run.failed ? theme().bad : theme().bright);
  ImGui::PopFont();
}

void run_row(Context& context, const engine::RunRecord& run) {
  ImGui::PushID(static_cast<int>(run.id()));
  if (view_of(context).renaming == run.id()) {
    name_field(context, run);
    ImGui::PopID();
    return;
  }
  const bool chosen = context.selection.run == run.id();
  const auto& marked = view_of(context).marked;
  const auto mark = std::find(marked.begin(), marked.end(), run.id());
  const ImVec2 at = ImGui::GetCursorPos();
  if (selectable("##run", chosen || mark != marked.end(), ImGuiSelectableFlags_AllowOverlap,
                 {0, px(22)})) {
    if (ImGui::GetIO().KeyCtrl)
      mark_to_compare(context, run.id());
    else
      show_run(context, run);
  }
  if (ImGui::IsItemHovered()) tooltip(facts_of(context, run));
  const std::string name = ImGui::IsItemVisible() ? row_name(context, run) : "";
  run_menu(context, run);
  ImGui::SetCursorPos({at.x + px(4), at.y + px(2)});
  const std::string place =
      mark == marked.end() ? ""
                           : fmt::format("[{}] ", static_cast<char>('A' + (mark - marked.begin())));
  ImGui::PushFont(fonts().bold, kTextSize);
  const float end = right_edge() - ImGui::CalcTextSize(result_of(run).c_str()).x;
  ImGui::PopFont();
  const float left = context.note_of(run) ? end - ImGui::CalcTextSize(kNoteMark).x - px(8) : end;
  // The tooltip of the row has the whole name and the note.
  words(elided(place + name, left - px(12) - ImGui::GetCursorPosX()),
        chosen ? theme().bright : theme().text);
  settings_beside(context, run, left - px(12));
  row_end(run, left, end);
  if (view_of(context).noting == run.id()) note_field(context, run);
  if (chosen && !context.compare) {
    ImGui::Indent(px(4));
    ImGui::PushFont(nullptr, kSmallSize);
    words_within(weights_of(context, run), theme().dim, ImGui::GetContentRegionAvail().x);
    if (const std::string draft = draft_of(context, run); !draft.empty())
      words_within(draft, theme().dim, ImGui::GetContentRegionAvail().x);
    ImGui::PopFont();
    ImGui::Unindent(px(4));
  }
  ImGui::PopID();
}

// Lists the recordings opened before, newest first, without the one that is shown.
void recordings_on_disk(Context& context) {
  const auto& recents = context.settings.recents;
  const auto is_shown = [&](const std::string& path) { return path == context.source; };
  if (std::ranges::all_of(recents, is_shown)) return;
  ImGui::Dummy({1, px(2)});
  small_label("recordings on disk");
  for (const std::string& path : recents) {
    if (is_shown(path)) continue;
    const std::string name = std::filesystem::path(path).filename().string();
    ImGui::PushID(path.c_str());
    const std::string label = elided(name, ImGui::GetContentRegionAvail().x) + "###recording";
    if (selectable(label.c_str())) context.requests.open = path;
    if (ImGui::IsItemHovered()) tooltip("Click: open " + path);
    ImGui::PopID();
  }
}

// Draws a heading that can be folded. @return true if it is open
bool heading(Context& context, std::span<const RunEntry> entries, std::size_t index) {
  const RunEntry& entry = entries[index];
  const bool opens = entry.kind != RunEntry::Kind::Repeat && (entry.depth == 0);
  ImGui::SetNextItemOpen(opens, ImGuiCond_Once);
  const std::string text = heading_of(context.timeline, entries, index);
  const engine::RunRecord* selected = context.run();
  const bool has_selected =
      selected && std::ranges::any_of(below(entries, index), [&](const RunEntry& one) {
        return one.kind == RunEntry::Kind::Run && one.run == selected->id();
      });
  ImGui::PushStyleColor(ImGuiCol_Text, colour(has_selected ? theme().bright : theme().text));
  const float room = ImGui::GetContentRegionAvail().x - ImGui::GetTreeNodeToLabelSpacing();
  const std::string label =
      fmt::format("{}###heading{}_{}", elided(text, room), static_cast<int>(entry.kind), entry.run);
  ImGui::PushStyleVarY(ImGuiStyleVar_FramePadding, target_padding());
  const bool is_open = ImGui::TreeNodeEx(label.c_str(), ImGuiTreeNodeFlags_NoTreePushOnOpen |
                                                            ImGuiTreeNodeFlags_SpanAvailWidth |
                                                            ImGuiTreeNodeFlags_FramePadding);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  if (!ImGui::IsItemHovered()) return is_open;
  const engine::RunRecord* first = context.timeline.run(entry.run);
  std::string whole =
      fmt::format("{}: {}", text, engine::counted(static_cast<std::int64_t>(entry.n_runs), "run"));
  if (first && entry.kind == RunEntry::Kind::Race) whole += "\n" + first->started.prompt;
  tooltip(whole);
  return is_open;
}

// Draws the runs; lanes that were started together are below one heading.
void draw_entries(Context& context) {
  RunsView& view = view_of(context);
  const auto runs = context.timeline.runs();
  if (view.n_runs != runs.size()) view.entries = run_entries(runs), view.n_runs = runs.size();
  for (std::size_t i = 0; i < view.entries.size();) {
    const RunEntry entry = view.entries[i];
    const float indent = px(10) * static_cast<float>(entry.depth);
    if (indent > 0) ImGui::Indent(indent);
    if (entry.kind == RunEntry::Kind::Run) {
      run_row(context, *context.timeline.run(entry.run));
      ++i;
    } else {
      i = heading(context, view.entries, i) ? i + 1 : entry.end;
    }
    if (indent > 0) ImGui::Unindent(indent);
  }
}

void draw_runs(Context& context) {
  if (!context.source.empty()) {
    ImGui::AlignTextToFramePadding();
    words(elided(std::filesystem::path(context.source).filename().string(),
                 ImGui::GetContentRegionAvail().x),
          theme().text);
    if (ImGui::IsItemHovered()) tooltip("opened recording: " + context.source);
    if (link("Back to this session")) context.requests.show_live_session = true;
    ImGui::Dummy({1, px(2)});
  }
  draw_entries(context);
  recordings_on_disk(context);
}

void draw_runs_head(Context& context) {
  const std::vector<engine::RunId>& marked = view_of(context).marked;
  if (!marked.empty()) {
    if (button("Compare###compare", true, marked.size() >= 2,
               "compare the marked runs; Ctrl+click marks another")) {
      context.selection.compared = marked;
      view_of(context).marked.clear();
      context.requests.screen = "compare";
    }
    ImGui::SameLine();
  }
  if (button("Open...")) context.requests.open = "";
}

}  // namespace

const Panel kRunsPanel{.id = "runs",
                       .title = "Runs",
                       .empty = why_no_runs,
                       .draw = draw_runs,
                       .head = draw_runs_head,
                       .sketch = Sketch::Lines,
                       .live = Dock::LeftFoot,
                       .compare = Dock::LeftFoot};

}  // namespace ui

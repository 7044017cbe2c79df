// Saves recordings and the notes beside them, and exports traces, reports and descriptions.
#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "engine/event/recording/training_history.h"
#include "engine/trace/export.h"
#include "engine/trace/page/html.h"
#include "engine/trace/page/report.h"
#include "ui/files/exporting.h"
#include "ui/files/files.h"
#include "ui/files/opening.h"
#include "ui/files/saving.h"
#include "ui/panels/live/text_view.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/settings/layout_presets.h"
#include "ui/settings/recorded_layout.h"
#include "ui/shell/shell.h"
#include "ui/widgets/draw.h"

namespace ui {
void Shell::save(const std::string& path) {
  if (saving_) return say("A recording is being saved; Esc cancels it.");
  namespace fs = std::filesystem;
  try {
    const fs::path wanted = fs::absolute(path);
    std::error_code ignored;  // a failure is reported when the file is created
    fs::create_directories(wanted.parent_path(), ignored);
    saving_ = session_.save(wanted.string());
    saving_notes_ = notes_to_save();
    saving_notes_.view = view_to_save();
    saving_since_ = clock_;
    save_dialog_ = false;
  } catch (const std::exception& error) {
    exits_when_saved_ = false;
    say(error.what());
  }
}

void Shell::save_on() {
  if (saving_ && saving_->ended()) end_saving();
}

void Shell::end_saving() {
  const std::unique_ptr<Saving> done = std::move(saving_);
  try {
    const std::filesystem::path taken = done->result();
    save_folder_ = taken.parent_path().string();
    remember_recent(settings_.recents, taken.string());
    adopt_saved(*done, taken.string());
    const std::string trouble = save_notes(saving_notes_, taken.string());
    if (exits_when_saved_) {
      saved_path_ = taken.string();
      closes_at_ = clock_ + kCloseAfterSeconds;
    }
    const std::string saved =
        fmt::format("Saved {} in {}", taken.filename().string(), save_folder_);
    say(trouble.empty() ? saved : saved + "; " + trouble);
  } catch (const std::exception& error) {
    exits_when_saved_ = false;
    // If the name cannot be used, asks for another one, unless the user cancelled the save.
    const auto* known = dynamic_cast<const engine::Error*>(&error);
    const bool given_up = known && known->code() == engine::ErrorCode::Cancelled;
    if (save_folder_.empty() && !given_up) save_dialog_ = overlay_begins_ = true;
    say(error.what());
  }
  if (!exporting_) receive(std::exchange(held_back_, {}));
}

// Records that a file of the user now has the live session, or the restored one, whose autosaved file is then removed.
void Shell::adopt_saved(const Saving& saved, const std::string& path) {
  if (saved.reads_timeline()) {
    unsaved_.clear();
    live_saved_as_ = path;
    live_notes_saved_ = saving_notes_;
  } else if (restored_ && saved.source() == restored_->path) {
    if (Document& shown = session_.shown(); shown.source == restored_->path) {
      shown.source = notes_source_ = path;
      notes_kept_ = saving_notes_;
    }
    remove_session(*std::exchange(restored_, std::nullopt));
  }
}

float Shell::draw_saving_bar(float top) {
  if (!saving_ || clock_ - saving_since_ < kBarAfterSeconds) return top;
  const std::string name = std::filesystem::path(saving_->path()).filename().string();
  if (work_bar("##saving", top, "Saving " + name, saving_->fraction(), "", "Cancel###cancel_saving",
               "cancel and leave no file (Esc)"))
    saving_->give_up();
  return top + px(kWorkBar);
}

// Starts to write a file of the document shown on another thread.
void Shell::begin_export(const std::string& path, Export write) {
  if (reads()) return say("The recording is still being read. Export it when it is complete.");
  if (export_waits()) return;
  exporting_ = std::make_unique<Exporting>(
      path, [&timeline = session_.shown().timeline, write = std::move(write)](
                const ExportProgress& progress) { return write(timeline, progress); });
  exporting_since_ = clock_;
  export_said_.clear();
}

void Shell::export_trace(const std::string& path, const engine::TraceOptions& options) {
  begin_export(path, [=](const engine::Timeline& timeline, const ExportProgress& progress) {
    engine::TraceOptions reporting = options;
    reporting.progress = progress;
    return ui::export_trace(timeline, path, reporting);
  });
}

void Shell::export_report(const std::string& path, bool prompt_text) {
  const engine::ReportOptions options{.prompt_text = prompt_text, .notes = notes_.run_notes};
  begin_export(path, [=](const engine::Timeline& timeline, const ExportProgress& progress) {
    return ui::export_report(timeline, path, options, progress);
  });
}

void Shell::export_page(const std::string& path, bool prompt_text, bool of_any_size) {
  const engine::HtmlOptions options{
      .max_bytes = of_any_size ? 0 : engine::kMaxPageBytes,
      .prompt_text = prompt_text,
      .to_get_all = "the box \"Web page: no size limit\" keeps all of it"};
  begin_export(path, [=](const engine::Timeline& timeline, const ExportProgress& progress) {
    return ui::export_page(timeline, path, options, progress);
  });
}

void Shell::export_description(const std::string& path) {
  begin_export(path, [=](const engine::Timeline& timeline, const ExportProgress& progress) {
    return ui::export_description(timeline, path, progress);
  });
}

void Shell::export_on() {
  if (exporting_ && exporting_->ended()) end_exporting();
}

void Shell::end_exporting() {
  const std::unique_ptr<Exporting> done = std::move(exporting_);
  export_said_ = done->result();
  say(export_said_);
  if (!(saving_ && saving_->reads_timeline())) receive(std::exchange(held_back_, {}));
}

float Shell::draw_exporting_bar(float top) {
  if (!exporting_ || clock_ - exporting_since_ < kBarAfterSeconds) return top;
  const std::string name = std::filesystem::path(exporting_->path()).filename().string();
  const bool reads_again = exporting_->fraction() >= 1;
  if (work_bar("##exporting", top, "Exporting " + name, exporting_->fraction(),
               reads_again ? "checking the file" : "", "Cancel###cancel_exporting",
               "cancel and leave no file (Esc)"))
    exporting_->give_up();
  return top + px(kWorkBar);
}

Notes Shell::notes_to_save() const {
  Notes all = notes_;
  std::erase_if(all.bookmarks, [](const Bookmark& b) { return b.kind == Bookmark::Kind::Passing; });
  return all;
}

// Returns the lens and the layout, if the user has chosen one, and the measured ranges of runs and races.
NotedView Shell::view_to_save() {
  NotedView view{.ranges = ranges_to_restore_};
  const Lens lens = state<TextView>().lens;
  if (lens != Lens::TokenStatus || notes_kept_.view.lens) view.lens = lens;
  const NotedView& kept = notes_kept_.view;
  view.layout = preset_named(settings_.layout).word;
  const bool has_other_panels = layout_change_ == LayoutChange::Preset && !kept.panels.empty();
  if (layout_change_ == LayoutChange::Moved) {
    view.panels = recorded_layout(layout_shown());
  } else if (view.layout == layout_at_begin_ && !has_other_panels) {
    view.layout = kept.layout;
    view.panels = kept.panels;
  }
  const TimelineView& timeline = state<TimelineView>();
  const auto measured = timeline.measured();
  if (!measured.empty()) view.ranges.clear();
  for (const auto& [owner, ends] : measured)
    if (owner.compared.empty())
      view.ranges.push_back({owner.run, owner.race, timeline.clock, ends.first, ends.second});
  return view;
}

// Saves the notes beside their recording: at the end, and before another document is shown, while the panels still have the view. Lens and
// ranges without notes make no file.
void Shell::keep_notes() {
  Notes now = notes_to_save();
  const bool has_own_notes = !now.empty() || !notes_kept_.empty();
  now.view = view_to_save();
  const bool has_notes = has_own_notes || !now.view.layout.empty();
  if (notes_source_.empty()) {
    if (!live_saved_as_.empty() && now != live_notes_saved_) {
      if (const std::string trouble = save_notes(now, live_saved_as_); !trouble.empty())
        say(trouble);
      live_notes_saved_ = now;
    }
    live_notes_ = std::move(now);
  } else if (has_notes && now != notes_kept_) {
    if (const std::string trouble = save_notes(now, notes_source_); !trouble.empty()) say(trouble);
    notes_kept_ = std::move(now);
  }
}

void Shell::adopt_notes() {
  notes_source_ = session_.shown().source;
  std::string why;
  notes_ = notes_source_.empty() ? live_notes_ : load_notes(notes_source_, why);
  if (!why.empty())
    say(fmt::format("{}: cannot be read, renamed: {}", notes_path(notes_source_), why));
  notes_kept_ = notes_;
  state<TextView>().lens = notes_.view.lens.value_or(Lens::TokenStatus);
  ranges_to_restore_ = notes_source_.empty() ? std::vector<MeasuredRange>{} : notes_.view.ranges;
  notes_.view = {};
  history_.forget();
  adopt_layout();
}

// Arranges the panels as the notes of the document say, until another document is shown or the user chooses another layout. Then the user's
// own layout returns.
void Shell::adopt_layout() {
  if (shows_layout_of_document()) {
    settings_.layout = own_layout_->preset;
    layout_to_load_ = own_layout_->panels;
  }
  own_layout_.reset();
  layout_is_of_document_ = false;
  layout_change_ = LayoutChange::None;
  layout_pressed_.clear();  // that of another document
  preset_pressed_ = false;
  layout_at_begin_ = preset_named(settings_.layout).word;
  const NotedView& wanted = notes_kept_.view;
  const LayoutPreset& preset = preset_named(wanted.layout);
  const bool is_other_preset = wanted.layout == preset.word && wanted.layout != layout_at_begin_;
  std::string notice;
  bool has_panels = !wanted.panels.empty();
  if (has_panels) {
    notice = why_not_layout(wanted.panels);
    has_panels = notice.empty();
    if (!has_panels) notice = fmt::format("The saved places of panels cannot be used: {}.", notice);
  }
  const bool is_other =
      has_panels && !is_same_layout(wanted.panels, recorded_layout(layout_shown()));
  if (!is_other_preset && !is_other) {
    if (!notice.empty()) say(notice);
    return;
  }
  own_layout_ = {settings_.layout, layout_shown()};
  history_.take({to_text(chosen_part(settings_)), notes_to_save(), own_layout_->panels});
  watch_layout();
  layout_pressed_ = own_layout_->panels;
  if (is_other_preset) settings_.layout = layout_at_begin_ = wanted.layout;
  layout_to_load_ = has_panels ? wanted.panels : "";
  preset_changed_ = !has_panels;
  preset_pressed_ = layout_is_of_document_ = true;
  if (notes_source_.empty()) return;  // the user chose it in this session
  const auto undo =
      std::ranges::find(keys_, Action::Undo, [](const BoundKey& key) { return key.of->action; });
  const std::string what =
      has_panels ? "These places of panels were" : fmt::format("The layout {} was", preset.label);
  if (!notice.empty()) notice += " ";
  say(fmt::format("{}{} saved with this recording. {} undoes it.", notice, what, undo->keys));
}

std::string Shell::layout_to_save() const {
  return shows_layout_of_document() ? own_layout_->panels : layout_shown();
}

// Returns layout_text() of what the next frame shows.
std::string Shell::layout_shown() const {
  return layout_to_load_.empty() ? layout_text() : layout_to_load_;
}

// Restores the measured ranges when the recording has been read; those that the user has measured meanwhile stay.
void Shell::restore_ranges() {
  const std::vector<MeasuredRange> ranges = std::exchange(ranges_to_restore_, {});
  TimelineView& view = state<TimelineView>();
  if (ranges.empty()) return;
  if (view.measured().empty() && view.clock != ranges[0].clock) view.choose_clock(ranges[0].clock);
  for (const MeasuredRange& range : ranges) {
    if (range.clock != view.clock) continue;
    const bool has_owner = range.run != 0 || range.race != 0;
    view.restore(has_owner ? RangeOwner{.run = range.run, .race = range.race} : view.owner(),
                 range.from, range.to);
  }
}

}  // namespace ui

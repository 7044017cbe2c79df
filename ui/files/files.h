// Files a person asks for from the window.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/export.h"

namespace ui {

struct FileEntry {
  std::string path, shown;
  bool is_folder = false;  // else a file of the kind asked for
};

/// Folders, files whose name ends so and the way up, beside what has been typed so far;
/// at most 200.
/// @param or_ending  files whose name ends so as well; empty: none
std::vector<FileEntry> entries_near(const std::string& typed,
                                    std::string_view ending = ".pdrun",
                                    std::string_view or_ending = "");

/// Where recordings and exports go until a person says otherwise: the documents folder of
/// user-dirs.dirs if it is there, else $XDG_DATA_HOME/decoscope, else $HOME/.local/share/decoscope;
/// empty if there is no home. Not made here.
std::filesystem::path documents_folder();

/// Writes a Chrome trace (.json, or .json.gz by its name) and checks it. Never over another file:
/// a name that is taken gets a number.
/// The prompt's text is in it only if `options` says so: what a person ticked.
/// @return for the person: what was written, the counts found on reading it again and what to know
/// of them; or why nothing was written
std::string export_trace(const engine::Timeline& timeline,
                         const std::string& path,
                         engine::TraceOptions options = {});
/// Writes steps and tokens as CSV beside `path`: NAME-steps.csv, NAME-tokens.csv.
std::string export_tables(const engine::Timeline& timeline, const std::string& path);

}  // namespace ui

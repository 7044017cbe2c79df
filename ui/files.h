// Files a person asks for from the window.
#pragma once

#include <string>
#include <vector>

#include "engine/event/timeline.h"

namespace ui {

struct FileEntry {
  std::string path, shown;
  bool is_folder = false, is_recording = false;
};

/// Folders, recordings and the way up, beside what has been typed so far; at most 200.
std::vector<FileEntry> entries_near(const std::string& typed);

/// Writes a Chrome trace (.json, or .json.gz by its name) and checks it. Never over another file.
/// @return one sentence for the person: what was written, or why not
std::string export_trace(const engine::Timeline& timeline, const std::string& path);
/// Writes steps and tokens as CSV beside `path`: NAME-steps.csv, NAME-tokens.csv.
std::string export_tables(const engine::Timeline& timeline, const std::string& path);

}  // namespace ui

#include "ui/files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/event/csv.h"
#include "engine/event/trace_export.h"

namespace ui {

namespace fs = std::filesystem;

std::vector<FileEntry> entries_near(const std::string& typed) {
  std::error_code error;
  fs::path folder = typed.empty() ? fs::current_path(error) : fs::path(typed);
  if (!fs::is_directory(folder, error)) folder = folder.parent_path();
  if (folder.empty()) folder = ".";
  std::vector<FileEntry> entries;
  for (fs::directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
       it != end && !error && entries.size() < 5000; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code ignored;
    FileEntry entry{it->path().string(), name, it->is_directory(ignored),
                    it->path().extension() == ".pdrun"};
    if (!entry.is_folder && !entry.is_recording) continue;
    if (entry.is_folder) entry.shown += "/";
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const FileEntry& a, const FileEntry& b) {
    return std::pair(a.is_folder, a.shown) < std::pair(b.is_folder, b.shown);
  });
  if (entries.size() > 200) entries.resize(200);
  const fs::path up = fs::absolute(folder, error).lexically_normal().parent_path();
  if (!error) entries.insert(entries.begin(), {up.string(), "../", true, false});
  return entries;
}

std::string export_trace(const engine::Timeline& timeline, const std::string& path) {
  try {
    const engine::TraceReport report =
        engine::export_trace(timeline, path, engine::TraceOptions{.prompt_text = true});
    return "Wrote " + path + ": " + report.summary();
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string export_tables(const engine::Timeline& timeline, const std::string& path) {
  const fs::path base = fs::path(path).replace_extension();
  const std::pair<const char*, std::string> tables[] = {
      {"-steps.csv", engine::steps_csv(timeline)},
      {"-tokens.csv", engine::tokens_csv(timeline)},
      {"-acceptance.csv", engine::acceptance_csv(timeline)},
      {"-lanes.csv", engine::lanes_csv(timeline)},
  };
  for (const auto& [end, text] : tables) {
    std::error_code ignored;
    if (fs::exists(base.string() + end, ignored))
      return base.string() + end + ": is there already; choose another name";
  }
  for (const auto& [end, text] : tables) {
    std::ofstream out(base.string() + end, std::ios::binary);
    out << text;
    out.flush();
    if (!out)
      return base.string() + end + ": cannot be written; is the folder writable, the disk full?";
  }
  return "Wrote " + base.string() + "-steps.csv, -tokens.csv, -acceptance.csv, -lanes.csv";
}

}  // namespace ui

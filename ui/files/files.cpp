#include "ui/files/files.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/csv.h"
#include "engine/trace/describe.h"
#include "engine/trace/export.h"
#include "engine/trace/page/html.h"
#include "engine/trace/page/report.h"

namespace ui {

namespace fs = std::filesystem;

namespace {

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Returns the folder in the line XDG_DOCUMENTS_DIR="$HOME/..." of a user-dirs.dirs file; empty if there is no such line.
std::string documents_named_in(const fs::path& file, const std::string& home) {
  constexpr std::string_view kName = "XDG_DOCUMENTS_DIR=\"", kHome = "$HOME";
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(kName) || line.size() <= kName.size() || line.back() != '"') continue;
    std::string value = line.substr(kName.size(), line.size() - kName.size() - 1);
    if (value.starts_with(kHome)) value = home + value.substr(kHome.size());
    return value;
  }
  return "";
}

// Creates the folder of an export. A failure is reported when the file is created.
void create_folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty()) fs::create_directories(folder, ignored);
}

// Makes a text and writes it to a file, unless the user cancels.
// @param text_of  makes the text; calls its argument before each run
std::string export_text(const engine::Timeline& timeline,
                        const std::string& path,
                        const ExportProgress& progress,
                        const std::function<std::string(const std::function<void()>&)>& text_of) {
  const double n_parts = static_cast<double>(timeline.runs().size()) + 1;  // the last: writing
  int n_done = 0;
  const auto before_each = [&] {
    // A page that is too large is made twice.
    if (progress && !progress(std::min(n_done++ / n_parts, 0.99)))
      throw engine::Error(engine::ErrorCode::Cancelled, path + ": not exported: cancelled");
  };
  try {
    const std::string text = text_of(before_each);
    before_each();
    create_folder_of(path);
    return "Wrote " + engine::write_new_file(path, text) + ".";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

fs::path documents_folder() {
  const std::string home = from_environment("HOME");
  const std::string config = from_environment("XDG_CONFIG_HOME"),
                    data = from_environment("XDG_DATA_HOME");
  const fs::path file =
      (config.empty() ? fs::path(home) / ".config" : fs::path(config)) / "user-dirs.dirs";
  std::error_code error;
  if (const fs::path named = documents_named_in(file, home);
      named.is_absolute() && fs::is_directory(named, error))
    return named;
  if (!data.empty()) return fs::path(data) / "decoscope";
  return home.empty() ? fs::path() : fs::path(home) / ".local/share/decoscope";
}

bool holds_adapter(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "adapter_config.json", error);
}

std::pair<std::string, std::string> base_and_adapter(const std::string& path) {
  for (auto at = path.rfind('+'); at != std::string::npos && at > 0; at = path.rfind('+', at - 1))
    if (holds_adapter(path.substr(at + 1))) return {path.substr(0, at), path.substr(at + 1)};
  return {path, ""};
}

std::vector<FileEntry> entries_near(const std::string& typed,
                                    std::initializer_list<std::string_view> endings) {
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
    FileEntry entry{it->path().string(), name, it->is_directory(ignored)};
    const bool wanted = std::ranges::any_of(
        endings, [&](std::string_view ending) { return name.ends_with(ending); });
    if (!entry.is_folder && !wanted) continue;
    if (entry.is_folder) entry.shown += "/";
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const FileEntry& a, const FileEntry& b) {
    return std::pair(a.is_folder, a.shown) < std::pair(b.is_folder, b.shown);
  });
  if (entries.size() > 200) entries.resize(200);
  const fs::path up = fs::absolute(folder, error).lexically_normal().parent_path();
  if (!error) entries.insert(entries.begin(), {up.string(), "../", true});
  return entries;
}

std::string export_trace(const engine::Timeline& timeline,
                         const std::string& path,
                         const engine::TraceOptions& wanted) {
  engine::TraceOptions options = wanted;
  options.if_exists = engine::OutputFile::IfExists::NewName;
  try {
    create_folder_of(path);
    const engine::TraceReport report = engine::export_trace(timeline, path, options);
    std::string text = "Wrote " + report.path + " and checked it: " + report.summary() + ".";
    for (const std::string& notice : report.notices) text += "\nNote: " + notice;
    return text;
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string export_report(const engine::Timeline& timeline,
                          const std::string& path,
                          const engine::ReportOptions& options,
                          const ExportProgress& progress) {
  return export_text(timeline, path, progress, [&](const std::function<void()>& before_each) {
    return engine::markdown_report(timeline, options, before_each);
  });
}

std::string export_page(const engine::Timeline& timeline,
                        const std::string& path,
                        const engine::HtmlOptions& options,
                        const ExportProgress& progress) {
  std::string notice;
  const std::string said =
      export_text(timeline, path, progress, [&](const std::function<void()>& before_each) {
        engine::HtmlPage page = engine::html_page(timeline, options, before_each);
        notice = page.notice;
        return std::move(page.text);
      });
  const bool is_written = said.starts_with("Wrote ");
  return notice.empty() || !is_written ? said : said + "\nNote: " + notice + ".";
}

std::string export_description(const engine::Timeline& timeline,
                               const std::string& path,
                               const ExportProgress& progress) {
  return export_text(timeline, path, progress, [&](const std::function<void()>& before_each) {
    return engine::describe(timeline, before_each);
  });
}

std::string export_tables(const engine::Timeline& timeline,
                          const std::string& path,
                          bool for_spreadsheets) {
  const std::string stem = fs::path(path).replace_extension().string();
  for (const char* end : {"-steps.csv", "-tokens.csv", "-acceptance.csv", "-lanes.csv"}) {
    std::error_code ignored;
    if (fs::exists(stem + end, ignored))
      return stem + end + ": already exists; choose another name";
  }
  try {
    engine::write_tables(timeline, stem, {.for_spreadsheets = for_spreadsheets});
    return "Wrote " + stem + "-steps.csv, -tokens.csv, -acceptance.csv, -lanes.csv";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace ui

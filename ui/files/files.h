// Folders, traces and tables that the user chooses in the window.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace engine {
class Timeline;
struct HtmlOptions;
struct ReportOptions;
struct TraceOptions;
}  // namespace engine

namespace ui {

/// An entry of a file list.
struct FileEntry {
  std::string path, shown;
  bool is_folder = false;  // false: it is a file with one of the requested endings
};

/// Returns the folders and matching files in the folder of the path typed so far, and the parent folder; at most 200.
/// @param endings  endings of the names of matching files
std::vector<FileEntry> entries_near(const std::string& typed,
                                    std::initializer_list<std::string_view> endings = {".pdrun"});

/// Splits the path of a model with a LoRA adapter, "BASE+FOLDER". @return  the base and the folder of the adapter; the path and "" without one
std::pair<std::string, std::string> base_and_adapter(const std::string& path);
/// Returns true for a folder with a LoRA adapter in peft's format.
bool holds_adapter(const std::filesystem::path& folder);

/// Returns the default folder for recordings and exports: the documents folder of user-dirs.dirs if it exists, else $XDG_DATA_HOME/decoscope, else
/// $HOME/.local/share/decoscope; empty if there is no home folder. This function does not create it.
std::filesystem::path documents_folder();

/// Writes a trace in the format of its name (.json or .pftrace, perhaps with .gz) and checks it. An existing file is not replaced; the name gets a number.
/// @return a sentence that names the file and the counts of the check, or why nothing was written
std::string export_trace(const engine::Timeline& timeline,
                         const std::string& path,
                         const engine::TraceOptions& options);
/// Called with the progress of an export, 0 to 1; false cancels it.
using ExportProgress = std::function<bool(double)>;
/// Writes a report in Markdown (.md). An existing file is not replaced; the name gets a number.
/// @param progress  called before each run; may be empty
/// @return a sentence that names the file, or why nothing was written
std::string export_report(const engine::Timeline& timeline,
                          const std::string& path,
                          const engine::ReportOptions& options,
                          const ExportProgress& progress = {});
/// Writes a page (.html) that plays the recording in a browser; otherwise works like export_report(). The sentence names the parts
/// that were omitted to keep the page within its limit.
std::string export_page(const engine::Timeline& timeline,
                        const std::string& path,
                        const engine::HtmlOptions& options,
                        const ExportProgress& progress = {});
/// Writes a description of all runs in words (.txt); otherwise works like export_report().
std::string export_description(const engine::Timeline& timeline,
                               const std::string& path,
                               const ExportProgress& progress = {});
/// Writes tables as CSV beside `path`: NAME-steps.csv, NAME-tokens.csv, NAME-acceptance.csv, NAME-lanes.csv.
/// @param for_spreadsheets  as engine::CsvOptions
/// @return a sentence that names the files, or why nothing was written
std::string export_tables(const engine::Timeline& timeline,
                          const std::string& path,
                          bool for_spreadsheets = false);

}  // namespace ui

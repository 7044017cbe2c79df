// `trace convert`: a recording as a Chrome trace, tables, text or a repaired recording; `--describe`.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands/trace/recording.h"
#include "app/commands/trace/tool.h"
#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/event/recording/recorder.h"
#include "engine/event/recording/run_notes.h"
#include "engine/event/vocabulary.h"
#include "engine/trace/describe.h"
#include "engine/trace/export.h"
#include "engine/trace/page/html.h"
#include "engine/trace/page/report.h"

namespace app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTables = ".csv";

/// Collects the token ids of the events pushed.
class UsedTokens : public engine::EventSink {
 public:
  void push(engine::Event event) override { engine::add_tokens_of(event, tokens); }
  std::set<engine::TokenId> tokens;
};

/// Passes every event on; models keep only the texts of some tokens.
class PieceFilter : public engine::EventSink {
 public:
  PieceFilter(engine::EventSink& next, const std::set<engine::TokenId>& tokens)
      : next_(next), tokens_(tokens) {}
  void push(engine::Event event) override {
    if (auto* model = std::get_if<engine::ModelLoaded>(&event))
      engine::keep_pieces(*model, tokens_);
    next_.push(std::move(event));
  }

 private:
  engine::EventSink& next_;                  // owned by the caller
  const std::set<engine::TokenId>& tokens_;  // owned by the caller
};

/// Writes the intact frames of a recording as a new recording.
/// @param used_tokens_only  without the texts of tokens that do not occur
/// @return  the name of the file
std::string repaired(const std::string& from,
                     const std::string& to,
                     bool used_tokens_only,
                     const StopRequested& stop) {
  UsedTokens used;
  if (used_tokens_only) read_whole_recording(from, used, stop);
  engine::Recorder recorder(to, {.if_failed = engine::RecorderOptions::IfFailed::Remove});
  try {
    PieceFilter filter(recorder, used.tokens);
    read_whole_recording(
        from, used_tokens_only ? static_cast<engine::EventSink&>(filter) : recorder, stop);
  } catch (const engine::Error&) {
    recorder.close();
    std::error_code ignored;
    std::filesystem::remove(recorder.path(), ignored);
    throw;
  }
  recorder.close();
  if (const std::optional<std::string> trouble = recorder.trouble()) {
    throw engine::Error(engine::ErrorCode::Resources, *trouble);
  }
  return recorder.path();
}

/// True for the formats that have prompts only on request, besides traces: a page and a report.
bool is_document_name(const std::string& path) {
  return path.ends_with(".html") || path.ends_with(".md");
}

/// Refuses options for a part or the prompts unless the output can have them.
void refuse_part(const std::string& to, const engine::TraceOptions& options) {
  if (is_trace_name(to)) return;
  const bool has_part = options.run || !engine::selects_all_steps(options) || options.own_compute;
  if (!has_part && options.prompt_text && !is_document_name(to))
    throw engine::Error(
        engine::ErrorCode::Usage,
        fmt::format(
            "--with-prompt applies only to a trace (.json or .pftrace), a page (.html) or a "
            "report (.md), found {}",
            engine::escaped(to)));
  if (!has_part) return;
  const char* option = options.run                           ? "--run"
                       : !engine::selects_all_steps(options) ? "--first-step or --last-step"
                                                             : "--clock";
  throw engine::Error(
      engine::ErrorCode::Usage,
      fmt::format(
          "{} applies only to a trace (.json or .pftrace) or an animation, found {}; omit it to "
          "convert the whole recording",
          option, engine::escaped(to)));
}

/// Says that a file has the prompts, or that they were left out; empty for formats without prompts.
std::string prompt_remark(const std::string& file, const ConvertOptions& options) {
  const std::string name = engine::escaped(file);
  const bool is_recording = file.ends_with(".pdrun");
  if (is_recording || options.trace.prompt_text)
    return name + " contains the text of the prompts; everyone who gets it can read them";
  return is_document_name(file) ? name + " has no prompts; --with-prompt includes them" : "";
}

engine::HtmlOptions page_options(const ConvertOptions& options) {
  engine::HtmlOptions page{.prompt_text = options.trace.prompt_text,
                           .to_get_all = "--page-mb 0 writes a page of any size"};
  if (options.page_mb)
    page.max_bytes = std::size_t{1'000'000} * static_cast<std::size_t>(*options.page_mb);
  return page;
}

/// The report, with the notes that the window keeps beside the recording.
std::string report_of(const std::string& from,
                      const engine::Timeline& timeline,
                      const ConvertOptions& options,
                      const std::function<void()>& before_each,
                      std::vector<std::string>& notices) {
  std::string why;
  engine::ReportOptions report{.prompt_text = options.trace.prompt_text,
                               .notes = engine::read_run_notes(from, why)};
  if (!why.empty())
    notices.push_back(fmt::format("{}: {}; the report has no notes from it",
                                  engine::escaped(engine::notes_path(from)), why));
  return engine::markdown_report(timeline, report, before_each);
}

/// Refuses an exported trace as the input.
void refuse_trace(const std::string& from) {
  if (!is_trace_name(from)) return;
  throw engine::Error(engine::ErrorCode::Usage,
                      engine::escaped(from) +
                          ": found an exported trace, expected a recording (.pdrun); a trace "
                          "does not have all data of a run");
}

}  // namespace

TraceAnswer trace_describe(const std::string& path, const StopRequested& stop) {
  refuse_trace(path);
  const OpenedRecording opened = open_recording(path, stop);
  TraceAnswer answer;
  answer.text = engine::describe(opened.timeline, [&] {
    if (stop && stop()) throw_cancelled(path, "nothing was described");
  });
  for (const std::string& notice : opened.report.notices()) answer.text += "note: " + notice + "\n";
  return answer;
}

TraceAnswer trace_convert(const std::string& from,
                          const std::string& to,
                          const ConvertOptions& options) {
  const bool known = is_trace_name(to) || to.ends_with(".csv") || to.ends_with(".txt") ||
                     to.ends_with(".html") || to.ends_with(".md") || to.ends_with(".pdrun");
  if (!known) {
    throw engine::Error(
        engine::ErrorCode::Usage,
        engine::escaped(to) +
            ": found an unknown extension, expected .json, .json.gz, .pftrace, .html, .md, "
            ".csv, .txt, .gif, .png or .pdrun");
  }
  refuse_trace(from);
  refuse_part(to, options.trace);
  if (options.used_tokens_only && !to.ends_with(".pdrun"))
    throw engine::Error(
        engine::ErrorCode::Usage,
        "--used-tokens-only applies only to a recording (.pdrun), found " + engine::escaped(to));
  if (options.csv.for_spreadsheets && !to.ends_with(kTables))
    throw engine::Error(
        engine::ErrorCode::Usage,
        "--for-spreadsheets applies only to tables (.csv), found " + engine::escaped(to));
  if (options.page_mb && !to.ends_with(".html"))
    throw engine::Error(engine::ErrorCode::Usage,
                        "--page-mb applies only to a page (.html), found " + engine::escaped(to));
  const OpenedRecording opened = open_recording(from, options.stop);
  std::vector<std::string> files;
  std::vector<std::string> notices = opened.report.notices();
  TraceAnswer answer;
  const auto before_each_run = [&] {
    if (options.stop && options.stop()) throw_cancelled(to, "nothing was written");
  };
  if (is_trace_name(to)) {
    engine::TraceOptions trace = options.trace;
    trace.if_exists = engine::OutputFile::IfExists::NewName;
    trace.progress = [&options](double) { return !(options.stop && options.stop()); };
    const engine::TraceReport report = engine::export_trace(opened.timeline, to, trace);
    answer.text = report.summary() + "; checked: valid\n";
    notices.insert(notices.end(), report.notices.begin(), report.notices.end());
    files = {report.path};
  } else if (to.ends_with(kTables)) {
    const auto before_each = [&] {
      if (options.stop && options.stop()) throw_cancelled(to, "no table was written");
    };
    files = engine::write_tables(opened.timeline, to.substr(0, to.size() - kTables.size()),
                                 options.csv, before_each);
  } else if (to.ends_with(".txt")) {
    files = {engine::write_new_file(to, engine::describe(opened.timeline, before_each_run))};
  } else if (to.ends_with(".md")) {
    files = {engine::write_new_file(
        to, report_of(from, opened.timeline, options, before_each_run, notices))};
  } else if (to.ends_with(".html")) {
    const engine::HtmlPage page =
        engine::html_page(opened.timeline, page_options(options), before_each_run);
    if (!page.notice.empty()) notices.push_back(page.notice);
    files = {engine::write_new_file(to, page.text)};
  } else {
    files = {repaired(from, to, options.used_tokens_only, options.stop)};
  }
  const bool tables = to.ends_with(kTables);
  const std::string stem = to.substr(0, to.size() - (tables ? kTables.size() : 0));
  if (files.front() != (tables ? stem + "-steps.csv" : to)) {
    notices.push_back(fmt::format("{} exists; written to {}",
                                  engine::escaped(tables ? stem + "-*.csv" : to),
                                  engine::escaped(files.front())));
  }
  Json object{{"from", engine::as_utf8(from)}, {"files", Json::array()}, {"notices", notices}};
  for (const std::string& file : files) {
    answer.text += "wrote " + engine::escaped(file) + "\n";
    object["files"].push_back(engine::as_utf8(file));
  }
  for (const std::string& notice : notices) answer.text += "note: " + notice + "\n";
  answer.remark = prompt_remark(files.front(), options);
  answer.json = object.dump(2, ' ', false, Json::error_handler_t::replace);
  return answer;
}

}  // namespace app

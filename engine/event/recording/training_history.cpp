#include "engine/event/recording/training_history.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/text.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Each of these files shows that a folder belongs to a training.
constexpr const char* kTrainingFiles[] = {kTrainingLogName, kProbeTrajectoriesName,
                                          "checkpoint.bin", "trajectories.bin",
                                          "own_outputs.jsonl"};
constexpr const char *kWeights = "model.safetensors", *kAdapter = "adapter_model.safetensors";

bool has(const std::string& folder, const char* file) {
  std::error_code none;
  return fs::is_regular_file(fs::path(folder) / file, none);
}

bool holds_training(const std::string& folder) {
  return std::ranges::any_of(kTrainingFiles, [&](const char* file) { return has(folder, file); });
}

std::string log_of(const std::string& path) {
  std::error_code none;
  return fs::is_directory(path, none) ? (fs::path(path) / kTrainingLogName).string() : path;
}

std::string folder_of(const std::string& log) {
  const fs::path folder = fs::path(log).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string name_of_folder(const std::string& folder) {
  std::error_code none;
  fs::path whole = fs::absolute(folder, none).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole.filename().string();
}

[[noreturn]] void refuse_probe(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::BadInput, where + ": " + what);
}

const json& list_in(const json& from, const std::string& where, const std::string& field) {
  if (!from.is_array() || from.empty())
    refuse_probe(where, fmt::format("{}: found {}, expected a list that is not empty", field,
                                    from.is_array() ? "none" : from.type_name()));
  return from;
}

std::string text_in(const json& from, const std::string& where, const std::string& field) {
  if (!from.is_string())
    refuse_probe(where, fmt::format("{}: found {}, expected a text", field, from.type_name()));
  return from.get<std::string>();
}

/// Time of a file's last change; the minimum without a file.
fs::file_time_type changed_at(const std::string& folder, const char* file) {
  std::error_code none;
  const auto at = fs::last_write_time(fs::path(folder) / file, none);
  return none ? fs::file_time_type::min() : at;
}

}  // namespace

bool looks_like_training(const std::string& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) return holds_training(path);
  return fs::path(path).extension() == ".jsonl";
}

TrainingReader::TrainingReader(const std::string& path)
    : log_{.lines = GrowingLines(log_of(path)), .refusal = {}},
      probes_{.lines = GrowingLines(
                  (fs::path(folder_of(log_of(path))) / kProbeTrajectoriesName).string()),
              .refusal = {}} {
  history_.folder = folder_of(log_.lines.path());
  history_.name = name_of_folder(history_.folder);
  std::error_code none;
  const bool is_folder = fs::is_directory(path, none);
  if (!is_folder && !fs::exists(path, none))
    throw Error(ErrorCode::BadInput,
                escaped(path) + ": not found, expected a folder or log of a training");
  if (is_folder && !holds_training(path))
    throw Error(ErrorCode::BadInput,
                escaped(path) + ": found no " + kTrainingLogName +
                    ", expected the folder that `decoscope train` writes (--out)");
  read();
  if (history_.reports.empty() && !log_.refusal.empty()) throw Error(log_.code, log_.refusal);
}

bool TrainingReader::may_have_changed() const {
  return log_.lines.may_have_changed() || probes_.lines.may_have_changed();
}

template <typename Take, typename Forget>
bool TrainingReader::read_source(Source& source, std::size_t max_bytes, Take take, Forget forget) {
  if (!source.lines.may_have_changed()) return false;
  bool more = false;
  try {
    const GrowingLines::Update update = source.lines.read(max_bytes);
    more = update.more;
    if (update.restarted) {
      forget();
      source.refusal.clear();
    }
    history_.version += !update.empty();
    std::int64_t number = source.lines.line_number() - std::ssize(update.lines);
    for (const std::string& line : update.lines) {
      ++number;
      if (!source.refusal.empty()) break;
      if (!line.empty() && line != "\r")
        take(line, fmt::format("{}:{}", source.lines.path(), number));
    }
  } catch (const Error& error) {
    source.refusal = error.what();
    source.code = error.code();
    history_.version++;
  }
  return more && source.refusal.empty();
}

bool TrainingReader::read(std::size_t max_bytes) {
  const bool more_reports = read_source(
      log_, max_bytes,
      [this](const std::string& line, const std::string& where) { take_report(line, where); },
      [this] { history_.reports.clear(); });
  const bool more_probes = read_source(
      probes_, max_bytes,
      [this](const std::string& line, const std::string& where) { take_probe(line, where); },
      [this] { forget_probes(); });
  history_.refusals.clear();
  for (const Source* source : {&log_, &probes_})
    if (!source->refusal.empty()) history_.refusals.push_back(source->refusal);
  find_stage();
  return more_reports || more_probes;
}

// A resumed training reports steps again; the earlier reports of these steps are dropped.
void TrainingReader::take_report(const std::string& line, const std::string& where) {
  TrainingReport report = training_report_from(line, where);
  auto& reports = history_.reports;
  while (!reports.empty() && reports.back().step >= report.step) reports.pop_back();
  reports.push_back(std::move(report));
}

void TrainingReader::forget_probes() {
  history_.probes.clear();
  history_.pieces.clear();
  ids_.clear();
}

TokenId TrainingReader::id_of(const std::string& piece) {
  const auto [known, is_new] =
      ids_.try_emplace(piece, static_cast<TokenId>(history_.pieces.size()));
  if (is_new) history_.pieces.push_back(piece);
  return known->second;
}

void TrainingReader::take_probe(const std::string& line, const std::string& where) {
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object())
    refuse_probe(where, "found no JSON object, expected the trajectories of a probe");
  const json none;
  const auto field = [&](const char* name) -> const json& {
    const auto found = object.find(name);
    return found == object.end() ? none : *found;
  };
  ProbeTrajectory probe;
  if (!field("step").is_number_integer()) refuse_probe(where, "step: expected a whole number");
  probe.step = field("step").get<std::int64_t>();
  probe.prompt = text_in(field("prompt"), where, "prompt");
  if (field("ends").is_array())
    for (const json& piece : field("ends"))
      probe.end_ids.push_back(id_of(text_in(piece, where, "ends")));
  for (const json& states : list_in(field("blocks"), where, "blocks")) {
    const std::string place = fmt::format("blocks[{}]", probe.blocks.size());
    auto& block = probe.blocks.emplace_back();
    for (const json& state : list_in(states, where, place)) {
      auto& tokens = block.emplace_back();
      for (const json& piece : list_in(state, where, place))
        tokens.push_back(id_of(text_in(piece, where, place)));
      if (tokens.size() != block.front().size())
        refuse_probe(where, place + ": found states of different lengths, expected equal ones");
    }
  }
  auto& probes = history_.probes;
  while (!probes.empty() && probes.back().step >= probe.step) probes.pop_back();
  probes.push_back(std::move(probe));
}

void TrainingReader::find_stage() {
  const std::string& folder = history_.folder;
  const auto log_changed = changed_at(folder, fs::path(log_.lines.path()).filename().c_str());
  auto newest = std::max(log_changed, changed_at(folder, kProbeTrajectoriesName));
  TrainingStage stage = TrainingStage::NotBegun;
  const char* const result = has(folder, kAdapter) ? kAdapter : kWeights;
  if (has(folder, result) && changed_at(folder, result) >= log_changed) {
    stage = TrainingStage::Written;
    newest = std::max(newest, changed_at(folder, result));
  } else if (!history_.reports.empty()) {
    stage = TrainingStage::Training;
  } else if (has(folder, "trajectories.bin")) {
    const bool collected = has(folder, "stages.json");
    stage = collected ? TrainingStage::Measuring : TrainingStage::Collecting;
    newest = std::max(newest, changed_at(folder, collected ? "stages.json" : "trajectories.bin"));
  } else if (has(folder, "own_outputs.jsonl")) {
    stage = TrainingStage::WritingTexts;
    newest = std::max(newest, changed_at(folder, "own_outputs.jsonl"));
  }
  history_.version += stage != history_.stage;
  history_.stage = stage;
  history_.silent_seconds = -1;
  if (newest == fs::file_time_type::min()) return;
  const std::chrono::duration<double> ago = fs::file_time_type::clock::now() - newest;
  history_.silent_seconds = std::max(0.0, ago.count());
}

}  // namespace engine

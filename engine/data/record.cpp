#include "engine/data/record.h"

#include <nlohmann/json.hpp>

#include "engine/base/input_file.h"
#include "engine/data/text.h"

namespace engine {

namespace {

// Most attempts per record. Dev and test keep one draw in twenty, and draws can fail, but a record
// needs far fewer attempts.
constexpr int kMaxAttempts = 20000;
constexpr std::uint64_t kMaxRecordsBytes = std::uint64_t{16} << 30;
// highest level of a record in a file; generators have levels 1 to 3
constexpr int kMaxLevel = 1000;

std::string required_text(const nlohmann::json& object,
                          const char* field,
                          const std::string& where) {
  const auto it = object.find(field);
  if (it == object.end() || !it->is_string())
    throw Error(ErrorCode::BadInput, where + ": " + field + ": found " +
                                         (it == object.end() ? "nothing" : it->type_name()) +
                                         ", expected a string");
  return it->get<std::string>();
}

}  // namespace

std::string_view split_name(Split split) {
  switch (split) {
    case Split::Train:
      return "train";
    case Split::Dev:
      return "dev";
    case Split::Test:
      break;
  }
  return "test";
}

Split split_from_name(std::string_view name) {
  if (name == "train") return Split::Train;
  if (name == "dev") return Split::Dev;
  if (name == "test") return Split::Test;
  throw Error(ErrorCode::Usage,
              "split: found '" + std::string(name) + "', expected train, dev or test");
}

Split split_of_key(std::string_view key) {
  const auto bucket = fnv1a(key) % 100;
  return bucket < 90 ? Split::Train : bucket < 95 ? Split::Dev : Split::Test;
}

std::optional<Record> TaskGenerator::make(Split split, int level, std::int64_t index) const {
  ensure(level >= 1 && level <= 3, "a generator's level must be 1, 2 or 3");
  ensure(index >= 0, "a record's index must be at least 0");
  const std::string id = std::string(name()) + "/" + std::to_string(level) + "/" +
                         std::string(split_name(split)) + "/" + std::to_string(index);
  for (int attempt = 0; attempt < kMaxAttempts; attempt++) {
    Random rng(fnv1a(id + "/" + std::to_string(attempt)));
    std::optional<Record> record = draw(rng, level, split);
    if (!record) continue;
    record->id = id;
    record->task = name();
    record->level = level;
    record->split = split_name(split);
    const CheckResult result = check_generated(*record);
    if (!result.correct)
      kernels::throw_contract_error(
          (id + " fails its own check: " + result.reason + "\n" + record->completion).c_str());
    return record;
  }
  return std::nullopt;
}

std::string to_json_line(const Record& record) {
  nlohmann::ordered_json line;
  line["id"] = record.id;
  line["task"] = record.task;
  line["level"] = record.level;
  line["split"] = record.split;
  line["prompt"] = record.prompt;
  line["completion"] = record.completion;
  line["answer"] = record.answer;
  line["check"] = nlohmann::ordered_json::parse(record.check.empty() ? "{}" : record.check);
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Record record_from_json(std::string_view line, const std::string& where) {
  constexpr int kMaxDepth = 64;  // dump() of `check` recurses
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth <= kMaxDepth) return true;
    throw Error(ErrorCode::BadInput,
                where + ": found more than " + std::to_string(kMaxDepth) + " nested values");
  };
  const auto object = nlohmann::json::parse(line, shallow, false);
  if (object.is_discarded())
    throw Error(ErrorCode::BadInput, where + ": found text that is not JSON, expected one record");
  if (!object.is_object())
    throw Error(ErrorCode::BadInput,
                where + ": found " + object.type_name() + ", expected a JSON object");
  Record record;
  record.id = required_text(object, "id", where);
  record.task = required_text(object, "task", where);
  record.split = required_text(object, "split", where);
  record.prompt = required_text(object, "prompt", where);
  record.completion = required_text(object, "completion", where);
  record.answer = required_text(object, "answer", where);
  const auto level = object.find("level");
  const bool is_whole = level != object.end() && level->is_number_integer();
  if (!is_whole || *level < 0 || *level > kMaxLevel)
    throw Error(ErrorCode::BadInput,
                where + ": level: found " + (level == object.end() ? "nothing" : level->dump()) +
                    ", expected a whole number from 0 to " + std::to_string(kMaxLevel));
  record.level = level->get<int>();
  const auto check = object.find("check");
  if (check == object.end() || !check->is_object())
    throw Error(ErrorCode::BadInput, where + ": check: found " +
                                         (check == object.end() ? "nothing" : check->type_name()) +
                                         ", expected an object");
  record.check = check->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return record;
}

std::vector<Record> read_records(const std::string& path) {
  const std::string text = read_text_input(path, Pipes::Read, kMaxRecordsBytes);
  std::vector<Record> records;
  InputLines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (trimmed(line).empty()) continue;
    records.push_back(
        record_from_json(line, input_name(path) + ":" + std::to_string(lines.number())));
  }
  if (records.empty())
    throw Error(ErrorCode::BadInput,
                input_name(path) + ": found no records, expected one JSON object a line");
  return records;
}

}  // namespace engine

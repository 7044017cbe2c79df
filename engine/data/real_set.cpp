#include "engine/data/real_set.h"

#include <nlohmann/json.hpp>

#include "engine/base/input_file.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxSetBytes = std::uint64_t{16} << 30;
constexpr std::size_t kMaxTrainChars = 1700;  // about 512 tokens

}  // namespace

std::string read_whole_file(const std::string& path) {
  return read_text_input(path, Pipes::Read, kMaxSetBytes);
}

void for_each_json_line(const std::string& path,
                        const std::string& text,
                        const std::function<void(const Json&)>& each) {
  int number = 0;
  for (const std::string& line : split_text(text, '\n')) {
    number++;
    if (trimmed(line).empty()) continue;
    const std::string where = path + ":" + std::to_string(number);
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object())
      throw Error(ErrorCode::BadInput, where + ": found no JSON object, expected one a line");
    try {
      each(object);
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, where + ": " + e.what());
    }
  }
}

void for_each_json_line(const std::string& path, const std::function<void(const Json&)>& each) {
  for_each_json_line(path, read_whole_file(path), each);
}

void for_each_json_item(const std::string& path, const std::function<void(const Json&)>& each) {
  const Json list = Json::parse(read_whole_file(path), nullptr, false);
  if (!list.is_array())
    throw Error(ErrorCode::BadInput, path + ": found no JSON list, expected one");
  std::size_t number = 0;
  for (const Json& item : list) {
    try {
      each(item);
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, path + ": [" + std::to_string(number) + "]: " + e.what());
    }
    number++;
  }
}

std::vector<std::string> sentences_in(std::string_view line) {
  std::vector<std::string> sentences(1);
  for (const std::string& word : split_text(line, ' ')) {
    std::string& sentence = sentences.back();
    sentence += (sentence.empty() ? "" : " ") + word;
    const auto end = word.find_last_not_of('"');
    if (end != std::string::npos && std::string_view(".!?").find(word[end]) != std::string::npos)
      sentences.emplace_back();
  }
  if (sentences.back().empty()) sentences.pop_back();
  return sentences;
}

void RealRecords::add(std::string prompt,
                      std::string completion,
                      std::string answer,
                      const Json& check) {
  Record r;
  r.id = set_ + "/" + std::string(split_name(split_)) + "/" + std::to_string(n_++);
  r.task = set_;
  r.level = 0;
  r.split = split_name(split_);
  r.prompt = std::move(prompt);
  r.completion = std::move(completion);
  r.answer = std::move(answer);
  r.check = check.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (train() && r.prompt.size() + r.completion.size() > kMaxTrainChars) return;
  records.push_back(std::move(r));
}

}  // namespace engine

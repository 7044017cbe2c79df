#include "engine/train/run/own_outputs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/input_file.h"
#include "engine/base/measure/remaining_time.h"
#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/base/types.h"
#include "engine/data/chat_requests.h"
#include "engine/decode/step/stepper.h"
#include "engine/event/clock.h"
#include "engine/train/prompts/output_prompts.h"

namespace engine {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

// The first line of the file, which identifies the origin of its texts. It does not say how many
// texts there are or whether they were checked, so these may change when a file is continued.
ordered_json origin_of(const NamedTarget& target, const OutputsPlan& plan) {
  return {{"own_outputs", 1},
          {"target", target.name},
          {"weights", target.weights_hash},
          {"split", std::string(split_name(plan.split))},
          {"mixture", ordered_json::parse(plan.mixture, nullptr, false)},
          {"seed", plan.seed},
          {"max_tokens", plan.max_tokens}};
}

std::string to_line(const OwnOutput& output) {
  ordered_json line = {
      {"index", output.index}, {"part", output.part}, {"n_prompt", output.n_prompt},
      {"ended", output.ended}, {"right", nullptr},    {"tokens", output.tokens}};
  if (output.right) line["right"] = *output.right;
  return line.dump() + "\n";
}

OwnOutput from_line(const std::string& text, const std::string& where) {
  OwnOutput output;
  try {
    const auto line = nlohmann::json::parse(text);
    line.at("index").get_to(output.index);
    line.at("part").get_to(output.part);
    line.at("n_prompt").get_to(output.n_prompt);
    line.at("ended").get_to(output.ended);
    if (!line.at("right").is_null()) output.right = line.at("right").get<bool>();
    line.at("tokens").get_to(output.tokens);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::BadInput, where + ": not a text of a target: " + error.what());
  }
  if (output.n_prompt < 1 || output.tokens.size() <= static_cast<std::size_t>(output.n_prompt))
    throw Error(ErrorCode::BadInput, where + ": n_prompt: expected a prompt and a text after it");
  return output;
}

// The complete lines of a file, and their size in bytes.
struct Lines {
  std::vector<std::string> line;
  std::uintmax_t n_bytes = 0;
};

Lines whole_lines(const std::string& path) {
  refuse_pipe(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::BadInput, path + ": cannot be opened");
  std::ostringstream bytes;
  bytes << file.rdbuf();
  const std::string text = bytes.str();
  Lines lines;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return lines;
    lines.line.push_back(text.substr(begin, end - begin));
    lines.n_bytes = begin = end + 1;
  }
}

void check_origin(const std::string& found, const ordered_json& wanted, const std::string& path) {
  const auto origin = ordered_json::parse(found, nullptr, false);
  if (!origin.is_object() || !origin.contains("own_outputs"))
    throw Error(ErrorCode::BadInput,
                path + ":1: expected the description of the file, {\"own_outputs\": 1, ..}");
  for (const auto& [name, value] : wanted.items()) {
    const auto has = origin.find(name);
    if (has != origin.end() && *has == value) continue;
    throw Error(ErrorCode::BadInput, path + ":1: " + name + ": found " +
                                         (has == origin.end() ? "none" : has->dump()) +
                                         ", expected " + value.dump() +
                                         "; name another file, or the recipe of this file");
  }
}

// Unfinished texts, decoded together.
class Writer {
 public:
  Writer(const NamedTarget& target,
         const OutputsPlan& plan,
         const std::string& path,
         const std::string& data)
      : target_(target),
        plan_(plan),
        path_(path),
        prompts_(plan, data),
        stepper_(target.model, nullptr) {}

  const OutputPrompts& prompts() const { return prompts_; }
  void open();
  /// Number of texts in the file, including those of prompts after the plan's last one.
  std::int64_t n_texts() const { return std::ssize(saved_); }
  /// True if no prompt of the plan lacks a text.
  bool is_complete() const { return n_planned_ >= prompts_.count(); }
  bool run(const std::function<bool(const OutputsProgress&)>& keep_going);

 private:
  struct Text {
    std::int64_t index;
    Record record;
    Lane lane;
  };
  bool begin_next();
  void end(Text& text);
  std::optional<bool> is_correct(const Text& text) const;
  [[noreturn]] void refuse_disk() const;

  const NamedTarget& target_;
  const OutputsPlan& plan_;
  std::string path_;
  OutputPrompts prompts_;
  Stepper stepper_;
  OutputLock lock_;
  std::ofstream file_;
  std::set<std::int64_t> saved_;
  std::int64_t n_planned_ = 0;  // of saved_: texts of the plan's prompts
  // n_skipped_ counts prompts that are empty or too long
  std::int64_t next_ = 0, n_skipped_ = 0, n_tokens_ = 0;
  std::vector<std::unique_ptr<Text>> texts_;
};

// Refuses a file of another origin. A partial first line must be a prefix of the expected line.
void refuse_foreign_file(const std::string& path, const std::string& origin) {
  std::string begin(origin.size() + 1, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  if (!origin.starts_with(begin))
    throw Error(ErrorCode::BadInput, path + ": expected texts of a target; name another file");
}

// Removes a partial last line.
void Writer::open() {
  ordered_json origin = origin_of(target_, plan_);
  if (plan_.chat) origin.update({{"chat", true}, {"requests", prompts_.hash()}});
  lock_ = OutputLock::on(path_);
  std::error_code unknown;
  bool begun = false;
  if (fs::exists(path_, unknown)) {
    const Lines lines = whole_lines(path_);
    begun = !lines.line.empty();
    if (begun)
      check_origin(lines.line[0], origin, path_);
    else
      refuse_foreign_file(path_, origin.dump());
    for (std::size_t i = 1; i < lines.line.size(); i++)
      saved_.insert(from_line(lines.line[i], path_ + ":" + std::to_string(i + 1)).index);
    n_planned_ = std::ranges::count_if(
        saved_, [this](std::int64_t index) { return index < prompts_.count(); });
    fs::resize_file(path_, lines.n_bytes, unknown);
  }
  file_.open(path_, std::ios::app | std::ios::binary);
  if (!begun) file_ << origin.dump() << '\n' << std::flush;
  if (!file_) refuse_disk();
}

void Writer::refuse_disk() const {
  throw Error(ErrorCode::Resources, path_ + ": cannot be written: " + std::strerror(errno) +
                                        "; complete texts are kept; continue with --resume");
}

// Reads the prompt of the next missing text. @return  false if there is none
bool Writer::begin_next() {
  Model& model = target_.model;
  const int room = model.max_seq_len() - 2;
  const int longest = plan_.max_prompt_tokens > 0 ? std::min(plan_.max_prompt_tokens, room) : room;
  while (next_ < prompts_.count()) {
    const std::int64_t index = next_++;
    if (saved_.contains(index)) continue;
    Record record = prompts_.record(index);
    std::vector<TokenId> prompt;
    if (!record.prompt.empty()) prompt = prompt_tokens(model, record.prompt, plan_.chat);
    if (prompt.empty() || std::ssize(prompt) > longest) {
      n_skipped_++;
      continue;
    }
    Limits limits;
    limits.max_tokens = plan_.max_tokens;
    limits.eos_ids = model.config().eos_ids;
    texts_.push_back(
        std::make_unique<Text>(Text{index, std::move(record),
                                    make_lane(static_cast<RunId>(index), model, std::move(prompt),
                                              "ar", {model, {}, limits, {}})}));
    Lane& lane = texts_.back()->lane;
    prefill(model, lane.sequence);
    lane.decoder->begin(lane.sequence);
    return true;
  }
  return false;
}

std::optional<bool> Writer::is_correct(const Text& text) const {
  // Records of the open sets have level 0.
  if (!plan_.check || text.record.level == 0) return {};
  const Sequence& sequence = text.lane.sequence;
  const std::string written =
      continuation_text(*target_.model.tokenizer(), sequence.prompt(), sequence.generated());
  const CheckResult result = task_generator(text.record.task).check(text.record, written);
  if (result.skipped) return {};
  return result.correct;
}

void Writer::end(Text& text) {
  const Sequence& sequence = text.lane.sequence;
  OwnOutput output;
  output.index = text.index;
  output.part = text.record.task;
  output.tokens.assign(sequence.tokens().begin(), sequence.tokens().end());
  output.n_prompt = static_cast<int>(sequence.prompt().size());
  output.ended = sequence.stop_reason() == StopReason::Eos;
  output.right = is_correct(text);
  file_ << to_line(output) << std::flush;
  if (!file_) refuse_disk();
  n_tokens_ += std::ssize(sequence.generated());
  saved_.insert(text.index);
  n_planned_++;
}

bool Writer::run(const std::function<bool(const OutputsProgress&)>& keep_going) {
  const Nanoseconds begun = now_ns();
  const std::int64_t had = n_planned_;
  for (;;) {
    while (static_cast<int>(texts_.size()) < plan_.lanes && begin_next()) {
    }
    if (texts_.empty()) return true;
    std::vector<Lane*> lanes;
    for (const auto& text : texts_) lanes.push_back(&text->lane);
    stepper_.step(lanes);
    for (const auto& text : texts_)
      if (text->lane.sequence.finished()) end(*text);
    std::erase_if(texts_, [](const auto& text) { return text->lane.sequence.finished(); });
    if (!keep_going) continue;
    OutputsProgress progress;
    progress.all = prompts_.count();
    progress.done = n_planned_ + n_skipped_;
    progress.seconds = static_cast<double>(now_ns() - begun) * 1e-9;
    progress.tokens = n_tokens_;
    progress.tokens_per_second = static_cast<double>(n_tokens_) / progress.seconds;
    // Skipped prompts take no time.
    progress.seconds_left =
        remaining_seconds(static_cast<double>(progress.done), static_cast<double>(progress.all),
                          static_cast<double>(n_planned_ - had), progress.seconds);
    if (!keep_going(progress)) return texts_.empty() && next_ >= prompts_.count();
  }
}

}  // namespace

bool write_own_outputs(const NamedTarget& target,
                       const OutputsPlan& plan,
                       const std::string& path,
                       const std::string& data,
                       const std::function<bool(const OutputsProgress&)>& keep_going,
                       const std::function<void(const std::string&)>& notice) {
  ensure(target.model.tokenizer() != nullptr,
         "the target needs a tokenizer, because prompts are texts");
  ensure(plan.lanes > 0 && plan.max_tokens > 0, "lanes and max_tokens must be above 0");
  if (plan.chat) expect_chat_template(target.model, target.name);
  Writer writer(target, plan, path, data);
  writer.open();
  if (notice && plan.chat) notice(writer.prompts().summary());
  if (writer.is_complete()) {
    if (notice)
      notice(fmt::format("{}: already has {}, and the recipe needs {}; nothing is written", path,
                         counted(writer.n_texts(), "text"), writer.prompts().count()));
    return true;
  }
  return writer.run(keep_going);
}

std::vector<TrainingStream::Share> shares_of_prompts(const OutputsPlan& plan,
                                                     const std::string& data) {
  if (plan.chat) return ChatRequests(plan.mixture, plan.seed, data, plan.split).shares(plan.count);
  return TrainingStream(plan.mixture, plan.seed, data, plan.split).shares();
}

std::vector<OwnOutput> read_own_outputs(const std::string& path,
                                        const OutputsPlan& plan,
                                        const NamedTarget* target) {
  const Lines lines = whole_lines(path);
  if (lines.line.empty()) throw Error(ErrorCode::BadInput, path + ": holds no texts");
  const ordered_json wanted =
      target ? ordered_json{{"weights", target->weights_hash}} : ordered_json::object();
  check_origin(lines.line[0], wanted, path);
  std::vector<OwnOutput> outputs;
  for (std::size_t i = 1; i < lines.line.size(); i++) {
    OwnOutput output = from_line(lines.line[i], path + ":" + std::to_string(i + 1));
    if (plan.drop_wrong && output.right == false) continue;
    for (const TokenId token : output.tokens) {
      if (token < 0 || (target && token >= target->model.config().vocab_size))
        throw Error(ErrorCode::BadInput, path + ":" + std::to_string(i + 1) + ": tokens: found " +
                                             std::to_string(token) +
                                             ", which the target does not have");
    }
    outputs.push_back(std::move(output));
  }
  std::sort(outputs.begin(), outputs.end(),
            [](const OwnOutput& a, const OwnOutput& b) { return a.index < b.index; });
  return outputs;
}

}  // namespace engine

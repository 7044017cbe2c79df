#include "engine/data/data_tool.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/data/readers.h"

namespace engine {

namespace {

constexpr std::size_t kMaxNamed = 20;
constexpr const char* kStoppedLine = "stopped: the remaining records were not read\n";

// The pieces that a tokenizer with single digits and signs would give: words, single digits, single
// other characters. Spaces belong to none.
std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (std::isalpha(static_cast<unsigned char>(text[i])) != 0)
      while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end])) != 0) end++;
    if (text[i] != ' ') pieces.push_back(text.substr(i, end - i));
    i = end;
  }
  return pieces;
}

}  // namespace

std::string form_name(const Record& record) {
  const auto check = nlohmann::json::parse(record.check, nullptr, false);
  if (!check.is_object() || !check.contains("form") || !check["form"].is_string()) return "unnamed";
  return check["form"].get<std::string>();
}

namespace {

bool is_open_set(std::string_view name) {
  const std::vector<std::string> names = real_set_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<Record> records_of_set(std::string_view set, Split split, const std::string& data_dir) {
  if (data_dir.empty())
    throw Error(
        ErrorCode::Usage,
        fmt::format("{}: is an open data set, and no folder of data sets is given; use --data DIR "
                    "or set DECOSCOPE_DATA",
                    set));
  if (split == Split::Dev)
    throw Error(
        ErrorCode::Usage,
        fmt::format("--split dev: {} has train (training texts) and test (questions)", set));
  std::vector<Record> records = read_real_set(set, split, data_dir);
  if (records.empty())
    throw Error(ErrorCode::Usage,
                fmt::format("--split {}: {} has no such part; use --split {}", split_name(split),
                            set, split == Split::Train ? "test" : "train"));
  return records;
}

}  // namespace

std::int64_t generate_records(std::string_view task,
                              Split split,
                              int level,
                              std::int64_t start,
                              std::int64_t count,
                              const std::function<void(const std::string&)>& write,
                              const std::function<bool()>& stop,
                              const std::string& data_dir) {
  if (level < 1 || level > 3)
    throw Error(ErrorCode::Usage, fmt::format("--level: found {}, expected 1, 2 or 3", level));
  for (const auto& [option, number] : {std::pair("--start", start), std::pair("--count", count)}) {
    if (number >= 0 && number <= kMaxRecords) continue;
    throw Error(ErrorCode::Usage, fmt::format("{}: found {}, expected a whole number from 0 to {}",
                                              option, number, kMaxRecords));
  }
  std::int64_t n_written = 0;
  if (is_open_set(task)) {
    const std::vector<Record> records = records_of_set(task, split, data_dir);
    const auto end = static_cast<std::int64_t>(records.size());
    if (start >= end && count > 0)
      throw Error(ErrorCode::Usage,
                  fmt::format("--start: found {}, expected 0 to {}: {} has {} records in {}", start,
                              end - 1, task, end, split_name(split)));
    for (std::int64_t i = start; i < end && n_written < count && !(stop && stop()); i++) {
      write(to_json_line(records[static_cast<std::size_t>(i)]));
      n_written++;
    }
    return n_written;
  }
  const TaskGenerator& alone = task_generator(task);
  std::shared_ptr<const TaskGenerator> with_open;
  if (!data_dir.empty()) with_open = task_generator_with_open_texts(task, data_dir);
  const TaskGenerator& generator = with_open ? *with_open : alone;
  for (std::int64_t i = 0; i < count && !(stop && stop()); i++) {
    const auto record = generator.make(split, level, start + i);
    if (!record) continue;
    write(to_json_line(*record));
    n_written++;
  }
  return n_written;
}

int max_record_tokens(std::string_view task) {
  return task == "write" || task == "chat" ? 1024 : 512;
}

double copy_share_floor(std::string_view task) {
  struct Floor {
    std::string_view task;
    double share;
  };
  static constexpr Floor kFloors[] = {{"arith", 0.25}, {"kb", 0.20},     {"sql", 0.15},
                                      {"py", 0.30},    {"blocks", 0.35}, {"write", 0.15}};
  for (const Floor& floor : kFloors)
    if (floor.task == task) return floor.share;
  return 0;
}

DataCheck check_records(const std::vector<Record>& records, const std::function<bool()>& stop) {
  DataCheck out;
  for (const Record& record : records) {
    const CheckResult result = check_record(record, record.completion);
    if (stop && stop()) {
      out.stopped = true;
      break;
    }
    out.n_records++;
    out.n_correct += result.correct;
    out.n_skipped += result.skipped;
    if (!result.correct && !result.skipped && out.wrong.size() < kMaxNamed)
      out.wrong.push_back(record.id + ": " + result.reason);
  }
  return out;
}

double copy_share(std::string_view prompt, std::string_view completion) {
  const auto before = pieces_of(prompt);
  std::vector<std::string_view> all = before;
  for (const auto piece : pieces_of(completion)) all.push_back(piece);
  if (all.size() == before.size() || all.size() < 2) return 0;
  // A pool of 2-grams: for each piece the set of pieces that followed it so far.
  std::unordered_map<std::string_view, std::unordered_set<std::string_view>> followers;
  std::size_t n_copied = 0;
  for (std::size_t i = 1; i < all.size(); i++) {
    auto& seen = followers[all[i - 1]];
    if (i >= before.size()) n_copied += seen.contains(all[i]);
    seen.insert(all[i]);
  }
  return static_cast<double>(n_copied) / static_cast<double>(all.size() - before.size());
}

DataStats stats_of_records(const std::vector<Record>& records,
                           const CountTokens& n_tokens,
                           const std::function<bool()>& stop) {
  DataStats out;
  out.has_tokens = static_cast<bool>(n_tokens);
  std::unordered_set<std::string> texts;
  std::unordered_map<std::string, std::string> split_of_prompt;
  double share = 0;
  if (!records.empty()) out.copy_share_floor = copy_share_floor(records[0].task);
  for (const Record& record : records) {
    out.stopped = stop && stop();
    if (out.stopped) break;
    out.n_records++;
    if (record.task != records[0].task) out.copy_share_floor = 0;
    if (n_tokens) {
      const int n = n_tokens(record);
      out.mean_tokens += n;
      out.max_tokens = std::max(out.max_tokens, n);
      out.n_over_256 += n > kRecipeContext;
      out.n_over_512 += n > 512;
      out.n_too_long += n > max_record_tokens(record.task);
    }
    const std::size_t length = record.prompt.size() + record.completion.size();
    out.mean_chars += static_cast<double>(length);
    out.mean_prompt_chars += static_cast<double>(record.prompt.size());
    out.mean_completion_chars += static_cast<double>(record.completion.size());
    out.max_chars = std::max(out.max_chars, length);
    out.per_form[record.task + ": " + form_name(record)]++;
    share += copy_share(record.prompt, record.completion);
    out.n_duplicates += !texts.insert(record.prompt + '\0' + record.completion).second;
    if (!record.prompt.empty()) {
      const auto [it, fresh] = split_of_prompt.emplace(record.prompt, record.split);
      out.n_prompts_in_two_splits += !fresh && it->second != record.split;
    }
  }
  if (out.n_records == 0) return out;
  const auto n = static_cast<double>(out.n_records);
  out.mean_tokens /= n;
  out.mean_chars /= n;
  out.mean_prompt_chars /= n;
  out.mean_completion_chars /= n;
  out.copy_share = share / n;
  return out;
}

std::string describe(const DataStats& stats) {
  const std::string tokens =
      stats.has_tokens
          ? fmt::format(
                "mean {:.0f} tokens, longest {}; longer than {}: {}, than 512: {}, than "
                "their task allows: {}",
                stats.mean_tokens, stats.max_tokens, kRecipeContext, stats.n_over_256,
                stats.n_over_512, stats.n_too_long)
          : std::string("tokens not counted: no tokenizer");
  const std::string floor = stats.copy_share_floor > 0
                                ? fmt::format(" (wanted: {:.2f} or more)", stats.copy_share_floor)
                                : std::string();
  std::string text = fmt::format(
      "records          {}\nlength           {}\n                 mean {:.0f} characters (prompt "
      "{:.0f}, completion {:.0f}), longest {}\ncopy share       {:.2f}{}\nduplicates       "
      "{}\nprompts in two splits {}\n",
      stats.n_records, tokens, stats.mean_chars, stats.mean_prompt_chars,
      stats.mean_completion_chars, stats.max_chars, stats.copy_share, floor, stats.n_duplicates,
      stats.n_prompts_in_two_splits);
  for (const auto& [form, count] : stats.per_form)
    text += fmt::format("  {:<32} {}\n", form, count);
  if (stats.stopped) text += kStoppedLine;
  return text;
}

std::string describe(const DataCheck& check) {
  std::string text = fmt::format("records {}, correct {}, not checked {}, wrong {}\n",
                                 check.n_records, check.n_correct, check.n_skipped,
                                 check.n_records - check.n_correct - check.n_skipped);
  if (check.stopped) text += kStoppedLine;
  for (const auto& line : check.wrong) text += "  " + line + "\n";
  return text;
}

std::string to_json(const DataStats& stats) {
  const auto counted = [&](nlohmann::ordered_json value) {
    return stats.has_tokens ? std::move(value) : nlohmann::ordered_json(nullptr);
  };
  const auto floor = stats.copy_share_floor > 0 ? nlohmann::ordered_json(stats.copy_share_floor)
                                                : nlohmann::ordered_json(nullptr);
  return nlohmann::ordered_json{{"records", stats.n_records},
                                {"mean_tokens", counted(stats.mean_tokens)},
                                {"max_tokens", counted(stats.max_tokens)},
                                {"over_256_tokens", counted(stats.n_over_256)},
                                {"over_512_tokens", counted(stats.n_over_512)},
                                {"over_task_tokens", counted(stats.n_too_long)},
                                {"mean_chars", stats.mean_chars},
                                {"mean_prompt_chars", stats.mean_prompt_chars},
                                {"mean_completion_chars", stats.mean_completion_chars},
                                {"max_chars", stats.max_chars},
                                {"copy_share", stats.copy_share},
                                {"copy_share_floor", floor},
                                {"duplicates", stats.n_duplicates},
                                {"prompts_in_two_splits", stats.n_prompts_in_two_splits},
                                {"forms", stats.per_form},
                                {"stopped", stats.stopped}}
      .dump();
}

std::string to_json(const DataCheck& check) {
  return nlohmann::ordered_json{{"records", check.n_records},
                                {"correct", check.n_correct},
                                {"not_checked", check.n_skipped},
                                {"wrong", check.n_records - check.n_correct - check.n_skipped},
                                {"stopped", check.stopped},
                                {"reasons", check.wrong}}
      .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace engine

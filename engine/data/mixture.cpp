#include "engine/data/mixture.h"

#include <array>
#include <cctype>

#include <nlohmann/json.hpp>

#include "engine/data/readers.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

// Number of texts from which the mean length of a part is computed.
constexpr int kProbe = 64;

[[noreturn]] void refuse(const std::string& field, const std::string& what) {
  throw Error(ErrorCode::BadInput, "mixture: " + field + ": " + what);
}

void read_levels(const Json& levels, const std::string& field, std::array<int, 3>& out) {
  if (!levels.is_array() || levels.size() != 3) refuse(field, "expected three whole numbers");
  int total = 0;
  for (std::size_t i = 0; i < 3; i++) {
    if (!levels[i].is_number_integer() || levels[i].get<std::int64_t>() < 0 ||
        levels[i].get<std::int64_t>() > 1000)
      refuse(field, "expected whole numbers from 0 to 1000");
    out[i] = levels[i].get<int>();
    total += out[i];
  }
  if (total == 0) refuse(field, "found 0 for all levels, expected at least one above 0");
}

// The value of "open_texts". Refuses true if there is no folder, or the task has no open texts.
bool wants_open_texts(const Json& options, const std::string& name, const std::string& data_dir) {
  const auto it = options.find("open_texts");
  if (it == options.end()) return false;
  const std::string field = name + ".open_texts";
  if (!it->is_boolean()) refuse(field, "expected true or false");
  if (!it->get<bool>()) return false;
  if (open_sets_of_task(name).empty())
    refuse(field, "found true, but this part has no open texts; write, chat and plain have");
  if (data_dir.empty())
    refuse(field, "found no folder of open texts; give --data DIR or set DECOSCOPE_DATA");
  return true;
}

std::vector<Record> read_open_texts(const Json& options, const std::string& data_dir, Split split) {
  if (data_dir.empty())
    refuse("real", "found no folder of open texts; give --data DIR or set DECOSCOPE_DATA");
  std::vector<std::string> sets = default_training_sets();
  if (const auto it = options.find("sets"); it != options.end()) {
    sets.clear();
    if (!it->is_array()) refuse("real.sets", "expected a list of names");
    for (const Json& name : *it) {
      if (!name.is_string()) refuse("real.sets", "expected a list of names");
      sets.push_back(name.get<std::string>());
    }
  }
  std::vector<Record> texts;
  for (const std::string& set : sets)
    for (Record& record : read_real_set(set, split, data_dir)) texts.push_back(std::move(record));
  if (texts.empty()) refuse("real.sets", "found no training texts in these data sets");
  return texts;
}

}  // namespace

void find_answer(TrainingText& text) {
  const std::string& all = text.completion;
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; };
  text.answer_begin = text.answer_size = 0;
  for (const std::string_view phrase : {"answer is", "####", "Score:"}) {
    const std::size_t found = all.rfind(phrase);
    if (found == std::string::npos) continue;
    std::size_t begin = found + phrase.size();
    while (begin < all.size() && (all[begin] == ' ' || all[begin] == '(')) begin++;
    std::size_t end = begin;
    while (end < all.size() && is_word(static_cast<unsigned char>(all[end]))) end++;
    if (end == begin || begin < text.answer_begin) continue;
    text.answer_begin = begin;
    text.answer_size = end - begin;
  }
}

struct TrainingStream::Impl {
  struct Part {
    std::string name;
    const TaskGenerator* task = nullptr;             // null: open texts
    std::shared_ptr<const TaskGenerator> with_open;  // the task with its own open texts, or null
    std::vector<Record> texts;
    std::array<int, 3> levels{2, 5, 3};
    double weight = 0;
    double mean_chars = 0;
    std::uint32_t threshold = 0;  // cumulative share of texts, in units of 2^-32
    double share = 0;
  };

  std::uint64_t seed = 0;
  Split split = Split::Train;
  std::vector<Part> parts;

  // After full_size() texts of the part each open text has occurred as often as allowed; the generator
  // without open texts takes over.
  static const TaskGenerator& generator(const Part& part, std::int64_t index) {
    if (!part.with_open) return *part.task;
    const auto full = static_cast<double>(part.with_open->full_size());
    const bool over = full > 0 && static_cast<double>(index) * part.share >= full;
    return over ? *part.task : *part.with_open;
  }

  Record of_part(const Part& part, Random& rng, std::int64_t index) const {
    if (part.task == nullptr) return rng.pick(part.texts);
    const int level = 1 + rng.weighted({part.levels[0], part.levels[1], part.levels[2]});
    auto record = generator(part, index).make(split, level, index);
    if (!record) kernels::throw_contract_error("a generator found no training record");
    record->task = part.name;
    return std::move(*record);
  }

  void settle_shares() {
    double total = 0;
    for (Part& part : parts) {
      std::size_t chars = 0;
      for (int i = 0; i < kProbe; i++) {
        Random rng(fnv1a("probe/" + part.name + "/" + std::to_string(i)));
        const auto text = of_part(part, rng, i);
        chars += text.prompt.size() + text.completion.size();
      }
      part.mean_chars = static_cast<double>(chars) / kProbe;
      total += part.weight / part.mean_chars;
    }
    double sum = 0;
    for (Part& part : parts) {
      part.share = part.weight / part.mean_chars / total;
      sum += part.share;
      part.threshold = static_cast<std::uint32_t>(std::min(sum, 1.0) * 4294967295.0);
    }
    parts.back().threshold = 0xffffffffu;
  }
};

TrainingStream::TrainingStream(std::string_view recipe_json,
                               std::uint64_t seed,
                               std::string data_dir,
                               Split split) {
  const Json recipe = Json::parse(recipe_json, nullptr, false);
  if (!recipe.is_object() || recipe.empty()) refuse("recipe", "expected a JSON object of parts");
  auto impl = std::make_unique<Impl>();
  impl->seed = seed;
  impl->split = split;
  for (const auto& [name, options] : recipe.items()) {
    if (!options.is_object()) refuse(name, "expected an object with a weight");
    Impl::Part part;
    part.name = name;
    const auto weight = options.find("weight");
    if (weight == options.end() || !weight->is_number() || !(weight->get<double>() >= 0))
      refuse(name + ".weight", "expected a number >= 0");
    part.weight = weight->get<double>();
    if (part.weight == 0) continue;
    if (name == "real") {
      part.texts = read_open_texts(options, data_dir, split);
    } else {
      part.task = &task_generator(name);
      if (wants_open_texts(options, name, data_dir))
        part.with_open = task_generator_with_open_texts(name, data_dir);
    }
    if (options.contains("levels")) read_levels(options["levels"], name + ".levels", part.levels);
    impl->parts.push_back(std::move(part));
  }
  if (impl->parts.empty()) refuse("recipe", "found no part with a weight above 0");
  impl->settle_shares();
  impl_ = std::move(impl);
}

TrainingStream::~TrainingStream() = default;
TrainingStream::TrainingStream(TrainingStream&&) noexcept = default;

Record TrainingStream::record(std::int64_t index) const {
  Random rng(fnv1a("mixture/" + std::to_string(impl_->seed) + "/" + std::to_string(index)));
  const std::uint32_t draw = rng.bits();
  for (const Impl::Part& part : impl_->parts)
    if (draw <= part.threshold) return impl_->of_part(part, rng, index);
  return impl_->of_part(impl_->parts.back(), rng, index);
}

TrainingText TrainingStream::text(std::int64_t index) const {
  Record record = this->record(index);
  TrainingText text{.prompt = std::move(record.prompt),
                    .completion = std::move(record.completion),
                    .part = std::move(record.task)};
  find_answer(text);
  return text;
}

std::vector<TrainingStream::Share> TrainingStream::shares() const {
  std::vector<Share> out;
  for (const Impl::Part& part : impl_->parts)
    out.push_back({part.name, part.share, part.mean_chars});
  return out;
}

}  // namespace engine

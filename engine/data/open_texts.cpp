#include "engine/data/open_texts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/data/chat_requests.h"
#include "engine/data/readers.h"
#include "engine/data/real_set.h"
#include "engine/data/text.h"

namespace engine {

namespace {

constexpr int kMinWords = 6, kMaxWords = 20;

// Capitalised first words that are no names.
constexpr std::string_view kNotNames[] = {
    "A",     "About",  "After",     "All",     "Also",   "Although", "An",    "And",      "Another",
    "Any",   "As",     "At",        "Because", "Before", "Both",     "But",   "By",       "Can",
    "Do",    "Does",   "During",    "Each",    "Eight",  "Even",     "Every", "Everyone", "Few",
    "Five",  "For",    "Four",      "From",    "Given",  "Half",     "He",    "Her",      "Here",
    "His",   "How",    "I",         "If",      "In",     "Is",       "It",    "Its",      "Last",
    "Many",  "Most",   "My",        "Nine",    "No",     "Not",      "Of",    "On",       "Once",
    "One",   "Only",   "Our",       "Out",     "People", "Seven",    "She",   "Since",    "Six",
    "So",    "Some",   "Someone",   "Such",    "Ten",    "That",     "The",   "Their",    "Then",
    "There", "These",  "They",      "This",    "Those",  "Three",    "To",    "Today",    "Two",
    "Under", "Unlike", "We",        "What",    "When",   "Where",    "Which", "While",    "Who",
    "Why",   "With",   "Yesterday", "You",     "Your"};

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"'; });
}

// The first sentence of the question of a record of gsm8k, commonsenseqa or creak.
std::string first_sentence(const Record& record) {
  const auto sentences = sentences_in(std::string(trimmed(question_of(record))));
  return sentences.empty() ? std::string() : sentences.front();
}

bool can_end_a_paragraph(const std::string& sentence) {
  const auto n_words = 1 + std::count(sentence.begin(), sentence.end(), ' ');
  return n_words >= kMinWords && n_words <= kMaxWords && is_plain(sentence) &&
         sentence.back() == '.' && !sentence.ends_with("Mr.") && !sentence.ends_with("Mrs.") &&
         !sentence.ends_with("Dr.") && !sentence.ends_with("St.");
}

}  // namespace

std::string leading_name(std::string_view sentence) {
  std::vector<std::string> name;
  for (const std::string& word : split_text(sentence, ' ')) {
    const bool is_name =
        word.size() > 1 && std::isupper(static_cast<unsigned char>(word[0])) != 0 &&
        std::ranges::all_of(
            word, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    if (is_name) {
      name.push_back(word);
      continue;
    }
    // A lower-case word has to follow the name: this leaves out "Anna's" and "Anna,".
    const bool is_lower = !word.empty() && std::islower(static_cast<unsigned char>(word[0])) != 0;
    if (!is_lower) return {};
    break;
  }
  if (name.empty() || std::ranges::find(kNotNames, name[0]) != std::end(kNotNames)) return {};
  return joined(name, " ");
}

std::vector<std::string> open_sets_of_task(std::string_view task) {
  if (task == "write") return {"gsm8k", "commonsenseqa", "creak"};
  if (task == "chat") return {"taskmaster4", "self_instruct"};
  if (task == "plain") return {"tinyshakespeare", "creak", "strategyqa"};
  return {};
}

std::vector<OpenSentence> open_sentences(const std::string& data_dir) {
  std::set<std::string> evaluated;  // sentences of the evaluation sets
  for (const std::string& set : open_sets_of_task("write"))
    for (const Record& record : read_real_set(set, Split::Test, data_dir))
      evaluated.insert(normalised(first_sentence(record)));
  for (const Record& record : read_real_set("creative_writing", Split::Test, data_dir)) {
    const auto check = nlohmann::json::parse(record.check);
    for (const auto& sentence : check.at("sentences"))
      evaluated.insert(normalised(sentence.get<std::string>()));
  }
  std::vector<OpenSentence> sentences;
  std::set<std::string> seen;
  for (const std::string& set : open_sets_of_task("write")) {
    for (const Record& record : read_real_set(set, Split::Train, data_dir)) {
      if (set == "creak" && record.answer != "yes") continue;  // false claims about people
      std::string text = first_sentence(record);
      if (text.empty() || !can_end_a_paragraph(text)) continue;
      std::string subject = leading_name(text);
      const std::string plain = normalised(text);
      if (subject.empty() || evaluated.contains(plain) || !seen.insert(plain).second) continue;
      sentences.push_back({std::move(text), std::move(subject), set});
    }
  }
  return sentences;
}

void OpenPool::add(Record record, int n_times) {
  const int split = static_cast<int>(split_from_name(record.split));
  slots_[split].insert(slots_[split].end(), static_cast<std::size_t>(n_times),
                       static_cast<int>(texts_[split].size()));
  texts_[split].push_back(std::move(record));
}

const Record* OpenPool::draw(Random& rng, Split split) const {
  const int n_open = static_cast<int>(slots(Split::Train).size());
  if (n_open == 0 || slots(split).empty() || rng.below(n_own_ + n_open) < n_own_) return nullptr;
  return &texts(split)[rng.pick(slots(split))];
}

std::int64_t OpenPool::full_size() const {
  const auto n_open = static_cast<std::int64_t>(slots(Split::Train).size());
  return n_open == 0 ? 0 : n_own_ + n_open;
}

}  // namespace engine

#include "engine/data/arith/answers.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "engine/data/text.h"

namespace engine {

namespace {

constexpr std::int64_t kLimit = 1'000'000'000'000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Reads a whole number at the beginning of the text and removes it.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) {
    value = 10 * value + (text[n] - '0');
    if (value > kLimit) return std::nullopt;
    n++;
  }
  if (n == 0) return std::nullopt;
  text.remove_prefix(n);
  return value;
}

std::optional<std::int64_t> take_product(std::string_view& text) {
  auto value = take_number(text);
  while (value && !text.empty() && (text[0] == '*' || text[0] == '/')) {
    const char op = text[0];
    text.remove_prefix(1);
    const auto right = take_number(text);
    if (!right) return std::nullopt;
    if (op == '*') {
      if (*right != 0 && std::abs(*value) > kLimit / *right) return std::nullopt;
      value = *value * *right;
    } else {
      if (*right == 0 || *value % *right != 0) return std::nullopt;
      value = *value / *right;
    }
  }
  return value;
}

}  // namespace

std::optional<std::int64_t> evaluate_expression(std::string_view expression) {
  auto value = take_product(expression);
  while (value && !expression.empty() && (expression[0] == '+' || expression[0] == '-')) {
    const char op = expression[0];
    expression.remove_prefix(1);
    const auto right = take_product(expression);
    if (!right) return std::nullopt;
    value = op == '+' ? *value + *right : *value - *right;
    if (std::abs(*value) > kLimit) return std::nullopt;
  }
  return expression.empty() ? value : std::nullopt;
}

std::string wrong_mark(std::string_view text) {
  for (std::size_t at = text.find("<<"); at != std::string_view::npos;
       at = text.find("<<", at + 2)) {
    const auto end = text.find(">>", at);
    if (end == std::string_view::npos) return "a mark lacks its >>";
    const std::string_view mark = text.substr(at + 2, end - at - 2);
    const auto equals = mark.find('=');
    if (equals == std::string_view::npos) return "a mark lacks '=': " + std::string(mark);
    const auto value = evaluate_expression(mark.substr(0, equals));
    std::string_view result = mark.substr(equals + 1);
    const auto claimed = take_number(result);
    std::string_view after = text.substr(end + 2);
    const auto repeated = take_number(after);
    if (!value || !claimed || !result.empty() || *value != *claimed)
      return "wrong sum: " + std::string(mark);
    if (!repeated || *repeated != *claimed)
      return "the number after the mark differs from its result: " + std::string(mark);
  }
  return {};
}

std::optional<std::int64_t> last_number(std::string_view text, std::string_view trigger) {
  if (!trigger.empty()) {
    const auto at = text.rfind(trigger);
    if (at == std::string_view::npos) return std::nullopt;
    text = text.substr(at + trigger.size());
  }
  std::optional<std::int64_t> last;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_digit(text[i])) {
      i++;
      continue;
    }
    const bool negative = i > 0 && text[i - 1] == '-' && (i < 2 || !is_digit(text[i - 2]));
    std::string digits;
    while (i < text.size() && (is_digit(text[i]) ||
                               (text[i] == ',' && i + 1 < text.size() && is_digit(text[i + 1])))) {
      if (text[i] != ',') digits += text[i];
      i++;
    }
    bool whole = true;
    if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])) {
      for (i++; i < text.size() && is_digit(text[i]); i++) whole &= text[i] == '0';
    }
    std::string_view rest = digits;
    const auto value = take_number(rest);
    last.reset();
    if (whole && value && rest.empty()) last = negative ? -*value : *value;
  }
  return last;
}

CheckResult check_final_number(std::string_view text,
                               std::int64_t answer,
                               std::string_view trigger) {
  const auto found = last_number(text, trigger);
  if (!found)
    return {false, trigger.empty() ? "found no number"
                                   : "found no number after '" + std::string(trigger) + "'"};
  if (*found != answer)
    return {false, "found " + std::to_string(*found) + ", expected " + std::to_string(answer)};
  const std::string wrong = wrong_mark(text);
  return {wrong.empty(), wrong};
}

std::optional<char> chosen_letter(std::string_view text) {
  constexpr std::string_view kTrigger = "answer is";
  const auto at = text.rfind(kTrigger);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + kTrigger.size());
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i < rest.size(); i++) {
    if (rest[i] < 'A' || rest[i] > 'E') continue;
    const bool free_left = i == 0 || !is_word(rest[i - 1]);
    const bool free_right = i + 1 == rest.size() || !is_word(rest[i + 1]);
    if (free_left && free_right) return rest[i];
  }
  return std::nullopt;
}

CheckResult check_choice(std::string_view text, std::string_view answer) {
  const auto letter = chosen_letter(text);
  if (!letter) return {false, "found no letter after 'answer is'"};
  if (std::string_view(&*letter, 1) != answer)
    return {false, std::string("found ") + *letter + ", expected " + std::string(answer)};
  const std::string wrong = wrong_mark(text);
  return {wrong.empty(), wrong};
}

CheckResult check_yes_no(std::string_view text, std::string_view answer) {
  constexpr std::string_view kTrigger = "answer is";
  const auto at = text.rfind(kTrigger);
  if (at == std::string_view::npos) return {false, "found no 'answer is'"};
  for (const std::string& word : split_text(normalised(text.substr(at + kTrigger.size())), ' ')) {
    if (word != "yes" && word != "no") continue;
    if (word == answer) return {true, {}};
    return {false, "found " + word + ", expected " + std::string(answer)};
  }
  return {false, "found neither yes nor no after 'answer is'"};
}

namespace {

struct FoundNumber {
  double value;
  std::size_t begin, end;
};

// The first number at or after `from` that is not part of a word: "-3", "8.5".
std::optional<FoundNumber> number_from(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i < text.size(); i++) {
    if (!is_digit(text[i])) continue;
    const std::size_t begin = i;
    while (i < text.size() &&
           (is_digit(text[i]) || (text[i] == '.' && i + 1 < text.size() && is_digit(text[i + 1]))))
      i++;
    if (begin > 0 && std::isalpha(static_cast<unsigned char>(text[begin - 1])) != 0) continue;
    const bool negative = begin > 0 && text[begin - 1] == '-';
    double value = 0;
    if (std::from_chars(text.data() + begin, text.data() + i, value).ec != std::errc())
      value = std::numeric_limits<double>::infinity();
    return FoundNumber{negative ? -value : value, begin, i};
  }
  return std::nullopt;
}

// True if the text after a number makes it the lower end of a range: "1 to 10", "1-10".
bool begins_range(std::string_view after) {
  while (!after.empty() && after.front() == ' ') after.remove_prefix(1);
  for (const std::string_view mark : {"to ", "-", "\u2013"}) {
    if (!after.starts_with(mark)) continue;
    after.remove_prefix(mark.size());
    while (!after.empty() && after.front() == ' ') after.remove_prefix(1);
    return !after.empty() && is_digit(after.front());
  }
  return false;
}

constexpr std::string_view kScore = "score";

// The first number of a text, without the numbers of ranges.
std::optional<FoundNumber> number_outside_ranges(std::string_view text) {
  auto found = number_from(text, 0);
  while (found && begins_range(text.substr(found->end))) {
    found = number_from(text, found->end);  // the upper end
    if (found) found = number_from(text, found->end);
  }
  return found;
}

// The text up to the end of its first line with a word: the reasons after it contain numbers too.
std::string_view first_line(std::string_view text) {
  const auto first_word =
      std::ranges::find_if(text, [](unsigned char c) { return std::isalnum(c) != 0; });
  return text.substr(0, text.find('\n', static_cast<std::size_t>(first_word - text.begin())));
}

std::optional<FoundNumber> first_score(std::string_view text, std::string_view small) {
  const auto word = small.find(kScore);
  std::string_view after =
      trimmed(text.substr(word == std::string_view::npos ? 0 : word + kScore.size()));
  if (word == std::string_view::npos && (after.empty() || !is_digit(after.front())))
    return std::nullopt;
  auto found = number_outside_ranges(first_line(after));
  if (found) found->begin += static_cast<std::size_t>(after.data() - text.data());
  return found;
}

std::optional<FoundNumber> last_score(std::string_view text, std::string_view small) {
  const auto is_letter = [&](std::size_t i) {
    return i < small.size() && std::isalpha(static_cast<unsigned char>(small[i])) != 0;
  };
  for (auto at = small.rfind(kScore); at != std::string_view::npos;
       at = at == 0 ? at - 1 : small.rfind(kScore, at - 1)) {
    const std::size_t end = at + kScore.size();
    if ((at > 0 && is_letter(at - 1)) || is_letter(end)) continue;  // "scored"
    auto found = number_outside_ranges(first_line(text.substr(end)));
    // "the score is low, for 2 lines are wrong"
    if (!found || text.substr(end, found->begin).find_first_of(".,;") != std::string_view::npos)
      continue;
    found->begin += end;
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundScore> find_score(std::string_view text, ScorePlace place) {
  std::string small(text);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto found =
      place == ScorePlace::First ? first_score(text, small) : last_score(text, small);
  if (!found || found->value < 0 || found->value > 10) return std::nullopt;
  return FoundScore{found->value, found->begin};
}

std::optional<double> read_score(std::string_view text, ScorePlace place) {
  const auto score = find_score(text, place);
  return score ? std::optional(score->value) : std::nullopt;
}

CheckResult check_score(std::string_view text, bool good) {
  const auto score = read_score(text);
  if (!score || *score < 1) return {false, "found no score from 1 to 10"};
  if ((*score > 5) != good)
    return {false, std::string("expected a score ") + (good ? "above 5" : "of 5 or less")};
  return {true, {}};
}

}  // namespace engine

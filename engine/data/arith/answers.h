// Reads answers out of completions: calculator marks, final numbers, letters, scores.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/data/record.h"

namespace engine {

/// Evaluates an expression of whole numbers with + - * / and the usual precedence.
/// @return  nothing for other text, a division with a remainder, or a value above 10^12
std::optional<std::int64_t> evaluate_expression(std::string_view expression);

/// Recomputes every mark `<<11+33=44>>44` of a text, and compares the number after it.
/// @return  empty if all are right, else the first wrong mark
std::string wrong_mark(std::string_view text);

/// The last number after the last `trigger`, or of the whole text for "". Ignores commas within the
/// number and a trailing ".0". @return  nothing if there is no number, or it is not whole
std::optional<std::int64_t> last_number(std::string_view text, std::string_view trigger);

/// Correct if all marks are right and last_number() is the answer.
CheckResult check_final_number(std::string_view text,
                               std::int64_t answer,
                               std::string_view trigger);

/// The first option letter (A to E) after the last "answer is", in parentheses or as a word of its own.
std::optional<char> chosen_letter(std::string_view text);

/// Correct if all marks are right and chosen_letter() is the answer.
CheckResult check_choice(std::string_view text, std::string_view answer);

/// Correct if the first "yes" or "no" after the last "answer is" is the answer.
CheckResult check_yes_no(std::string_view text, std::string_view answer);

/// A score in a text.
struct FoundScore {
  double value = 0;       // 0 to 10
  std::size_t begin = 0;  // byte at which its number begins
};
/// Where an evaluation states its score.
enum class ScorePlace : std::uint8_t {
  First,  ///< before the explanation
  Last,   ///< after it, as the conclusion
};
/// The score of an evaluation. Finds 8 in "8/10", "8 out of 10" and "from 1 to 10: 8".
///   First  the first number after the first word "score", or the number at the beginning of a text
///          without that word
///   Last   the first number after the last word "score" that has one in its line and its clause
/// @return  nothing if there is no score, or it is outside 0..10
std::optional<FoundScore> find_score(std::string_view text, ScorePlace place = ScorePlace::First);
/// The value of find_score().
std::optional<double> read_score(std::string_view text, ScorePlace place = ScorePlace::First);

/// Correct if the score is above 5 for a good step, or 1 to 5 for a bad one.
CheckResult check_score(std::string_view text, bool good);

}  // namespace engine

// Chat dialogs that ask for letters, for paragraphs and for a persona.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/data/chat/dialog.h"
#include "engine/data/text.h"
#include "engine/data/write/paragraphs.h"
#include "engine/data/write/passage.h"
#include "engine/data/write/words.h"

namespace engine {

namespace {

using Json = nlohmann::json;

// --- letters -------------------------------------------------------------------------------------

// A purpose of a letter. {0} is a thing, {1} a day.
struct Purpose {
  std::string_view wish;  // "to give thanks for {0} that came on {1}"
  std::string_view word;  // occurs in every wording; the checker looks for it
  std::string_view wordings[4];
};
constexpr Purpose kPurposes[] = {
    {"to give thanks for {0} that came on {1}",
     "thank",
     {"thank you for {0}. It came on {1} and I like it.",
      "I want to thank you for {0}. I found it here on {1}.",
      "many thanks for {0}. It was good to have it on {1}.",
      "I got {0} on {1}. I thank you with all my heart."}},
    {"to invite the reader on {1} to look at {0}",
     "come",
     {"please come to us on {1}. You can look at {0}.",
      "will you come on {1}? I want to show you {0}.",
      "can you come here on {1}? There will be {0} to see.",
      "come and see {0} on {1}. We would all be glad."}},
    {"to say sorry for {0} that was lost on {1}",
     "sorry",
     {"I am sorry. On {1} I lost {0}.", "I am so sorry about {0}. It was lost on {1}.",
      "sorry for {0}. I left it on the train on {1}.",
      "on {1} {0} was lost. I am sorry about that."}},
    {"to ask for {0} until {1}",
     "need",
     {"I need {0} until {1}. Can you help me?", "can I have {0}? I need it until {1}.",
      "we need {0}. You will have it back on {1}.", "may I ask you for {0}? I need it on {1}."}},
    {"to complain that {0} of {1} is broken",
     "broken",
     {"{0} that I bought on {1} is broken.", "on {1} I bought {0}. Now it is broken.",
      "I have to tell you that {0} of {1} is broken.", "{0} came on {1} and it was broken."}},
    {"to offer {0} for sale on {1}",
     "sell",
     {"I sell {0}. You can look at it on {1}.", "do you want {0}? I will sell it on {1}.",
      "on {1} I am going to sell {0}.", "I have to sell {0}, at best on {1}."}},
    {"to remind the reader of {0} on {1}",
     "forget",
     {"do not forget {0} on {1}.", "please do not forget: you wanted to bring {0} on {1}.",
      "on {1} we need {0}. You will not forget it, will you?",
      "{1} is the day. Please do not forget {0}."}},
    {"to tell that {0} will be sent on {1}",
     "send",
     {"I will send you {0} on {1}.", "on {1} we send {0} to your house.",
      "{0} is ready. We send it on {1}.", "I wanted to tell you that I send {0} on {1}."}},
    {"to ask where {0} of {1} is",
     "where",
     {"do you know where {0} is? I had it on {1}.",
      "I ask myself where {0} is. It was here on {1}.",
      "on {1} {0} was here. Now nobody knows where it is.",
      "can you tell me where {0} is? I want it on {1}."}},
    {"to tell how good {0} of {1} was",
     "good",
     {"{0} of {1} was very good.", "how good {0} was! I still think of {1}.",
      "I have to tell you how good {0} was on {1}.", "on {1} I had {0}. It was good."}}};

constexpr std::string_view kLetterThings[] = {
    "the lamp",   "the red book", "the cake",      "the letter",  "the small table", "the kite",
    "the basket", "the music",    "the new chair", "the concert", "the tulips",      "the photo",
    "the bottle", "the puzzle",   "the old map",   "the ticket",  "the white boat",  "the garden"};
constexpr std::string_view kDays[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                      "Friday", "Saturday", "Sunday"};
constexpr int kNameSubjects = 40;  // the first subjects are names

struct Letter {
  int purpose = 0, wording = 0;
  std::string greeting, close, to, from, thing, day;

  std::string text() const {
    return greeting + " " + to + ",\n" +
           capitalised(fill(kPurposes[purpose].wordings[wording], {thing, day})) + "\n" + close +
           ",\n" + from;
  }
};

std::string some_name(Random& rng) {
  return std::string(write_subjects()[rng.below(kNameSubjects)].phrase);
}

ChatTurn letter_turn(std::string question, const Letter& letter, const Json& not_in_it) {
  const Json check = {{"form", "letter"},
                      {"to", letter.to},
                      {"from", letter.from},
                      {"holds", {letter.thing, letter.day, kPurposes[letter.purpose].word}},
                      {"holds_not", not_in_it}};
  return {std::move(question), letter.text(), "chat", check.dump(), "to " + letter.to};
}

std::optional<ChatDialog> letter_dialog(Random& rng, Split split) {
  Letter letter;
  letter.purpose = rng.below(static_cast<int>(std::size(kPurposes)));
  letter.wording = rng.below(4);
  letter.greeting = rng.one_of({"Dear", "Hello", "Good day,", "My dear"});
  letter.close = rng.one_of({"Yours", "With best wishes", "Greetings", "Your friend"});
  letter.to = some_name(rng);
  letter.from = some_name(rng);
  letter.thing = rng.pick(kLetterThings);
  letter.day = rng.pick(kDays);
  if (letter.to == letter.from ||
      split_of_key("letter|" + std::to_string(letter.purpose) + "|" + letter.to + "|" +
                   letter.from + "|" + letter.thing + "|" + letter.day) != split)
    return std::nullopt;
  const std::string wish = fill(kPurposes[letter.purpose].wish, {letter.thing, letter.day});
  ChatTurn first = letter_turn(
      fill(rng.one_of(
               {"Write a short letter from {0} to {1} {2}.", "Write an e-mail of {0} to {1} {2}.",
                "{0} wants to write to {1} {2}. Write it.", "Help {0} to write to {1}, {2}."}),
           {letter.from, letter.to, wish}),
      letter, Json::array());
  Letter other = letter;
  while (other.to == letter.to || other.to == letter.from) other.to = some_name(rng);
  while (other.day == letter.day) other.day = rng.pick(kDays);
  ChatTurn second =
      letter_turn(fill(rng.one_of({"Now to {0}, and with {1}.", "The same to {0}, but for {1}.",
                                   "Write it to {0} with {1} as the day.",
                                   "Make it a letter to {0} about {1}."}),
                       {other.to, other.day}),
                  other, {letter.to, letter.day});
  return ChatDialog{std::move(first), std::move(second)};
}

CheckResult check_letter(const Json& check, std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split_text(text, '\n'))
    if (!trimmed(line).empty()) lines.emplace_back(trimmed(line));
  if (lines.size() < 3)
    return {false, "found " + std::to_string(lines.size()) + " lines, expected at least 3"};
  const std::string to = check.at("to"), from = check.at("from");
  if (!lines.front().ends_with(to + ",")) return {false, "the first line does not address " + to};
  if (lines.back() != from) return {false, "the last line is not the name " + from};
  for (const auto& phrase : check.at("holds").get<std::vector<std::string>>())
    if (normalised(text).find(normalised(phrase)) == std::string::npos)  // "thank" in "thanks"
      return {false, "the letter lacks '" + phrase + "'"};
  for (const auto& phrase : check.at("holds_not").get<std::vector<std::string>>())
    if (names_phrase(text, phrase)) return {false, "the letter still contains '" + phrase + "'"};
  return {true, {}};
}

// --- paragraphs ----------------------------------------------------------------------------------

ChatTurn paragraph_turn(Random& rng,
                        int level,
                        std::string_view pattern,
                        const GivenSentence& given) {
  const std::string text =
      own_sentences(rng, level, given, draw_link(rng, 0, 2)) + " " + given.text;
  const Json check = {{"form", "passage"},
                      {"sentences", Json::array({given.text})},
                      {"subjects", Json::array({given.subject})},
                      {"sources", Json::array({given.source})}};
  return {fill(pattern, {given.text}), text, "write", check.dump(), "1 end sentence"};
}

std::optional<ChatDialog> paragraph_dialog(Random& rng, int level, Split split) {
  const auto given = draw_given_sentences(rng, level, 2, {});
  if (!given || split_of_key(normalised((*given)[0].text)) != split) return std::nullopt;
  ChatTurn first = paragraph_turn(
      rng, level,
      rng.one_of({"Write a short paragraph that ends with this sentence: {0}",
                  "Tell a short story. Its last sentence is: {0}", "End a paragraph with this: {0}",
                  "Make up a few sentences. The last one must be: {0}"}),
      (*given)[0]);
  ChatTurn second = paragraph_turn(
      rng, level,
      rng.one_of({"Now one that ends with this: {0}", "And what comes before this: {0}",
                  "The next one ends so: {0}", "Go on, up to this: {0}"}),
      (*given)[1]);
  return ChatDialog{std::move(first), std::move(second)};
}

// --- personas ------------------------------------------------------------------------------------

struct Persona {
  std::string_view who;
  int theme;  // theme of the persona's deeds, as in write_predicates()
};
constexpr Persona kPersonas[] = {
    {"a cook", 0},    {"a waiter", 0},    {"a baker", 0},       {"a gardener", 1},
    {"a farmer", 1},  {"a beekeeper", 1}, {"a tourist", 2},     {"a driver", 2},
    {"a postman", 2}, {"a sailor", 3},    {"a captain", 3},     {"a fisher", 3},
    {"a teacher", 4}, {"a student", 4},   {"an author", 4},     {"a singer", 5},
    {"a drummer", 5}, {"a dancer", 5},    {"a merchant", 6},    {"a customer", 6},
    {"a painter", 7}, {"a builder", 7},   {"a shepherd", 8},    {"a miner", 8},
    {"a hunter", 9},  {"a ranger", 9},    {"a programmer", 10}, {"a director", 10},
    {"a coach", 11},  {"a player", 11}};
static_assert(std::size(kPersonas) == 30);
constexpr std::string_view kTimes[] = {"today",     "on Monday", "last night",
                                       "last week", "on Sunday", "in May"};
constexpr std::string_view kCountWords[] = {"", "", "two", "three", "four", "five"};
constexpr std::string_view kLeads[] = {"I ", "Then I ", "After that I ", "Later I "};

// Sentences about n deeds that are not in `used`; adds them to it.
std::string deeds(Random& rng, int theme, int n, std::set<std::string>& used) {
  std::vector<std::string> sentences;
  while (static_cast<int>(sentences.size()) < n) {
    const std::string deed(rng.pick(write_predicates(theme)));
    if (!used.insert(deed).second) continue;
    const std::string_view lead = sentences.empty() ? kLeads[0] : rng.pick(kLeads);
    sentences.push_back(std::string(lead) + deed + ".");
  }
  return joined(sentences, " ");
}

ChatTurn deeds_turn(Random& rng,
                    std::string question,
                    const std::string& opening,
                    const Persona& persona,
                    int n,
                    std::set<std::string>& used) {
  const Json check = {{"form", "persona"},
                      {"opening", opening},
                      {"persona", persona.who},
                      {"n", n},
                      {"told", used}};
  const std::string text = deeds(rng, persona.theme, n, used);
  return {std::move(question), opening.empty() ? text : opening + " " + text, "chat", check.dump(),
          std::to_string(n) + " deeds"};
}

// The opening of the persona, then the expected number of its deeds, none of them used before.
CheckResult check_persona(const Json& check, std::string_view text) {
  const std::string who = check.at("persona");
  const auto persona = std::find_if(std::begin(kPersonas), std::end(kPersonas),
                                    [&](const Persona& p) { return p.who == who; });
  if (persona == std::end(kPersonas))
    throw Error(ErrorCode::BadInput, "check.persona: found " + who + ", expected a known persona");
  const std::string opening = check.at("opening");
  if (!text.starts_with(opening)) return {false, "the text does not begin with '" + opening + "'"};
  text.remove_prefix(opening.size());
  auto used = check.at("told").get<std::set<std::string>>();
  const auto theme = write_predicates(persona->theme);
  int n = 0;
  for (const std::string& part : split_text(text, '.')) {
    std::string_view deed = trimmed(part);
    if (deed.empty()) continue;
    const auto lead = std::find_if(std::rbegin(kLeads), std::rend(kLeads),
                                   [&](std::string_view l) { return deed.starts_with(l); });
    if (lead == std::rend(kLeads)) return {false, "'" + part.substr(0, 60) + "' is no deed"};
    deed.remove_prefix(lead->size());
    if (std::find(theme.begin(), theme.end(), deed) == theme.end())
      return {false, "'" + std::string(deed.substr(0, 60)) + "' is no deed of " + who};
    if (!used.insert(std::string(deed)).second) return {false, "found a deed twice"};
    n++;
  }
  if (n == check.at("n").get<int>()) return {true, {}};
  return {false, "found " + std::to_string(n) + " deeds, expected " + check.at("n").dump()};
}

}  // namespace

std::optional<ChatDialog> writing_dialog(Random& rng, int level, Split split) {
  return rng.chance(60) ? letter_dialog(rng, split) : paragraph_dialog(rng, level, split);
}

std::optional<ChatDialog> roleplay_dialog(Random& rng, int level, Split split) {
  const Persona& persona = rng.pick(kPersonas);
  const std::string name = some_name(rng);
  const std::string_view time = rng.pick(kTimes);
  const int n = rng.between(2, level + 2);
  if (split_of_key("persona|" + std::string(persona.who) + "|" + name + "|" + std::string(time) +
                   "|" + std::to_string(n)) != split)
    return std::nullopt;
  std::set<std::string> used;
  const std::string opening = fill(rng.one_of({"{0}, I am {1}.", "I am {1}, {0}.",
                                               "Hello {0}, I am {1}.", "Good day, {0}. I am {1}."}),
                                   {name, persona.who});
  ChatTurn first =
      deeds_turn(rng,
                 fill(rng.one_of({"You are {1} and talk to {0}. Tell {2} things that you did {3}.",
                                  "Be {1}. I am {0}. Which {2} things did you do {3}?",
                                  "Speak as {1} to {0}: {2} things of what you did {3}.",
                                  "Play {1}. {0} asks for {2} things you did {3}."}),
                      {name, persona.who, kCountWords[n], time}),
                 opening, persona, n, used);
  const int more = rng.between(1, 2);
  ChatTurn second = deeds_turn(
      rng,
      more == 1 ? std::string(rng.one_of({"And what else?", "One thing more.",
                                          "What did you do then?", "Tell one more thing."}))
                : std::string(rng.one_of({"Two things more, please.", "And two more things?",
                                          "Tell two more.", "What two things came then?"})),
      "", persona, more, used);
  return ChatDialog{std::move(first), std::move(second)};
}

std::optional<CheckResult> check_writing_turn(const Json& check, std::string_view text) {
  const std::string form = check.at("form");
  if (form == "letter") return check_letter(check, text);
  if (form == "persona") return check_persona(check, text);
  return std::nullopt;
}

}  // namespace engine

// The kb task: questions over a small knowledge base. Answers combine two or three facts of it.
//   key   (member, relation) for a choice or a denial: a question about a pair occurs in one split only,
//         while the facts it combines occur in all; for comparisons: members, attribute and count
#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/data/arith/answers.h"
#include "engine/data/kb/sentences.h"
#include "engine/data/kb/world.h"
#include "engine/data/tasks.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kMore[kKbAttributes] = {"heavier", "longer", "dearer", "longer lasting"};
constexpr std::string_view kLess[kKbAttributes] = {"lighter", "shorter", "cheaper",
                                                   "shorter lived"};
constexpr std::string_view kCounts[] = {"", "", "two", "three", "four", "five"};

void finish(Random& rng,
            Record& record,
            const std::string& question,
            const std::string& rationale) {
  if (rng.chance(50)) {
    record.prompt = "Q: " + question + "\nA:";
    record.completion = " " + rationale;
    return;
  }
  set_chat(record, question, rationale);
}

struct Option {
  std::string text;
  std::string why_not;  // the sentence that rules this option out; "" for the answer
};

// "green stems (B)": an option's letter follows its text, in the question and in the rationale. A small
// model learns quickly to copy forwards; it needs very many texts to learn to look up a preceding letter.
std::string with_letter(std::string text, const std::vector<Option>& options, std::size_t which) {
  const std::string& value = options[which].text;
  std::size_t at = text.find(value);
  while (at != std::string::npos && at > 0 && text[at - 1] != ' ') at = text.find(value, at + 1);
  ensure(at != std::string::npos, "a sentence about an option must contain the option's text");
  return text.insert(at + value.size(), std::string(" (") + static_cast<char>('A' + which) + ")");
}

std::size_t place_of(const std::vector<Option>& options, const std::string& text) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.text == text; });
  return static_cast<std::size_t>(found - options.begin());
}

// Builds a multiple-choice record. The deciding sentence is the first or the second one after the opening.
Record choice_record(Random& rng,
                     const std::string& question,
                     std::vector<Option> options,
                     std::vector<std::string> opening,
                     const std::string& deciding,
                     const char* form) {
  std::vector<std::string> ruled_out;  // texts of options
  const std::string answer = options[0].text;
  for (const Option& option : options)
    if (!option.why_not.empty()) ruled_out.push_back(option.text);
  rng.shuffle(ruled_out);
  ruled_out.resize(rng.between(3, 4));
  std::vector<std::string> sentences = std::move(opening);
  const int decided_at = static_cast<int>(sentences.size()) + rng.below(2);
  const auto conclusion =
      fill(rng.one_of({"Of the above choices, only {0} fits.", "So only {0} is left.",
                       "That leaves {0}.", "Among the choices only {0} is right."}),
           {answer});
  rng.shuffle(options);
  for (const std::string& text : ruled_out) {
    const std::size_t which = place_of(options, text);
    sentences.push_back(with_letter(options[which].why_not, options, which));
  }
  sentences.insert(sentences.begin() + decided_at, deciding);
  const std::size_t right = place_of(options, answer);
  sentences.push_back(with_letter(conclusion, options, right));
  std::string choices;
  for (std::size_t i = 0; i < options.size(); i++)
    choices += (i ? ", " : " ") + with_letter(options[i].text, options, i);
  Record record;
  record.answer = std::string(1, static_cast<char>('A' + right));
  record.check = Json{{"form", form},
                      {"answer", record.answer},
                      {"decided_at", decided_at},
                      {"n_sentences", sentences.size()}}
                     .dump();
  finish(rng, record, question + " Answer Choices:" + choices,
         joined(sentences, " ") + " So the answer is (" + record.answer + ").");
  return record;
}

// The completion continues a list from one of its entries. It needs no knowledge: it teaches the model to
// find an earlier text and to copy the text after it. Rationales about options need this, but few of their
// tokens teach it.
std::optional<Record> list_record(Random& rng, Split split) {
  const KbWorld& world = kb_world();
  const int n = rng.between(6, 12);
  const bool lettered = rng.chance(50), numbers = rng.chance(35);
  std::vector<std::string> entries;
  std::set<std::string> seen;
  while (static_cast<int>(entries.size()) < n) {
    std::string entry = numbers          ? std::to_string(rng.between(1, 999))
                        : rng.chance(50) ? rng.pick(world.classes).values[rng.below(kKbRelations)]
                                         : rng.pick(world.members).name;
    if (!seen.insert(entry).second) continue;
    if (lettered) entry += std::string(" (") + static_cast<char>('A' + rng.below(12)) + ")";
    entries.push_back(std::move(entry));
  }
  if (split_of_key(joined(entries, "|")) != split) return std::nullopt;
  const int from = rng.below(n - 3);
  const std::string list = joined(entries, ", ");
  const std::string rest = joined({entries.begin() + from + 1, entries.end()}, ", ");
  // The question names an entry without its letter, so the model has to find the letter too.
  const std::string at =
      lettered ? entries[from].substr(0, entries[from].find(" (")) : entries[from];
  Record record;
  record.answer = rest;
  record.check = Json{{"form", "list"}, {"rest", rest}}.dump();
  finish(rng, record,
         fill(rng.one_of({"Go on with the list {0} from {1}.", "{0}. What follows {1}?",
                          "Here is a list: {0}. Say it from {1} on.", "{0}. Begin at {1}."}),
              {list, at}),
         entries[from] + ", " + rest + ".");
  return record;
}

CheckResult check_list(std::string_view text, const std::string& rest) {
  const std::string text_words = normalised(text), expected = normalised(rest);
  if (!text_words.ends_with(expected)) return {false, "the list continues differently"};
  return {true, {}};
}

// member -> class -> value
std::optional<Record> two_hops(Random& rng, Split split) {
  const KbWorld& world = kb_world();
  const KbMember& m = rng.pick(world.members);
  const int relation = rng.below(kKbRelations);
  if (split_of_key(m.name + "|" + std::to_string(relation)) != split) return std::nullopt;
  const auto& words = kb_words_of(relation);
  const auto belongs = [&](int c, int r) {
    const std::string whose =
        std::string(rng.one_of({"But ", "And ", "No, ", "Well, "})) +
        fill(kb_words_of(r).belongs, {world.classes[c].values[r], kb_class_phrase(c)});
    return r == relation
               ? kb_sentence(whose + fill(rng.one_of({", not for {0}", ", but not for {0}",
                                                      " and not for {0}", ", which {0} is not"}),
                                          {kb_class_phrase(m.class_index)}))
               : kb_sentence(whose + fill(rng.one_of({", not {0}", ", so it is not {0}",
                                                      " but not {0}", " and not {0}"}),
                                          {words.sort}));
  };
  std::vector<Option> options = {{kb_class_of(m).values[relation], ""}};
  std::set<std::string> seen = {options[0].text};
  while (options.size() < 5) {
    int c = rng.below(static_cast<int>(world.classes.size()));
    int r = relation;
    if (options.size() == 3) c = m.class_index;
    if (options.size() >= 3) r = rng.below(kKbRelations);
    if (options.size() < 3 && c == m.class_index) continue;
    if (options.size() >= 3 && r == relation) continue;
    if (!seen.insert(world.classes[c].values[r]).second) continue;
    options.push_back({world.classes[c].values[r], belongs(c, r)});
  }
  const std::string must =
      kb_sentence(fill(rng.one_of({"the answer must be {0}", "we look for {0}",
                                   "the question asks for {0}", "wanted is {0}"}),
                       {words.sort}));
  return choice_record(rng, fill(rng.one_of(words.questions), {kb_member_phrase(m)}),
                       std::move(options), {must, kb_membership(rng, m)},
                       kb_fact(rng, m.class_index, relation), "choice, 2 hops");
}

// The hops: from a member to its class, to the thing that the class gives, to the class that needs
// it.
std::optional<Record> three_hops(Random& rng, Split split) {
  const KbWorld& world = kb_world();
  const KbMember& m = rng.pick(world.members);
  if (split_of_key(m.name + "|3") != split) return std::nullopt;
  const std::string& given = kb_class_of(m).values[kKbGives];
  const auto it = std::find_if(world.classes.begin(), world.classes.end(),
                               [&](const KbClass& c) { return c.values[kKbNeeds] == given; });
  if (it == world.classes.end()) return std::nullopt;
  const int answer = static_cast<int>(it - world.classes.begin());
  std::vector<Option> options = {{kb_class_phrase(answer), ""}};
  std::set<int> seen = {answer};
  while (options.size() < 5) {
    const int c = rng.below(static_cast<int>(world.classes.size()));
    if (!seen.insert(c).second) continue;
    options.push_back(
        {kb_class_phrase(c),
         kb_sentence(
             fill(rng.one_of({"but {0} needs {1}, not {2}", "well, {0} does not need {2}",
                              "no, {0} has no need of {2}", "and {0} needs {1} and not {2}"}),
                  {kb_class_phrase(c), world.classes[c].values[kKbNeeds], given}))});
  }
  return choice_record(rng,
                       fill(rng.one_of({"What needs the thing that {0} gives?",
                                        "For which of these is the gift of {0} needed?",
                                        "Which needs what comes from {0}?",
                                        "What cannot do without that which {0} gives?"}),
                            {kb_member_phrase(m)}),
                       std::move(options),
                       {kb_membership(rng, m), kb_fact(rng, m.class_index, kKbGives)},
                       kb_fact(rng, answer, kKbNeeds), "choice, 3 hops");
}

Record yes_no(Random& rng,
              const std::string& question,
              const std::vector<std::string>& facts,
              bool yes,
              const char* form) {
  Record record;
  record.answer = yes ? "yes" : "no";
  record.check = Json{{"form", form}, {"answer", record.answer}}.dump();
  finish(rng, record, question, joined(facts, " ") + " So the answer is " + record.answer + ".");
  return record;
}

// "Is a piano heavier than three cats?"
std::optional<Record> comparison(Random& rng, int level, Split split) {
  const KbWorld& world = kb_world();
  const KbMember& a = rng.pick(world.members);
  const KbMember& b = rng.pick(world.members);
  const int attribute = rng.below(kKbAttributes);
  const bool more = rng.chance(50);
  const bool countable =
      !kb_class_of(b).mass && attribute < 3 && !b.name.ends_with("s") && !b.name.ends_with("fly");
  const int count = level > 1 && countable && rng.chance(50) ? rng.between(2, 5) : 1;
  const int left = a.numbers[attribute];
  const int right = count * b.numbers[attribute];
  if (a.name == b.name || left == right) return std::nullopt;
  if (((left > right) == more) != rng.chance(50)) return std::nullopt;
  if (split_of_key(a.name + "|" + b.name + "|" + std::to_string(attribute) + "|" +
                   std::to_string(count)) != split)
    return std::nullopt;
  const std::string plural = b.name.ends_with("ch") ? b.name + "es" : b.name + "s";
  const std::string other =
      count > 1 ? std::string(kCounts[count]) + " " + plural : kb_member_phrase(b);
  std::vector<std::string> facts = {kb_number_fact(rng, a, attribute),
                                    kb_number_fact(rng, b, attribute)};
  if (rng.chance(50)) std::swap(facts[0], facts[1]);
  if (count > 1)
    facts.push_back(kb_sentence(fill(
        rng.one_of({"{0} make {1}*{2}=<<{1}*{2}={3}>>{3}", "{0} count {1}*{2}=<<{1}*{2}={3}>>{3}",
                    "for {0} that is {1}*{2}=<<{1}*{2}={3}>>{3}",
                    "{0} come to {1}*{2}=<<{1}*{2}={3}>>{3}"}),
        {other, std::to_string(count), std::to_string(b.numbers[attribute]),
         std::to_string(right)})));
  facts.push_back(kb_sentence(
      fill(left > right ? rng.one_of({"{0} is more than {1}", "{0} is above {1}",
                                      "{0} is greater than {1}", "{1} is less than {0}"})
                        : rng.one_of({"{0} is less than {1}", "{0} is below {1}",
                                      "{0} is smaller than {1}", "{1} is more than {0}"}),
           {std::to_string(left), std::to_string(right)})));
  return yes_no(rng,
                fill(rng.one_of({"Is {0} {1} than {2}?", "Would {0} be {1} than {2}?",
                                 "Is it true that {0} is {1} than {2}?",
                                 "Can one say that {0} is {1} than {2}?"}),
                     {kb_member_phrase(a), more ? kMore[attribute] : kLess[attribute], other}),
                facts, (left > right) == more, "yes/no, comparison");
}

// "Could a salmon live in a place where an owl is found?"
std::optional<Record> same_place(Random& rng, Split split) {
  const KbWorld& world = kb_world();
  const KbMember& a = rng.pick(world.members);
  const KbMember& b = rng.pick(world.members);
  const bool same = a.class_index == b.class_index;
  if (a.name == b.name || (!same && !rng.chance(5))) return std::nullopt;
  if (split_of_key(a.name + "|" + b.name + "|place") != split) return std::nullopt;
  std::vector<std::string> facts = {kb_membership(rng, a), kb_fact(rng, a.class_index, kKbFound),
                                    kb_membership(rng, b)};
  if (!same) facts.push_back(kb_fact(rng, b.class_index, kKbFound));
  facts.push_back(
      same ? std::string(rng.one_of({"Both are of one class.", "It is the same place.",
                                     "So they share the place.", "The places are the same."}))
           : std::string(rng.one_of({"These places differ.", "It is another place.",
                                     "So they share no place.", "The places are not the same."})));
  return yes_no(rng,
                fill(rng.one_of({"Could {0} be found where {1} is found?",
                                 "Is the place of {0} also the place of {1}?",
                                 "Would one find {0} and {1} in the same place?",
                                 "Does {0} belong where {1} belongs?"}),
                     {kb_member_phrase(a), kb_member_phrase(b)}),
                facts, same, "yes/no, composition");
}

// "Is it wrong that a salmon has fins?"
std::optional<Record> denial(Random& rng, Split split) {
  const KbWorld& world = kb_world();
  const KbMember& m = rng.pick(world.members);
  const int relation = rng.below(kKbRelations);
  if (split_of_key(m.name + "|" + std::to_string(relation)) != split) return std::nullopt;
  const bool claim_true = rng.chance(50);
  int c = m.class_index;
  while (!claim_true && c == m.class_index) c = rng.below(static_cast<int>(world.classes.size()));
  const bool negated = rng.chance(50);
  std::string claim = fill(*kb_words_of(relation).facts.begin(),
                           {kb_member_phrase(m), world.classes[c].values[relation]});
  claim[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(claim[0])));
  // The second fact names both the claimed value and the true one.
  std::vector<std::string> facts = {
      kb_membership(rng, m),
      fill(rng.one_of({"Claimed is {0}, known is {1}.", "The claim says {0}, the fact {1}.",
                       "It is said {0}, it is {1}.", "Asked is {0}, right is {1}."}),
           {world.classes[c].values[relation], kb_class_of(m).values[relation]})};
  facts.push_back(claim_true
                      ? std::string(rng.one_of({"The claim is true.", "That is the same.",
                                                "So the claim holds.", "The two agree."}))
                      : std::string(rng.one_of({"The claim is false.", "That is not the same.",
                                                "So the claim fails.", "The two differ."})));
  return yes_no(rng,
                fill(negated ? rng.one_of({"Is it wrong that {0}?", "Is it false that {0}?",
                                           "Would it be a mistake to say that {0}?",
                                           "Is it untrue that {0}?"})
                             : rng.one_of({"Is it true that {0}?", "Is it right that {0}?",
                                           "Can one say that {0}?", "Is it a fact that {0}?"}),
                     {claim}),
                facts, claim_true != negated, negated ? "yes/no, negation" : "yes/no, claim");
}

// A description of a member: its class, and some facts and numbers.
std::optional<Record> statement(Random& rng, Split split) {
  const KbMember& m = rng.pick(kb_world().members);
  std::vector<int> order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  rng.shuffle(order);
  order.resize(rng.between(3, 6));
  std::string key = m.name;
  for (const int i : order) key += "|" + std::to_string(i);
  if (split_of_key(key) != split) return std::nullopt;
  std::vector<std::string> parts = {kb_membership(rng, m)};
  for (const int i : order) parts.push_back(kb_topic_fact(rng, m, i));
  Record record;
  record.answer = kb_class_of(m).name;
  record.check = Json{{"form", "statement"}, {"member", m.name}}.dump();
  // The prompt names the topics, so that different content keys give different prompts.
  std::vector<std::string> topics;
  for (const int i : order) topics.emplace_back(kKbTopics[i]);
  finish(rng, record,
         fill(rng.one_of({"Describe {0}: {1}.", "Tell me about {0}: {1}.",
                          "What do you know about {0}? Say its {1}.",
                          "Write about {0}. Topics: {1}."}),
              {kb_member_phrase(m), enumerated(topics)}),
         joined(parts, " "));
  return record;
}

// Every sentence of the text must be true of the member.
CheckResult check_statement(std::string_view text, const std::string& name) {
  const KbMember* member = kb_member(name);
  if (member == nullptr)
    throw Error(ErrorCode::BadInput,
                "check.member: found " + name + ", expected a member of the knowledge base");
  return check_kb_sentences(text, kb_truths(*member));
}

class KbTask final : public TaskGenerator {
 public:
  std::string_view name() const override { return "kb"; }

  CheckResult check(const Record& record, std::string_view completion) const override {
    try {
      const Json check = Json::parse(record.check);
      const std::string form = check.at("form");
      const std::string_view text = completion_body(completion);
      if (form == "list") return check_list(text, check.at("rest"));
      if (form == "statement") return check_statement(text, check.at("member"));
      const std::string answer = check.at("answer");
      if (form.starts_with("choice")) return check_choice(text, answer);
      const CheckResult result = check_yes_no(text, answer);
      const std::string wrong = wrong_mark(text);
      return result.correct ? CheckResult{wrong.empty(), wrong} : result;
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, record.id + ": check: " + e.what());
    }
  }

 protected:
  std::optional<Record> draw(Random& rng, int level, Split split) const override {
    if (split == Split::Train && rng.chance(30)) return list_record(rng, split);
    switch (level == 1   ? rng.weighted({66, 0, 9, 6, 14, 5})
            : level == 2 ? rng.weighted({45, 5, 20, 15, 10, 5})
                         : rng.weighted({20, 40, 20, 10, 5, 5})) {
      case 0:
        return two_hops(rng, split);
      case 1:
        return three_hops(rng, split);
      case 2:
        return comparison(rng, level, split);
      case 3:
        return same_place(rng, split);
      case 4:
        return denial(rng, split);
      default:
        return statement(rng, split);
    }
  }
};

}  // namespace

std::unique_ptr<TaskGenerator> make_kb_task() {
  return std::make_unique<KbTask>();
}

}  // namespace engine

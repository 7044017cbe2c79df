#include "engine/data/kb/sentences.h"

#include <algorithm>

#include "engine/data/text.h"

namespace engine {

namespace {

constexpr std::string_view kKbScales[kKbAttributes] = {"weight", "length", "price", "age"};

// The wordings of a member's class and of its numbers.
const std::initializer_list<std::string_view> kMemberships = {
    "{0} is {1}", "{0} is a kind of {2}", "{0} belongs to the class {2}", "{0} counts as {1}"};
const std::initializer_list<std::string_view> kNumberFacts = {
    "{0} has {1} {2}", "the {1} of {0} is {2}", "{0} is of {1} {2}", "in {1} {0} counts {2}"};

std::string membership_in(std::string_view pattern, const KbMember& m) {
  return fill(pattern, {kb_member_phrase(m), kb_class_phrase(m.class_index), kb_class_of(m).name});
}

std::string number_in(std::string_view pattern, const KbMember& m, int attribute) {
  return fill(pattern,
              {kb_member_phrase(m), kKbScales[attribute], std::to_string(m.numbers[attribute])});
}

std::string fact_in(std::string_view pattern, int class_index, int relation) {
  return fill(pattern,
              {kb_class_phrase(class_index), kb_world().classes[class_index].values[relation]});
}

}  // namespace

const KbRelationWords& kb_words_of(int relation) {
  static const KbRelationWords kWords[kKbRelations] = {
      {{"Where would you find {0}?", "Where does {0} belong?", "In which place is {0} found?",
        "Where should one look for {0}?"},
       {"{0} is found in {1}", "{0} belongs in {1}", "One finds {0} in {1}",
        "The place of {0} is {1}"},
       "a place",
       "{0} is a place for {1}"},
      {{"What does {0} have?", "Which part belongs to {0}?", "What is a part of {0}?",
        "What can be seen on {0}?"},
       {"{0} has {1}", "{1} belong to the parts of {0}", "Part of {0} is {1}",
        "Typical of {0} is {1}"},
       "a part",
       "{0} is what {1} has"},
      {{"What can {0} do?", "What is {0} able to do?", "Which of these can {0} do?",
        "What does {0} do?"},
       {"{0} can {1}", "{0} is able to {1}", "What {0} can do is {1}", "{0} is known to {1}"},
       "something it does",
       "{0} is what {1} can do"},
      {{"What is {0} made of?", "Of what does {0} consist?", "What is the matter of {0}?",
        "What does {0} consist of?"},
       {"{0} is made of {1}", "{0} consists of {1}", "The matter of {0} is {1}",
        "{1} is what {0} is made of"},
       "a material",
       "{0} is the material of {1}"},
      {{"What is {0} used for?", "For what do people use {0}?", "What is {0} good for?",
        "What does one use {0} for?"},
       {"{0} is used for {1}", "People use {0} for {1}", "{0} is good for {1}",
        "{0} serves for {1}"},
       "a use",
       "{0} is the use of {1}"},
      {{"What does {0} need?", "What is needed by {0}?", "What must {0} have?",
        "Without what does {0} not last?"},
       {"{0} needs {1}", "{0} cannot do without {1}", "{1} is needed by {0}",
        "What {0} needs is {1}"},
       "something it needs",
       "{0} is needed by {1}"},
      {{"What does {0} give?", "What comes from {0}?", "What do people get from {0}?",
        "What is given by {0}?"},
       {"{0} gives {1}", "From {0} comes {1}", "People get {1} from {0}", "{0} brings {1}"},
       "something it gives",
       "{0} is given by {1}"},
      {{"What is the counterpart of {0}?", "What goes together with {0} as its opposite?",
        "What stands opposite to {0}?", "Which thing is the opposite of {0}?"},
       {"The opposite of {0} is the {1}", "{0} stands opposite to the {1}",
        "The counterpart of {0} is the {1}", "Opposite to {0} stands the {1}"},
       "a counterpart",
       "{0} is the opposite of {1}"}};
  return kWords[relation];
}

const KbClass& kb_class_of(const KbMember& m) {
  return kb_world().classes[m.class_index];
}

std::string kb_member_phrase(const KbMember& m) {
  return kb_phrase(kb_world(), m);
}

std::string kb_class_phrase(int class_index) {
  return with_article(kb_world().classes[class_index].name);
}

const KbMember* kb_member(std::string_view name) {
  const auto& members = kb_world().members;
  const auto it = std::find_if(members.begin(), members.end(),
                               [&](const KbMember& m) { return m.name == name; });
  return it == members.end() ? nullptr : &*it;
}

std::string kb_sentence(std::string_view text) {
  return capitalised(text) + ".";
}

std::string kb_fact(Random& rng, int class_index, int relation) {
  return kb_sentence(fact_in(rng.one_of(kb_words_of(relation).facts), class_index, relation));
}

std::string kb_membership(Random& rng, const KbMember& m) {
  return kb_sentence(membership_in(rng.one_of(kMemberships), m));
}

std::string kb_number_fact(Random& rng, const KbMember& m, int attribute) {
  return kb_sentence(number_in(rng.one_of(kNumberFacts), m, attribute));
}

std::string kb_topic_fact(Random& rng, const KbMember& m, int topic) {
  return topic < kKbRelations ? kb_fact(rng, m.class_index, topic)
                              : kb_number_fact(rng, m, topic - kKbRelations);
}

std::set<std::string> kb_truths_of_topic(const KbMember& member, int topic) {
  std::set<std::string> truths;
  if (topic < kKbRelations) {
    for (const auto pattern : kb_words_of(topic).facts)
      truths.insert(normalised(fact_in(pattern, member.class_index, topic)));
  } else {
    for (const auto pattern : kNumberFacts)
      truths.insert(normalised(number_in(pattern, member, topic - kKbRelations)));
  }
  return truths;
}

std::set<std::string> kb_truths(const KbMember& member) {
  std::set<std::string> truths;
  for (const auto pattern : kMemberships) truths.insert(normalised(membership_in(pattern, member)));
  for (int topic = 0; topic < kKbRelations + kKbAttributes; topic++)
    truths.merge(kb_truths_of_topic(member, topic));
  return truths;
}

CheckResult check_kb_sentences(std::string_view text, const std::set<std::string>& truths) {
  int n = 0;
  for (const std::string& part : split_text(text, '.')) {
    if (normalised(part).empty()) continue;
    if (!truths.contains(normalised(part)))
      return {false, "found a sentence that is no fact: " + part.substr(0, 80)};
    n++;
  }
  if (n < 2) return {false, "found fewer than two sentences"};
  return {true, {}};
}

}  // namespace engine

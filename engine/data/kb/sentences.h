// The facts of the knowledge base as sentences, in the wordings that all tasks share, and the set of all
// sentences that are true of a member.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "engine/data/kb/world.h"
#include "engine/data/random.h"
#include "engine/data/record.h"

namespace engine {

/// The relations of a class, as indices of KbClass::values.
enum KbRelation { kKbFound, kKbPart, kKbCan, kKbMade, kKbUsed, kKbNeeds, kKbGives, kKbPair };

/// The wordings of one relation.
struct KbRelationWords {
  std::initializer_list<std::string_view> questions;  ///< {0} member
  std::initializer_list<std::string_view> facts;      ///< {0} class, {1} value
  std::string_view sort;                              ///< the kind of answer: "a place"
  std::string_view belongs;                           ///< {0} value, {1} class that has it
};
/// The wordings of a KbRelation.
const KbRelationWords& kb_words_of(int relation);

/// The topics of facts about a member: eight relations, then four numbers.
inline constexpr std::string_view kKbTopics[kKbRelations + kKbAttributes] = {
    "place", "parts",    "doing",  "matter", "use",   "needs",
    "gifts", "opposite", "weight", "length", "price", "age"};

/// The class of a member.
const KbClass& kb_class_of(const KbMember& m);
/// kb_phrase() in kb_world(): "a salmon", "wheat".
std::string kb_member_phrase(const KbMember& m);
/// A class with its article: "a fish".
std::string kb_class_phrase(int class_index);
/// The member of that name; null if there is none.
const KbMember* kb_member(std::string_view name);

/// The text as a sentence: with a capital first letter and a full stop.
std::string kb_sentence(std::string_view text);
/// A fact of a class, in a drawn wording: "A fish is found in the sea."
std::string kb_fact(Random& rng, int class_index, int relation);
/// The class of a member, in a drawn wording: "A salmon is a fish."
std::string kb_membership(Random& rng, const KbMember& m);
/// A number of a member, in a drawn wording: "The weight of a salmon is 4."
std::string kb_number_fact(Random& rng, const KbMember& m, int attribute);
/// The fact of a topic, in a drawn wording. @param topic  index in kKbTopics
std::string kb_topic_fact(Random& rng, const KbMember& m, int topic);

/// All sentences that are true of a member, as normalised() text.
std::set<std::string> kb_truths(const KbMember& member);
/// The true sentences of one topic. @param topic  index in kKbTopics
std::set<std::string> kb_truths_of_topic(const KbMember& member, int topic);
/// Correct if the text consists of at least two sentences, and all are among `truths`.
CheckResult check_kb_sentences(std::string_view text, const std::set<std::string>& truths);

}  // namespace engine

// What can be said of the small world: its facts as sentences, in the wordings that every task
// uses, and all sentences that are true of a member.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "engine/data/kb/world.h"
#include "engine/data/random.h"
#include "engine/data/record.h"

namespace engine {

enum KbRelation { kKbFound, kKbPart, kKbCan, kKbMade, kKbUsed, kKbNeeds, kKbGives, kKbPair };

struct KbRelationWords {
  std::initializer_list<std::string_view> questions;  ///< {0} member
  std::initializer_list<std::string_view> facts;      ///< {0} class, {1} value
  std::string_view sort;                              ///< "The answer must be {sort}."
  std::string_view belongs;                           ///< {0} value, {1} class: whose it is
};
const KbRelationWords& kb_words_of(int relation);

/// The names of what can be told of a member: eight relations, then four numbers.
inline constexpr std::string_view kKbTopics[kKbRelations + kKbAttributes] = {
    "place", "parts",    "doing",  "matter", "use",   "needs",
    "gifts", "opposite", "weight", "length", "price", "age"};

const KbClass& kb_class_of(const KbMember& m);
/// "a salmon", "wheat".
std::string kb_member_phrase(const KbMember& m);
/// "a fish".
std::string kb_class_phrase(int class_index);
/// The member of that name, or null.
const KbMember* kb_member(std::string_view name);

/// `text` with a large first letter and a stop.
std::string kb_sentence(std::string_view text);
/// "A fish is found in the sea."
std::string kb_fact(Random& rng, int class_index, int relation);
/// "A salmon is a fish."
std::string kb_membership(Random& rng, const KbMember& m);
/// "The weight of a salmon is 4."
std::string kb_number_fact(Random& rng, const KbMember& m, int attribute);
/// The fact of a topic, by its place among kKbTopics.
std::string kb_topic_fact(Random& rng, const KbMember& m, int topic);

/// Every sentence that is true of a member, normalised.
std::set<std::string> kb_truths(const KbMember& member);
/// Those of one topic.
std::set<std::string> kb_truths_of_topic(const KbMember& member, int topic);
/// Whether a text is made of such sentences, two at least.
CheckResult check_kb_sentences(std::string_view text, const std::set<std::string>& truths);

}  // namespace engine

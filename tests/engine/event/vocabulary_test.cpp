#include "engine/event/vocabulary.h"

#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

std::set<TokenId> tokens_in(const std::vector<Event>& events) {
  std::set<TokenId> tokens;
  for (const Event& event : events) add_tokens_of(event, tokens);
  return tokens;
}

TEST(Vocabulary, every_kind_of_event_gives_its_tokens) {
  std::set<TokenId> tokens;
  add_tokens_of(RunStarted{.prompt_tokens = {1}, .stop_ids = {2}}, tokens);
  Drafted drafted;
  drafted.tree = {.token = {3}, .parent = {-1}, .tag = {{}}};
  add_tokens_of(drafted, tokens);
  add_tokens_of(BlockRefined{.tokens = {4}}, tokens);
  Verified verified{.picked = {5}};
  verified.rejection_details.push_back({.token = {6}});
  add_tokens_of(verified, tokens);
  add_tokens_of(Committed{.tokens = {7}}, tokens);
  add_tokens_of(PoolChanged{.added = {{.first = 8, .rest = {9}}},
                            .evicted = {{.first = 10, .rest = {}}},
                            .tried = {{.first = 11, .rest = {}}}},
                tokens);
  add_tokens_of(Agreement{.found = 12, .expected = 13}, tokens);
  add_tokens_of(RunFinished{.approximate = {14}}, tokens);
  ModelLoaded model;
  model.pieces = {"not counted"};
  model.eos_ids = {15};
  model.special_ids = {16};
  add_tokens_of(model, tokens);
  std::set<TokenId> expected;
  for (TokenId id = 1; id <= 16; ++id) expected.insert(id);
  EXPECT_EQ(tokens, expected);
}

// The texts of a timeline stay the same when the recording keeps only those of its own tokens.
TEST(Vocabulary, a_recording_needs_only_its_own_tokens) {
  std::vector<Event> events = test::small_stream();
  Timeline whole, part;
  for (const Event& event : events) whole.apply(event);
  const std::set<TokenId> tokens = tokens_in(events);
  auto& model = std::get<ModelLoaded>(events[0]);
  const std::size_t n_pieces = model.pieces.size();
  keep_pieces(model, tokens);
  EXPECT_LT(model.pieces.size(), n_pieces);
  keep_pieces(model, tokens);  // again: nothing changes
  for (const Event& event : events) part.apply(event);
  EXPECT_EQ(part.n_inconsistent(), 0);
  ASSERT_FALSE(whole.runs().empty());
  for (const RunRecord& run : whole.runs()) {
    std::vector<TokenId> ids = run.started.prompt_tokens;
    for (const TokenRecord& token : run.tokens) ids.push_back(token.id);
    EXPECT_EQ(part.text_of(*part.run(run.id()), ids), whole.text_of(run, ids));
  }
  const ModelLoaded& kept = part.models().begin()->second;
  EXPECT_TRUE(kept.piece_ids.empty());
  EXPECT_EQ(kept.pieces.size(), n_pieces);
}

TEST(Vocabulary, faulty_ids_are_refused) {
  ModelLoaded model;
  model.vocab_size = 8;
  model.pieces = {"a", "b"};
  model.piece_ids = {1, 7};
  EXPECT_EQ(fault_of_pieces(model), "");
  model.piece_ids = {1, 8};
  EXPECT_EQ(fault_of_pieces(model), "token 8 is outside the vocabulary of 8");
  model.piece_ids = {-1, 2};
  EXPECT_NE(fault_of_pieces(model), "");
  model.piece_ids = {1};
  EXPECT_NE(fault_of_pieces(model), "");
  model.piece_ids = {1, 2};
  model.vocab_size = 2'000'000'000;
  EXPECT_NE(fault_of_pieces(model), "");
}

// Each of these events takes some 40 bytes of a file and 128 MB of memory.
TEST(Vocabulary, the_texts_that_a_recording_leaves_out_are_bounded) {
  ModelLoaded model;
  model.vocab_size = 3'999'999;
  model.pieces = {"a"};
  model.piece_ids = {1};
  EXPECT_EQ(n_absent_texts(model), 3'999'998);
  Timeline timeline;
  for (std::uint32_t i = 1; i <= 5; ++i) {
    model.model = i;
    timeline.apply(model);
  }
  EXPECT_EQ(timeline.models().size(), 2u);
  EXPECT_EQ(timeline.n_inconsistent(), 3);
}

}  // namespace
}  // namespace engine

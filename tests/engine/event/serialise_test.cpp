#include <algorithm>

#include <gtest/gtest.h>

#include "engine/event/serialise.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using test::bytes_of;

TEST(Serialise, every_kind_is_read_back_byte_for_byte) {
  for (const Event& event : test::every_kind()) {
    const std::string bytes = bytes_of(event);
    const Decoded decoded = decode(bytes);
    ASSERT_TRUE(decoded.event.has_value());
    EXPECT_EQ(decoded.event->index(), event.index());
    EXPECT_EQ(decoded.n_unknown_fields, 0);
    EXPECT_EQ(bytes_of(*decoded.event), bytes) << kind_name(event.index());
    EXPECT_NE(bytes, bytes_of(decode(bytes.substr(0, 2)).event.value())) << "fields are written";
  }
}

TEST(Serialise, fields_keep_their_values) {
  const std::vector<Event> events = test::every_kind();
  const auto run = std::get<RunStarted>(*decode(bytes_of(events[1])).event);
  EXPECT_EQ(run.options.at("refill"), "slide");
  EXPECT_EQ(run.seed, 0xFFFF'FFFF'FFFF'FFFFU);
  EXPECT_FLOAT_EQ(run.repetition_penalty, 1.1F);
  EXPECT_EQ(run.prompt, "caf\xC3\xA9 \xF0");
  EXPECT_TRUE(run.ignore_eos);
  EXPECT_EQ(run.first_approximate, 1);
  EXPECT_EQ(run.n_approximate, 2);
  EXPECT_EQ(run.stop_texts, (std::vector<std::string>{"\n\n", "END"}));
  EXPECT_EQ(run.stop_ids, (std::vector<TokenId>{4, 5}));
  const auto drafted = std::get<Drafted>(*decode(bytes_of(events[4])).event);
  EXPECT_EQ(drafted.tree.parent, (std::vector<int>{-1, 0}));
  EXPECT_EQ(drafted.tree.tag[1].kind, RowTag::Kind::Draft);
  EXPECT_EQ(drafted.tree.tag[1].b, -2);
  EXPECT_EQ(drafted.tree.owner, (std::vector<std::uint8_t>{0, 200}));
  ASSERT_EQ(drafted.sources.size(), 2U);
  EXPECT_EQ(drafted.sources[1].kind, GuessSource::Kind::Earlier);
  EXPECT_EQ(drafted.sources[1].run, 7U);
  EXPECT_EQ(drafted.sources[1].pos, 12);
  EXPECT_EQ(drafted.sources[1].n_seen, 3);
  EXPECT_EQ(drafted.sources[1].n_context, 4);
  EXPECT_EQ(drafted.choices, (std::vector<std::int32_t>{2, 0, 1}));
  const auto pool = std::get<PoolChanged>(*decode(bytes_of(events[8])).event);
  ASSERT_EQ(pool.evicted.size(), 2U);
  EXPECT_EQ(pool.evicted[1].rest, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(pool.tried[0].born, kBornInPrompt);
  const auto finished = std::get<RunFinished>(*decode(bytes_of(events[16])).event);
  EXPECT_EQ(finished.metrics.at("pool_hits"), 40);
  EXPECT_EQ(finished.approximate, (std::vector<TokenId>{4, 2}));
  ASSERT_EQ(drafted.forwards.size(), 2U);
  EXPECT_EQ(drafted.forwards[1].ended, 9);
  EXPECT_EQ(drafted.forwards[1].n_rows, 2);
  const auto verified = std::get<Verified>(*decode(bytes_of(events[6])).event);
  EXPECT_FLOAT_EQ(verified.p.at(1), 0.125F);
  ASSERT_EQ(verified.rejection_details.size(), 2U);
  EXPECT_EQ(verified.rejection_details[0].token, (std::vector<TokenId>{2, 3}));
  EXPECT_FLOAT_EQ(verified.rejection_details[0].residual.at(1), 1);
  EXPECT_TRUE(verified.rejection_details[1].q.empty());
  EXPECT_EQ(verified.rejection_details[1].row, 1);
  EXPECT_EQ(verified.exchange.at(0).n_bytes, 512);
  EXPECT_EQ(verified.exchange.at(0).forward, (std::vector<Nanoseconds>{3'000, 5'000}));
  EXPECT_EQ(verified.exchange.at(0).wait_of(0), 2'000);
}

TEST(Serialise, the_layout_is_little_endian_and_fixed) {
  // Fixed bytes: a recording made today must open in later versions.
  const std::string expected(
      "\x12\x00"
      "\x08\x02\x01\x00\x00\x00\x00\x00\x00"
      "\x01\x01",
      13);
  EXPECT_EQ(bytes_of(Held{.t = 0x102, .held = true}), expected);
  EXPECT_EQ(kind_name(18), "Held");
  EXPECT_EQ(kind_name(77), "kind 77");
}

// TR03.
TEST(Serialise, unknown_kinds_and_fields_are_skipped) {
  const Decoded newer_kind = decode(std::string("\x63\x00\x01\x02", 4));
  EXPECT_FALSE(newer_kind.event.has_value());
  EXPECT_EQ(newer_kind.kind, 0x63);
  const Decoded newer_fields = decode(bytes_of(Held{.t = 7, .held = true}) + "\x03xyz" + '\0');
  EXPECT_EQ(newer_fields.n_unknown_fields, 2);
  EXPECT_TRUE(std::get<Held>(*newer_fields.event).held);
}

TEST(Serialise, missing_fields_keep_their_defaults) {
  const std::string placed = bytes_of(test::every_kind()[1]);
  const auto newest_run = std::get<RunStarted>(*decode(placed).event);
  EXPECT_EQ(newest_run.place.repeat, 1);
  EXPECT_EQ(newest_run.place.task, "arith");
  const std::size_t place = 5 * (1 + sizeof(int)) + 1 + newest_run.place.task.size();
  const std::string today = placed.substr(0, placed.size() - place);
  const PlaceInSet alone = std::get<RunStarted>(*decode(today).event).place;
  EXPECT_EQ(alone.set, 0u);
  EXPECT_EQ(alone.n_prompts, 1);
  EXPECT_EQ(alone.n_repeats, 1);
  EXPECT_EQ(newest_run.read_as, ReadAs::Chat);
  EXPECT_EQ(newest_run.system, "Be short.");
  EXPECT_EQ(newest_run.pool, "pool.txt");
  const std::string unpooled = today.substr(0, today.size() - 1 - newest_run.pool.size());
  EXPECT_EQ(std::get<RunStarted>(*decode(unpooled).event).pool, "");
  const std::size_t read_as = 1 + 1, system = 1 + newest_run.system.size();
  const std::string unread = unpooled.substr(0, unpooled.size() - read_as - system);
  const auto before_chat = std::get<RunStarted>(*decode(unread).event);
  EXPECT_EQ(before_chat.read_as, ReadAs::Unknown);
  EXPECT_EQ(before_chat.system, "");
  EXPECT_TRUE(before_chat.no_special);
  const std::string whole = unread.substr(0, unread.size() - 2);  // length and value of no_special
  EXPECT_FALSE(std::get<RunStarted>(*decode(whole).event).no_special);
  const std::size_t stop_texts = 1 + (1 + 2) + (1 + 3), stop_ids = 1 + 2 * sizeof(TokenId);
  const std::string newest = whole.substr(0, whole.size() - stop_texts - stop_ids);
  const auto without_stops = std::get<RunStarted>(*decode(newest).event);
  EXPECT_TRUE(without_stops.stop_texts.empty() && without_stops.stop_ids.empty());
  EXPECT_EQ(without_stops.n_approximate, 2);
  const std::size_t approximate = 2 * (1 + sizeof(int));  // length and value of each
  const std::string bytes = newest.substr(0, newest.size() - approximate);
  const auto before = std::get<RunStarted>(*decode(bytes).event);
  EXPECT_EQ(before.draft, std::get<RunStarted>(test::every_kind()[1]).draft);
  EXPECT_EQ(before.n_approximate, 0);
  const std::size_t draft = 1 + sizeof(RunStarted::draft), ignore_eos = 1 + 1;
  const auto run = std::get<RunStarted>(*decode(bytes.substr(0, bytes.size() - draft)).event);
  EXPECT_EQ(run.draft, 0u);
  EXPECT_EQ(run.ignore_eos, std::get<RunStarted>(test::every_kind()[1]).ignore_eos);
  const auto older =
      std::get<RunStarted>(*decode(bytes.substr(0, bytes.size() - draft - ignore_eos)).event);
  EXPECT_FALSE(older.ignore_eos);
  EXPECT_EQ(older.prompt_id, "p7");
}

TEST(Serialise, an_old_draft_has_no_sources) {
  Drafted copied = std::get<Drafted>(test::every_kind()[4]);
  ASSERT_FALSE(copied.sources.empty());
  copied.sources.clear();
  copied.choices.clear();
  const std::string unsourced = bytes_of(copied);  // its last two fields: lengths of zero
  const auto before = std::get<Drafted>(*decode(unsourced.substr(0, unsourced.size() - 2)).event);
  EXPECT_TRUE(before.sources.empty());
  EXPECT_EQ(bytes_of(before), unsourced);
}

TEST(Serialise, an_old_verification_has_no_probes_and_no_exchange) {
  const auto all = test::every_kind();
  const auto is_one = [](const Event& event) { return std::holds_alternative<Verified>(event); };
  Verified reported = std::get<Verified>(*std::ranges::find_if(all, is_one));
  EXPECT_EQ(std::get<Verified>(*decode(bytes_of(reported)).event).probe, reported.probe);
  ASSERT_FALSE(reported.probe.empty());
  ASSERT_EQ(reported.exchange.size(), 1U);
  reported.probe.clear();
  reported.exchange.clear();
  const std::string without = bytes_of(reported);  // its last two fields: lengths of zero
  const auto older = std::get<Verified>(*decode(without.substr(0, without.size() - 2)).event);
  EXPECT_TRUE(older.probe.empty() && older.exchange.empty());
  EXPECT_EQ(bytes_of(older), without);
}

// TR04.
TEST(Serialise, invalid_widths_and_values_are_refused_by_name) {
  const auto message = [](std::string bytes) -> std::string {
    try {
      decode(bytes);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string held = bytes_of(Held{.t = 1, .held = true});
  std::string flag = held;
  flag.back() = 2;
  EXPECT_EQ(message(flag), "Held: field 2: found 2, expected 0 or 1");
  EXPECT_EQ(message(held.substr(0, 6)), "Held: field 1: found 3 bytes, expected 8");
  std::string wide = held;
  wide[2] = 9;  // the time takes one byte more, so the next field's length is inside it
  EXPECT_EQ(message(wide), "Held: field 1: found 1 extra bytes, expected none");
  std::string level = bytes_of(Notice{.level = Notice::Level::Error});
  level[level.size() - 2] = 3;
  EXPECT_EQ(message(level), "Notice: field 2: found 3, expected 0 to 2");
  EXPECT_NE(message(""), "accepted");
}

// An event that is read from altered bytes must be valid: written again, it has the same bytes each time.
TEST(Serialise, cut_and_flipped_events_are_read_or_refused) {
  int n_read = 0, n_refused = 0;
  const auto check = [&](const std::string& altered) {
    try {
      const Decoded decoded = decode(altered);
      if (!decoded.event) return;
      const std::string bytes = bytes_of(*decoded.event);
      EXPECT_EQ(bytes_of(decode(bytes).event.value()), bytes);
      n_read++;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput) << error.what();
      n_refused++;
    }
  };
  for (const Event& event : test::every_kind()) {
    const std::string bytes = bytes_of(event);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      check(bytes.substr(0, i));
      for (int bit = 0; bit < 8; ++bit) {
        std::string flipped = bytes;
        flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
        check(flipped);
      }
    }
  }
  EXPECT_GT(n_read, 100);
  EXPECT_GT(n_refused, 100);
}

}  // namespace
}  // namespace engine

// scripts/measure.sh speed with a program that prints fixed figures.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/scripts/script_fixture.h"

namespace {

using nlohmann::json;

constexpr const char* kProgram = R"(#!/bin/sh
echo "$1 $2 $3 $4" >> "$ASKED"
case "$*" in
  "model convert"*) : > "$4" ;;
  *--breakdown*) cat <<'END'
{"machine": {"read_gbps": 21.5, "gflops": 300}, "rows": [{"rows": 1, "breakdown": {"ms": 2, "between_ms": 0.1, "waiting": 0.05, "kinds": {
  "products": {"ms": 1.2}, "norms": {"ms": 0.1}, "rope": {"ms": 0.05}, "attention": {"ms": 0.2}, "activation": {"ms": 0.05},
  "cache": {"ms": 0.1}, "choice": {"ms": 0.14}, "other": {"ms": 0.06}}}}]}
END
  ;;
  "bench step"*) echo '{"machine": {"read_gbps": 21.5, "gflops": 300}}' ;;
  *) echo '{"tokens_per_second": 200, "prefill_ms": 256}' ;;
esac
)";

class MeasureSpeed : public test::ScriptFixture {
 protected:
  /// The table of a part.
  json measured(const std::string& part) const {
    const std::string program = out() + ".program";
    write_program(program, kProgram);
    EXPECT_EQ(code_of("XDG_CACHE_HOME=" + out() +
                          ".cache DECOSCOPE_SPEED_ROUNDS=2 DECOSCOPE_SPEED_TYPES=Q4_0 "
                          "DECOSCOPE_SPEED_PARTS=" +
                          part + " DECOSCOPE_PROGRAM=" + program,
                      "measure.sh speed"),
              0)
        << errors();
    return json::parse(read(out() + "/" + part + ".json"));
  }
};

TEST_F(MeasureSpeed, the_breakdown_has_the_share_of_each_part) {
  const json shares = {{"products", 0.6}, {"attention", 0.15}, {"norms_rope_activation", 0.1},
                       {"choice", 0.07},  {"other", 0.03},     {"between", 0.05},
                       {"waiting", 0.05}};
  const json table = measured("breakdown");
  ASSERT_EQ(table.size(), 2U);
  for (const json& row : table) {
    EXPECT_EQ(row["rows"], 1);
    EXPECT_EQ(row["ms"], 2);
    EXPECT_TRUE(row.contains("stolen"));
    EXPECT_EQ(row["read_gbps"], 21.5);
    EXPECT_EQ(row["gflops"], 300);
    for (const auto& [part, share] : shares.items()) EXPECT_EQ(row[part], share) << part;
  }
  EXPECT_EQ(table[0]["model"], "demo-target");
  EXPECT_EQ(table[1]["model"], "smollm2 Q4_0");
  EXPECT_FALSE(calls().empty());
  EXPECT_EQ(measured("breakdown"), table);
  EXPECT_TRUE(calls().empty()) << "a finished part is not measured again";
}

TEST_F(MeasureSpeed, plain_decoding_is_beside_the_probes) {
  const json table = measured("plain");
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table[0]["decode"]["median"], 200);
  EXPECT_EQ(table[0]["prompt"]["all"], json({2000, 2000}));
  EXPECT_EQ(table[0]["read_gbps"], 21.5);
  EXPECT_EQ(table[0]["gflops"], 300);
}

}  // namespace

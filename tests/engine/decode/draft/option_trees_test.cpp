// Options whose value is a tree: their row counts and error messages.
#include "engine/decode/draft/option_trees.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/decode/draft/rank_tree.h"
#include "tests/support/files.h"

namespace engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kTrees = DECOSCOPE_SOURCE_DIR "/assets/trees";

const OptionInfo& option_of(const char* decoder, const char* name) {
  for (const OptionInfo& option : decoder_named(decoder).options)
    if (option.name == name) return option;
  throw ContractError("no such option");
}

std::optional<TreeShape> shape(const char* decoder, const char* option, const std::string& value) {
  return tree_shape(decoder_named(decoder), option_of(decoder, option), value, kTrees);
}

class OptionTrees : public testing::Test {
 protected:
  std::string file(const std::string& text) const {
    const std::string path = folder_ / "tree.json";
    std::ofstream(path) << text;
    return path;
  }
  std::string refusal(const char* decoder, const OptionValues& given, ErrorCode code) const {
    const DecoderInfo& info = decoder_named(decoder);
    try {
      check_trees(info, complete_options(info, given), kTrees);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "accepted";
  }
  test::Folder folder_;
};

TEST_F(OptionTrees, levels_are_counted_as_drafted) {
  for (const char* decoder : {"mcsd", "seed"}) {
    const auto tree = shape(decoder, "k_config", "2,2,1");
    ASSERT_TRUE(tree);
    EXPECT_EQ(tree->n_tokens, 2 + 4 + 4);
    EXPECT_EQ(tree->depth, 3);
    EXPECT_EQ(words_of(*tree), "10 tokens, 3 deep: 11 rows a step");
  }
  EXPECT_EQ(words_of(*shape("mcsd", "k_config", "1")), "1 token, 1 deep: 2 rows a step");
}

TEST_F(OptionTrees, named_trees_and_files_are_accepted) {
  for (const char* name : bundled_trees()) {
    const auto tree = shape("medusa", "tree", name);
    ASSERT_TRUE(tree) << name;
    EXPECT_EQ(tree->n_tokens, find_rank_tree(name, kTrees).n_nodes());
  }
  EXPECT_EQ(shape("medusa", "tree", "rows16")->n_tokens, 15);
  EXPECT_FALSE(shape("chimera", "tree", "own")) << "depends on the heads";
  EXPECT_EQ(words_of(*shape("medusa", "tree", "none")), "drafts nothing: plain decoding");
  EXPECT_EQ(shape("medusa", "tree", file(R"({"paths": [[0], [0, 0], [1]]})"))->depth, 2);
  EXPECT_FALSE(shape("medusa", "verify", "greedy")) << "no tree";
}

TEST_F(OptionTrees, errors_name_decoder_option_and_position) {
  const auto wrong = [&](const std::string& text) {
    return refusal("medusa", {{"tree", file(text)}}, ErrorCode::BadInput);
  };
  EXPECT_THAT(wrong(R"({"paths": [[0], [0]]})"),
              AllOf(HasSubstr("medusa: tree: "), HasSubstr("tree.json"), HasSubstr("[0] twice")));
  EXPECT_THAT(wrong(R"({"paths": [[0, 1]]})"), HasSubstr("[0, 1] without [0]"));
  EXPECT_THAT(wrong("{"), HasSubstr("medusa: tree: "));
  EXPECT_THAT(wrong(R"({"path": []})"), HasSubstr("paths"));
  EXPECT_THAT(refusal("chimera", {{"tree", folder_ / "absent.json"}}, ErrorCode::BadInput),
              AllOf(HasSubstr("chimera: tree: "), HasSubstr("absent.json")));
  EXPECT_THAT(
      refusal("medusa", {{"tree", "rows15"}}, ErrorCode::Usage),
      AllOf(HasSubstr("medusa: tree: found 'rows15'"), HasSubstr("rows16"), HasSubstr(".json")));
  for (const char* decoder : {"mcsd", "seed"}) {
    for (const char* value : {"", "2,,1", "2;2", "0,1", "65", "2,2,", "two"})
      EXPECT_THAT(refusal(decoder, {{"k_config", value}}, ErrorCode::Usage),
                  HasSubstr(std::string(decoder) + ": k_config: found '" + value + "'"));
    EXPECT_THAT(refusal(decoder, {{"k_config", "16,16"}}, ErrorCode::Usage),
                HasSubstr("more than 255 tokens"));
  }
  EXPECT_EQ(refusal("ar", {}, ErrorCode::Usage), "accepted");
  for (const DecoderInfo& info : decoders())
    EXPECT_EQ(refusal(info.name.c_str(), {}, ErrorCode::Usage), "accepted") << info.name;
}

}  // namespace
}  // namespace engine

// `model convert`, and GGUF files in place of a model directory.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class CliConvert : public CliModel {
 protected:
  void SetUp() override {
    CliModel::SetUp();
    if (HasFatalFailure()) return;
    const Outcome made = run("model convert demo-draft " + file_ + " --json");
    ASSERT_EQ(made.code, 0) << made.err;
    info_ = json::parse(made.out);
  }
  json document(const std::string& command) const {
    const Outcome outcome = run(command + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
  void refused(const std::string& command, int code, const std::string& part) const {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
  }

  const std::string file_ = folder + "/demo.gguf";
  json info_;
};

TEST_F(CliConvert, a_gguf_file_generates_the_tokens_of_its_directory) {
  const std::string ask = "generate --prompt 'Question: 12 + 30 =' --max-tokens 24 --model ";
  EXPECT_EQ(document(ask + file_).at("tokens"), document(ask + "demo-draft").at("tokens"));
  EXPECT_EQ(info_.at("name"), "demo");
  EXPECT_EQ(info_.at("parameters"), document("model info demo-draft").at("parameters"));
}

TEST_F(CliConvert, there_and_back_gives_the_same_weights) {
  const json back = document("model convert " + file_ + " " + folder + "/back");
  EXPECT_EQ(back.at("weights_hash"), document("model info demo-draft").at("weights_hash"));
  EXPECT_EQ(run("model validate " + folder + "/back --scan").code, 0);
}

TEST_F(CliConvert, quantised_files_decode_with_every_lossless_decoder) {
  const std::string quantised = folder + "/q8.gguf";
  const json info = document("model convert demo-draft " + quantised + " --type q8_0");
  EXPECT_EQ(info.at("stored_type"), "Q8_0");
  EXPECT_EQ(info.at("dtype"), "bf16");
  for (const char* decoder : {"lookahead", "jacobi", "prompt-lookup"}) {
    const Outcome outcome =
        run("generate --check --prompt 'Question: 12 + 30 =' --max-tokens 24 --model " + quantised +
            " --decoder " + decoder);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
}

TEST_F(CliConvert, outputs_that_exist_and_types_that_cannot_be_are_refused) {
  const std::string convert = "model convert " + file_ + " ";
  refused(convert + file_, 2, "is the model");
  std::ofstream(folder + "/other.gguf") << "text";
  refused(convert + folder + "/other.gguf", 2, "exists");
  EXPECT_EQ(read_file(folder + "/other.gguf"), "text");
  refused(convert + folder, 2, "holds the model");
  refused(convert + folder + "/new --type Q8_0", 2, "expected F32, F16 or BF16 for a directory");
  refused(convert + folder + "/new.gguf --type Q4_K", 2, "Q4_0, Q4_1");
  EXPECT_FALSE(fs::exists(folder + "/new.gguf"));
}

TEST_F(CliConvert, a_damaged_file_is_refused_with_code_3) {
  std::string bytes = read_file(file_);
  bytes.resize(bytes.size() / 2);
  std::ofstream(folder + "/cut.gguf", std::ios::binary) << bytes;
  refused("model validate " + folder + "/cut.gguf", 3, "is the download complete?");
  const Outcome outcome = run("model validate --json " + folder + "/cut.gguf");
  EXPECT_EQ(json::parse(outcome.out).at("valid"), false);
}

}  // namespace

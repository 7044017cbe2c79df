// Texts written by a target: they equal autoregressive decoding, also after stops and damaged files.
#include "engine/train/run/own_outputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/data/chat_requests.h"
#include "engine/data/mixture.h"
#include "engine/decode/step/stepper.h"
#include "engine/run/prompt_text.h"
#include "engine/train/core/hidden_states.h"
#include "tests/engine/train/small_target.h"
#include "tests/support/refusal.h"

namespace engine {
namespace {

std::string bytes_of(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

bool same(const std::vector<OwnOutput>& a, const std::vector<OwnOutput>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const OwnOutput& x, const OwnOutput& y) {
                      return x.index == y.index && x.part == y.part && x.tokens == y.tokens &&
                             x.n_prompt == y.n_prompt && x.ended == y.ended && x.right == y.right;
                    });
}

class OwnOutputs : public test::SmallTarget {
 protected:
  std::vector<OwnOutput> written(const OutputsPlan& plan, const std::string& file) {
    EXPECT_TRUE(write_own_outputs(target(), plan, path(file), ""));
    return read_own_outputs(path(file), plan, nullptr);
  }
  std::string refusal(const NamedTarget& who, const OutputsPlan& plan, const std::string& file) {
    try {
      write_own_outputs(who, plan, path(file), "");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(OwnOutputs, equal_autoregressive_decoding_of_the_prompts) {
  const OutputsPlan p = plan(5);
  const std::vector<OwnOutput> outputs = written(p, "texts.jsonl");
  ASSERT_EQ(outputs.size(), 5u);
  const TrainingStream stream(p.mixture, p.seed);
  for (const OwnOutput& output : outputs) {
    const Record record = stream.record(output.index);
    EXPECT_EQ(output.part, record.task);
    std::vector<TokenId> prompt = {1};
    const auto ids = model_->tokenizer()->encode(record.prompt, false);
    prompt.insert(prompt.end(), ids.begin(), ids.end());
    ASSERT_EQ(output.n_prompt, std::ssize(prompt));
    Limits limits;
    limits.max_tokens = p.max_tokens;
    limits.eos_ids = {2};
    Lane lane = make_lane(0, *model_, prompt, "ar", {*model_, {}, limits, {}});
    prefill(*model_, lane.sequence);
    lane.decoder->begin(lane.sequence);
    Stepper stepper(*model_, nullptr);
    Lane* lanes[] = {&lane};
    while (!lane.sequence.finished()) stepper.step(lanes);
    EXPECT_TRUE(std::ranges::equal(lane.sequence.tokens(), output.tokens));
    EXPECT_EQ(output.ended, lane.sequence.stop_reason() == StopReason::Eos);
  }
}

TEST_F(OwnOutputs, do_not_depend_on_the_batch_size) {
  OutputsPlan alone = plan(6);
  alone.lanes = 1;
  EXPECT_TRUE(same(written(plan(6), "together.jsonl"), written(alone, "alone.jsonl")));
}

TEST_F(OwnOutputs, truncated_file_is_completed_to_the_same_texts) {
  const OutputsPlan p = plan(4);
  const std::vector<OwnOutput> expected = written(p, "whole.jsonl");
  const std::string whole = bytes_of(path("whole.jsonl"));
  std::vector<std::size_t> cuts = {0, 1, whole.size() - 1};
  for (std::size_t at = whole.find('\n'); at != std::string::npos; at = whole.find('\n', at + 1))
    cuts.insert(cuts.end(), {at - 1, at, at + 1, at + 9});
  for (const std::size_t cut : cuts) {
    std::ofstream(path("cut.jsonl"), std::ios::binary) << whole.substr(0, cut);
    EXPECT_TRUE(same(written(p, "cut.jsonl"), expected)) << "cut at " << cut;
  }
}

TEST_F(OwnOutputs, stopped_run_keeps_finished_texts_and_resumes) {
  OutputsPlan p = plan(6);
  p.lanes = 2;
  const auto until_two = [](const OutputsProgress& progress) { return progress.done < 2; };
  EXPECT_FALSE(write_own_outputs(target(), p, path("texts.jsonl"), "", until_two));
  EXPECT_LT(read_own_outputs(path("texts.jsonl"), p, nullptr).size(), 6u);
  EXPECT_GE(read_own_outputs(path("texts.jsonl"), p, nullptr).size(), 2u);
  p.count = 8;
  EXPECT_TRUE(same(written(p, "texts.jsonl"), written(p, "at once.jsonl")));
}

// A larger plan that was stopped has texts of later prompts, and lacks some of earlier ones.
TEST_F(OwnOutputs, resume_writes_and_counts_the_missing_prompts) {
  const OutputsPlan larger = plan(8);
  written(larger, "texts.jsonl");
  std::istringstream whole(bytes_of(path("texts.jsonl")));
  std::ofstream gaps(path("gaps.jsonl"), std::ios::binary);
  int n_kept = 0;
  for (std::string line; std::getline(whole, line);) {
    const bool is_early = line.find("{\"index\":0,") == 0 || line.find("{\"index\":1,") == 0 ||
                          line.find("{\"index\":2,") == 0;
    if (is_early) continue;
    gaps << line << "\n";
    ++n_kept;
  }
  gaps.close();
  ASSERT_EQ(n_kept, 1 + 5) << "the first line and the texts 3 to 7";
  const std::string with_gaps = bytes_of(path("gaps.jsonl"));
  for (const int count : {6, 5}) {  // the file's 5 texts are fewer; as many
    std::ofstream(path("gaps.jsonl"), std::ios::binary) << with_gaps;
    const OutputsPlan smaller = plan(count);
    OutputsProgress last;
    EXPECT_TRUE(write_own_outputs(target(), smaller, path("gaps.jsonl"), "",
                                  [&](const OutputsProgress& progress) {
                                    EXPECT_LE(progress.done, progress.all);
                                    EXPECT_GE(progress.seconds_left, 0);
                                    last = progress;
                                    return true;
                                  }));
    EXPECT_EQ(last.all, count);
    EXPECT_EQ(last.done, count);
    EXPECT_TRUE(same(read_own_outputs(path("gaps.jsonl"), smaller, nullptr),
                     read_own_outputs(path("texts.jsonl"), smaller, nullptr)));
  }
}

TEST_F(OwnOutputs, a_file_with_enough_texts_is_kept_and_noted) {
  written(plan(5), "texts.jsonl");
  const std::string before = bytes_of(path("texts.jsonl"));
  std::vector<std::string> notices;
  const auto notice = [&](const std::string& text) { notices.push_back(text); };
  bool stepped = false;
  const auto step = [&](const OutputsProgress&) { return stepped = true; };
  EXPECT_TRUE(write_own_outputs(target(), plan(3), path("texts.jsonl"), "", step, notice));
  EXPECT_FALSE(stepped);
  EXPECT_EQ(bytes_of(path("texts.jsonl")), before);
  EXPECT_THAT(notices, testing::ElementsAre(path("texts.jsonl") +
                                            ": already has 5 texts, and the recipe needs 3; "
                                            "nothing is written"));
  EXPECT_TRUE(write_own_outputs(target(), plan(6), path("texts.jsonl"), "", step, notice));
  EXPECT_TRUE(stepped);
  EXPECT_EQ(notices.size(), 1u);
}

TEST_F(OwnOutputs, refuses_files_of_another_target_or_plan) {
  written(plan(2), "texts.jsonl");
  EXPECT_THAT(refusal(target("4567"), plan(2), "texts.jsonl"),
              testing::HasSubstr("texts.jsonl:1: weights: found \"0123\", expected \"4567\""));
  OutputsPlan longer = plan(2);
  longer.max_tokens = 13;
  EXPECT_THAT(refusal(target(), longer, "texts.jsonl"),
              testing::HasSubstr("max_tokens: found 12, expected 13"));
  const NamedTarget other = target("4567");
  EXPECT_THROW(read_own_outputs(path("texts.jsonl"), plan(2), &other), Error);
}

TEST_F(OwnOutputs, error_names_a_damaged_line) {
  written(plan(2), "texts.jsonl");
  std::ofstream(path("texts.jsonl"), std::ios::app) << "{\"index\": 7}\n";
  EXPECT_THAT(refusal(target(), plan(2), "texts.jsonl"),
              testing::HasSubstr("texts.jsonl:4: not a text of a target"));
}

TEST_F(OwnOutputs, rejected_texts_are_skipped_if_the_plan_says_so) {
  OutputsPlan p = plan(3);
  p.check = true;
  const std::vector<OwnOutput> all = written(p, "texts.jsonl");
  ASSERT_EQ(all.size(), 3u);
  // A model with random weights solves no problem.
  for (const OwnOutput& output : all) EXPECT_EQ(output.right, false);
  p.drop_wrong = true;
  EXPECT_TRUE(read_own_outputs(path("texts.jsonl"), p, nullptr).empty());
}

TEST_F(OwnOutputs, another_split_has_other_prompts) {
  OutputsPlan dev = plan(3);
  dev.split = Split::Dev;
  const auto train_texts = written(plan(3), "train.jsonl"), dev_texts = written(dev, "dev.jsonl");
  for (std::size_t i = 0; i < 3; i++) EXPECT_NE(train_texts[i].tokens, dev_texts[i].tokens);
}

TEST_F(OwnOutputs, kept_hidden_states_have_the_same_bits) {
  const std::vector<OwnOutput> texts = written(plan(5), "texts.jsonl");
  HiddenStates kept(*model_, texts, std::int64_t{1} << 30), again(*model_, texts, 0);
  EXPECT_TRUE(kept.kept());
  EXPECT_FALSE(again.kept());
  kept.load(std::vector<int>{0, 1, 2, 3, 4});
  for (int i = 0; i < 5; i++) {
    again.load(std::vector<int>{i});
    const auto a = kept.of(i), b = again.of(i);
    const OwnOutput& text = texts[static_cast<std::size_t>(i)];
    ASSERT_EQ(a.size(), (text.tokens.size() - 1) * 32);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end(),
                           [](Bf16 x, Bf16 y) { return x.bits == y.bits; }));
  }
  EXPECT_THROW(again.of(0), ContractError) << "load() releases the earlier states";
}

class ChatOutputs : public test::SmallTarget {
 protected:
  void SetUp() override {
    SmallTarget::SetUp();
    make_chat_model();
  }
  static OutputsPlan chat_plan(int count) {
    OutputsPlan p = plan(count);
    p.mixture = R"({"gsm8k": {"weight": 1}, "creak": {"weight": 1}})";
    p.chat = true;
    return p;
  }
  std::vector<OwnOutput> written(const OutputsPlan& plan, const std::string& file) {
    EXPECT_TRUE(write_own_outputs(target(), plan, path(file), data(), {},
                                  [&](const std::string& text) { notice_ = text; }));
    return read_own_outputs(path(file), plan, nullptr);
  }
  ChatRequests requests(const OutputsPlan& plan) const {
    return {plan.mixture, plan.seed, data(), plan.split};
  }
  std::string notice_;
};

TEST_F(ChatOutputs, prompts_have_the_tokens_of_generate) {
  const OutputsPlan p = chat_plan(6);
  const std::vector<OwnOutput> outputs = written(p, "texts.jsonl");
  ASSERT_GE(outputs.size(), 5u);
  const ChatRequests all = requests(p);
  for (const OwnOutput& output : outputs) {
    const ChatRequest& request = all.list()[static_cast<std::size_t>(output.index)];
    const auto prompt = prompt_tokens_of(*model_, {.text = request.text, .chat = ChatMode::Chat});
    ASSERT_EQ(output.n_prompt, std::ssize(prompt.tokens));
    EXPECT_TRUE(std::equal(prompt.tokens.begin(), prompt.tokens.end(), output.tokens.begin()));
    EXPECT_EQ(output.part, request.part);
  }
}

TEST_F(ChatOutputs, requests_that_overlap_evaluation_texts_are_skipped) {
  const OutputsPlan p = chat_plan(1000);  // all requests
  const std::vector<OwnOutput> outputs = written(p, "texts.jsonl");
  const ChatRequests all = requests(p);
  const EvaluationTexts evaluation(data());
  std::set<std::int64_t> expected, found;
  for (std::int64_t i = 0; i < std::ssize(all.list()); i++)
    if (!evaluation.overlap(all.list()[static_cast<std::size_t>(i)])) expected.insert(i);
  for (const OwnOutput& output : outputs) found.insert(output.index);
  EXPECT_EQ(found, expected);
  const std::string n = std::to_string(all.list().size());
  EXPECT_EQ(notice_, n + " of " + n + " distinct requests are used, without " +
                         std::to_string(all.list().size() - expected.size()) +
                         " that overlap an evaluation question of gsm8k, creak");
  EXPECT_LT(expected.size(), all.list().size());
}

TEST_F(ChatOutputs, truncated_file_is_completed_to_the_same_texts) {
  const OutputsPlan p = chat_plan(5);
  const std::vector<OwnOutput> expected = written(p, "whole.jsonl");
  const std::string whole = bytes_of(path("whole.jsonl"));
  const std::size_t second = whole.find('\n', whole.find('\n') + 1) + 1;
  for (const std::size_t cut : {second, second + 9}) {
    std::ofstream(path("cut.jsonl"), std::ios::binary) << whole.substr(0, cut);
    EXPECT_TRUE(same(written(p, "cut.jsonl"), expected)) << "cut at " << cut;
  }
}

TEST_F(ChatOutputs, long_prompts_are_skipped) {
  OutputsPlan p = chat_plan(20);
  const std::vector<OwnOutput> all = written(p, "all.jsonl");
  int least = 1000, most = 0;
  for (const OwnOutput& output : all) {
    least = std::min(least, output.n_prompt);
    most = std::max(most, output.n_prompt);
  }
  ASSERT_LT(least, most);
  p.max_prompt_tokens = least;
  const std::vector<OwnOutput> shortest = written(p, "short.jsonl");
  EXPECT_LT(shortest.size(), all.size());
  for (const OwnOutput& output : shortest) EXPECT_EQ(output.n_prompt, least);
}

TEST_F(ChatOutputs, refuses_files_of_other_requests_and_targets_without_template) {
  written(chat_plan(2), "texts.jsonl");
  const auto message = [&] {
    return test::refusal(
        [&] { write_own_outputs(target(), chat_plan(2), path("texts.jsonl"), data()); });
  };
  std::ofstream(data() + "/creak/train.json", std::ios::app)
      << R"({"sentence": "A hen can fly.", "explanation": "So.", "label": "true"})"
      << "\n";
  EXPECT_THAT(message(), testing::HasSubstr("texts.jsonl:1: requests: found \""));
  std::filesystem::remove(target_dir() + "/chat_template.jinja");
  files_ = open_model(target_dir());
  model_ = Model::load(*device_, files_, {.dtype = kernels::DType::F32, .scale = {}});
  EXPECT_EQ(message(), "small: chat template: found none, but the recipe has \"chat\": true");
}

}  // namespace
}  // namespace engine

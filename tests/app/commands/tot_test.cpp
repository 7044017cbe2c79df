// `reason tot` for users: the tree in the terminal, the document, and the same tree with every
// decoder.
#include <filesystem>
#include <fstream>
#include <regex>

#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

class CliTot : public CliModel {
 protected:
  json document(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
    return json::parse(outcome.out);
  }
  void expect_refused(const std::string& arguments,
                      int code,
                      const std::vector<std::string>& parts) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome.err;
  }
};

TEST_F(CliTot, reports_the_answer_and_its_cost) {
  const json found = document("reason tot --count 2 --depth 2 --thoughts 2 --beam 2");
  EXPECT_EQ(found["task"], "arith");
  EXPECT_EQ(found["data"], "generated");
  EXPECT_EQ(found["n"], 2);
  EXPECT_EQ(found["depth"], 2);
  EXPECT_EQ(found["thoughts"], 2);
  EXPECT_EQ(found["beam"], 2);
  EXPECT_EQ(found["complete"], true);
  int n_correct = 0;
  for (const json& item : found["items"]) {
    n_correct += item["correct"].get<bool>();
    EXPECT_GE(item["nodes"].size(), 2u);
    int at = 0;
    for (const int node : item["path"]) {
      const json& one = item["nodes"][static_cast<std::size_t>(node - 1)];
      EXPECT_EQ(one["node"], node);
      EXPECT_EQ(one["parent"], at);
      EXPECT_EQ(one["fate"], "kept");
      at = node;
    }
    for (const json& node : item["nodes"]) EXPECT_TRUE(node["parts"].contains("question")) << node;
  }
  EXPECT_EQ(found["n_correct"], n_correct);
  const json& uses = found["by_use"];
  EXPECT_EQ(found["tokens"],
            uses["thoughts"]["tokens"].get<int>() + uses["values"]["tokens"].get<int>());
  EXPECT_EQ(uses["answers"]["calls"], 2);
  EXPECT_GT(found["tokens_per_second"], 0);
  EXPECT_GT(found["tokens_per_step"], 0.9);  // tokens cut off by a stop string do not count
  EXPECT_LE(found["tokens_per_step"], 1.0);
  EXPECT_TRUE(found["acceptance_rate"].is_null());  // nothing was proposed
  EXPECT_TRUE(found["depth_accepted"].is_null());
  EXPECT_TRUE(found["alpha"].is_null());
  EXPECT_EQ(found["model"], "demo-target");
  EXPECT_FALSE(found.contains("draft"));
  EXPECT_GT(found["target_busy"], 0);
  EXPECT_LE(found["target_busy"], 1);
  EXPECT_EQ(found["target_busy"], found["schedule"]["target_busy"]);
}

TEST_F(CliTot, model_defaults_set_the_sampling_of_thoughts) {
  const std::string model = folder + "/m";
  std::filesystem::copy(std::string(DECOSCOPE_SOURCE_DIR) + "/assets/models/demo-target", model);
  const auto temperature = [&](const std::string& options) {
    return document("reason tot --count 1 --depth 1 --thoughts 2 --model " + model + " " +
                    options)["temperature"]
        .get<float>();
  };
  std::ofstream(model + "/generation_config.json")
      << R"({"eos_token_id": 2, "do_sample": true, "temperature": 0.5})";
  EXPECT_EQ(temperature(""), 1.0f);
  EXPECT_EQ(temperature("--defaults model"), 0.5f);
  EXPECT_EQ(temperature("--defaults model --temperature 0.75"), 0.75f);
  std::ofstream(model + "/generation_config.json") << R"({"eos_token_id": 2, "temperature": 0.5})";
  EXPECT_EQ(temperature("--defaults model"), 1.0f) << "greedy decoding writes equal thoughts";
}

TEST_F(CliTot, evaluations_follow_the_temperature_of_thoughts) {
  const std::string ask = "reason tot --count 1 --depth 1 --thoughts 1 --temperature 0.5";
  EXPECT_EQ(document(ask)["value_temperature"], 0.5);
  EXPECT_EQ(document(ask + " --value-temperature 0")["value_temperature"], 0);
}

TEST_F(CliTot, values_come_from_the_chosen_source) {
  const std::string ask = "reason tot --count 1 --depth 1 --value ";
  std::set<json> values;
  for (const char* source : {"written", "expected", "likelihood"}) {
    const json found = document(ask + source);
    EXPECT_EQ(found["value"], source);
    json all = json::array();
    for (const json& node : found["items"][0]["nodes"]) all.push_back(node["value"]);
    values.insert(all);
  }
  EXPECT_EQ(values.size(), 3u);
  expect_refused(ask + "votes", 2, {"--value", "votes", "likelihood"});
}

TEST_F(CliTot, the_state_evaluator_is_measured_on_known_states) {
  const std::string ask = "reason tot --evaluate-states --count 12 --batch 4";
  const json found = document(ask);
  EXPECT_EQ(found["n"], 12);
  EXPECT_EQ(found["complete"], true);
  std::vector<double> good, bad;
  for (const json& state : found["states"])
    (state["good"].get<bool>() ? good : bad).push_back(state["likelihood"].get<double>());
  EXPECT_EQ(found["n_good"], good.size());
  ASSERT_FALSE(good.empty());
  ASSERT_FALSE(bad.empty());
  double wins = 0;
  for (const double g : good)
    for (const double b : bad) wins += g > b ? 1 : g == b ? 0.5 : 0;
  EXPECT_NEAR(found["values"]["likelihood"]["auc"].get<double>(),
              wins / static_cast<double>(good.size() * bad.size()), 1e-12);
  const Outcome words = run(ask);
  ASSERT_EQ(words.code, 0) << words.err;
  EXPECT_NE(words.out.find("good and"), std::string::npos) << words.out;
  EXPECT_EQ(lines(words.out), 5) << words.out;
  expect_refused("reason tot --evaluate-states --task gsm8k", 2, {"gsm8k", "arith, blocks, write"});
}

TEST_F(CliTot, an_item_holds_all_generations_in_search_order) {
  const json found = document("reason tot --count 2 --depth 1 --thoughts 2");
  int n_tokens = 0, n_steps = 0;
  for (const json& item : found["items"]) {
    std::vector<std::string> pieces;
    for (const char* part : {"question", "answer"})
      for (const json& node : item["nodes"])
        if (node["parts"].contains(part)) pieces.push_back(node["parts"][part]);
    for (const json& node : item["nodes"])
      if (node["evaluation"].is_string()) pieces.push_back(node["evaluation"]);
    pieces.push_back(item["answer"]);
    EXPECT_GE(pieces.size(), 4u);
    const std::string text = item["text"];
    std::size_t at = 0;
    for (const std::string& piece : pieces) {
      const std::size_t here = text.find(piece, at);
      ASSERT_NE(here, std::string::npos) << piece << "\nnot found after " << at << " of\n" << text;
      at = here + piece.size();
    }
    n_tokens += item["tokens"].get<int>();
    n_steps += item["steps"].get<int>();
  }
  const json& last = found["by_use"]["answers"];
  EXPECT_GT(last["tokens"], 0);
  EXPECT_EQ(n_tokens, found["tokens"].get<int>() + last["tokens"].get<int>());
  EXPECT_EQ(n_steps, found["steps"].get<int>() + last["steps"].get<int>());
}

TEST_F(CliTot, a_drafting_decoder_finds_the_same_tree_faster) {
  const std::string ask = "reason tot --count 2 --depth 2 --decoder ";
  json ar = document(ask + "ar");
  for (const char* decoder : {"speculative --set gamma=4", "mcsd --batch 3 --set k_config=2,1,1",
                              "seed --set k_config=2,1,1"}) {
    json drafted = document(ask + decoder);
    for (std::size_t i = 0; i < 2; i++) {
      EXPECT_LT(drafted["items"][i]["steps"], ar["items"][i]["steps"]) << decoder;
      drafted["items"][i]["steps"] = ar["items"][i]["steps"];
    }
    EXPECT_EQ(drafted["items"], ar["items"]) << decoder;
    EXPECT_LT(drafted["steps"], ar["steps"]);
    EXPECT_EQ(drafted["draft"], "demo-draft");
    EXPECT_FALSE(drafted["options"].empty());
    for (const char* rate :
         {"acceptance_rate", "accepted_of_verified", "depth_accepted", "alpha"}) {
      EXPECT_GT(drafted[rate], 0) << rate;
      EXPECT_LE(drafted[rate], 1) << rate;
      EXPECT_GT(drafted["by_use"]["values"][rate], 0) << rate;
    }
  }
}

TEST_F(CliTot, a_decoder_that_changes_the_distribution_is_marked) {
  const std::string ask =
      "reason tot --count 1 --depth 1 --decoder mcsd --sampling rejection "
      "--set draft_temperature=0 --set as_released=";
  EXPECT_EQ(document(ask + "on")["lossless"], false);
  EXPECT_EQ(document(ask + "off")["lossless"], true);
  EXPECT_NE(run(ask + "on").out.find("mcsd, NOT lossless with these options: "), std::string::npos);
  EXPECT_EQ(run(ask + "off").out.find("NOT lossless"), std::string::npos);
}

TEST_F(CliTot, schedule_figures_are_documented_and_add_up) {
  const std::string contracts = read_file(DECOSCOPE_SOURCE_DIR "/docs/decoders/seed.md");
  const std::size_t begin = contracts.find("## `schedule`");
  ASSERT_NE(begin, std::string::npos);
  const std::string part = contracts.substr(begin, contracts.find("\n## ", begin + 1) - begin);
  for (const char* decoder : {"ar", "mcsd", "seed"}) {
    const json found = document(std::string("reason tot --count 1 --depth 2 --decoder ") + decoder);
    const json& schedule = found["schedule"];
    for (const auto& [name, value] : schedule.items())
      EXPECT_NE(part.find("`" + name + "`"), std::string::npos) << name;
    // An output ends at its stop string with every decoder; tokens after it do not count.
    for (const char* name : {"tokens", "steps", "proposed", "accepted", "rejected"}) {
      std::int64_t sum = 0;
      for (const auto& [use, cost] : found["by_use"].items()) sum += cost[name].get<int>();
      EXPECT_EQ(schedule[name], sum) << name << " of " << decoder;
    }
  }
}

TEST_F(CliTot, seed_reports_waits_and_costs_of_its_branches) {
  const std::string ask = "reason tot --count 1 --depth 1 --decoder seed";
  const json schedule = document(ask)["schedule"];
  for (const char* name : {"target_busy", "alpha", "accepted_of_verified", "wait_for_target_ms",
                           "wait_for_draft_ms", "branch_cache_bytes"})
    EXPECT_GT(schedule[name], 0) << name << schedule.dump();
  const Outcome words = run(ask);
  EXPECT_NE(words.out.find("target busy: "), std::string::npos) << words.out;
  EXPECT_NE(words.out.find("branches waited"), std::string::npos) << words.out;
}

// The models take turns on one thread (overlap=never), so the set of active branches does not depend on
// time.
TEST_F(CliTot, three_seed_branches_cost_three_caches_and_one_model) {
  const std::string ask =
      "reason tot --count 1 --depth 1 --decoder seed --set overlap=never --set branches=";
  const json one = document(ask + "1")["schedule"], three = document(ask + "3")["schedule"];
  EXPECT_EQ(one["most_branches"], 1);
  EXPECT_EQ(three["most_branches"], 3);
  for (const char* name : {"weight_bytes", "draft_weight_bytes"}) {
    EXPECT_GT(one[name], 0) << name;
    EXPECT_EQ(three[name], one[name]) << name;
  }
  EXPECT_GT(one["branch_cache_bytes"], 0);
  EXPECT_EQ(three["branch_cache_bytes"], 3 * one["branch_cache_bytes"].get<std::int64_t>())
      << "the thoughts of a question share a prompt and have equally many pages after it";
}

TEST_F(CliTot, prints_the_tree_with_values_and_the_answer_path) {
  const Outcome outcome = run("reason tot --count 1 --depth 2 --thoughts 2");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("arith/1/test/"), std::string::npos) << outcome.out;
  int n_path = 0, n_pruned = 0, n_thoughts = 0, n_heads = 0;
  std::istringstream text(outcome.out);
  for (std::string line; std::getline(text, line);) {
    if (line.find("no. score  fate ") != std::string::npos) {
      EXPECT_EQ(n_path + n_pruned + n_thoughts, 0) << "the header is above the thoughts";
      for (const char* sign : {"> path of the answer", "? no score", "- not evaluated"})
        EXPECT_NE(line.find(sign), std::string::npos) << line;
      n_heads++;
      continue;
    }
    const std::string head = line.substr(0, 24);
    n_path += head.find(">") != std::string::npos;
    n_pruned += line.find("  pruned  ") != std::string::npos;
    n_thoughts += line.find("?") != std::string::npos && line.starts_with("  ");
  }
  EXPECT_EQ(n_heads, 1) << outcome.out;
  EXPECT_GE(n_path, 1) << outcome.out;
  EXPECT_GE(n_pruned, 1) << outcome.out;
  EXPECT_GE(n_thoughts, 2) << outcome.out;
  EXPECT_NE(outcome.out.find("tokens/s"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" 1 correct ("), std::string::npos) << outcome.out;
  std::smatch counts;
  const std::regex summary("([0-9]+) thoughts generated in ([0-9]+) parts, and ([0-9]+) scores: ");
  ASSERT_TRUE(std::regex_search(outcome.out, counts, summary)) << outcome.out;
  const int n_all = std::stoi(counts[1]);
  EXPECT_LE(n_all, 4);
  EXPECT_GE(std::stoi(counts[2]), n_all) << "a question and its answer";
  EXPECT_LE(std::stoi(counts[3]), n_all);
}

TEST_F(CliTot, a_recording_is_complete_and_holds_every_thought) {
  const std::string record = folder + "/tot.pdrun";
  const json found =
      document("reason tot --task blocks --count 1 --depth 2 --thoughts 2 --record " + record);
  const Outcome valid = run("trace validate " + record);
  EXPECT_EQ(valid.code, 0) << valid.out << valid.err;
  const json info = document("trace info " + record);
  ASSERT_EQ(info["searches"].size(), 1u);
  const json& search = info["searches"][0];
  EXPECT_EQ(search["id"], found["items"][0]["id"]);
  EXPECT_EQ(search["thoughts"], found["items"][0]["nodes"].size());
  EXPECT_EQ(search["answer"], found["items"][0]["answer"]);
  EXPECT_EQ(search["correct"], found["items"][0]["correct"]);
}

TEST_F(CliTot, a_recorded_schedule_gives_curves_by_stage) {
  const std::string record = folder + "/seed.pdrun";
  const json found = document(
      "reason tot --count 1 --depth 2 --decoder seed --set k_config=1,1,1 --set overlap=always "
      "--record " +
      record);
  const json rows = document("reason schedule --branches 1,3 --recording " + record)["rows"];
  ASSERT_EQ(rows.size(), 4u);
  for (std::size_t i = 0; i < rows.size(); i++) {
    const json& row = rows[i];
    EXPECT_EQ(row["stage"], i < 2 ? "thoughts" : "evaluations");
    const json& cost = found["by_use"][i < 2 ? "thoughts" : "values"];
    EXPECT_EQ(row["rounds"], cost["steps"]) << row;
    EXPECT_DOUBLE_EQ(row["acceptance_rate"].get<double>(), cost["acceptance_rate"].get<double>());
    EXPECT_GT(row["draft_ms"], 0) << row;
    EXPECT_GT(row["verify_ms"], 0) << row;
    if (row["branches"] == 1) {
      EXPECT_DOUBLE_EQ(row["speedup"].get<double>(), 1);
    } else {
      EXPECT_GE(row["speedup"], 1) << row;
      EXPECT_LE(row["speedup"], row["bound"].get<double>() * (1 + 1e-9)) << row;
    }
  }
  const json same = document("reason schedule --draft-ms 4 --verify-ms 2 --recording " + record);
  EXPECT_EQ(same["rows"][0]["draft_ms"], 4);
  EXPECT_EQ(same["rows"][0]["step_ms"], 2);
  const std::string plain = folder + "/ar.pdrun";
  document("reason tot --count 1 --depth 1 --thoughts 1 --record " + plain);
  expect_refused("reason schedule --recording " + plain, 3, {"ar.pdrun", "--decoder seed"});
}

TEST_F(CliTot, simulated_curves_are_printed_in_three_formats) {
  const std::string ask = "reason schedule --right 0,1 --branches 1,2 --tokens 8 --levels 1";
  const json rows = document(ask)["rows"];
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3]["right"], 1);
  EXPECT_EQ(rows[3]["acceptance_rate"], 1);
  EXPECT_EQ(rows[3]["branches"], 2);
  EXPECT_DOUBLE_EQ(rows[3]["speedup"].get<double>(), 160.0 / 90);
  const Outcome csv = run(ask + " --csv");
  ASSERT_EQ(csv.code, 0) << csv.err;
  EXPECT_EQ(lines(csv.out), 5) << csv.out;
  EXPECT_TRUE(csv.out.starts_with("stage,right,acceptance_rate,draft_ms,")) << csv.out;
  EXPECT_NE(csv.out.find("\n,1.0,1.0,30.0,10.0,10.0,2,2,4,16,4.0,1.77"), std::string::npos)
      << csv.out;
  const Outcome text = run(ask);
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"a draft model per branch", "1.78x", "target busy", "drafters busy"})
    EXPECT_NE(text.out.find(part), std::string::npos) << text.out;
  expect_refused(ask + " --recording a.pdrun", 2, {"--recording"});
  expect_refused("reason schedule --right 2", 2, {"--right", "2"});
  expect_refused("reason schedule --verify-ms 0", 2, {"--verify-ms"});
  expect_refused("reason schedule --draft-ms 0 --verify-ms 1e-7", 2, {"--verify-ms", "1e-06"});
  expect_refused("reason schedule --step-ms 4e-7", 2, {"--step-ms", "1e-06"});
  EXPECT_EQ(document(ask + " --draft-ms 0 --verify-ms 1e-6")["rows"][0]["verify_ms"], 1e-6);
  expect_refused("reason schedule --tokens 4096 --levels 1000 --branches 1,16", 2,
                 {"found 65536000 tokens in one simulation", "at most 4000000"});
}

TEST_F(CliTot, another_prompt_file_changes_the_prompts) {
  const std::string prompts = folder + "/prompts.jsonl";
  std::ofstream(prompts)
      << R"({"use": "thought", "part": "answer", "prompt": "USER: {problem} ASSISTANT:", "max_tokens": 5})";
  const json found = document("reason tot --count 1 --depth 1 --thoughts 1 --prompts " + prompts);
  EXPECT_EQ(found["items"][0]["nodes"].size(), 1u);
  EXPECT_TRUE(found["items"][0]["nodes"][0]["value"].is_null());
  EXPECT_EQ(found["by_use"]["values"]["calls"], 0);
  std::ofstream(prompts)
      << R"({"use": "thought", "part": "answer", "prompt": "{problm}", "max_tokens": 5})";
  expect_refused("reason tot --count 1 --prompts " + prompts, 3, {"{problm}", "{problem}"});
}

TEST_F(CliTot, an_impossible_search_is_refused) {
  expect_refused("reason tot --task blocksworl", 2, {"did you mean blocksworld"});
  expect_refused("reason tot --task blocks --level 1 --count 1", 3, {"--actions"});
  expect_refused("reason tot --data nosuch.jsonl", 3, {"nosuch.jsonl"});
  expect_refused("reason tot --prompts nosuch.jsonl", 3, {"nosuch.jsonl"});
  expect_refused("reason tot --beam 0", 2, {"--beam: found '0'"});
  expect_refused("reason tot --decoder fastcot --sampling rejection", 2, {"fastcot"});
  expect_refused("reason tot --draft demo-draft", 2, {"not used by ar"});
}

}  // namespace

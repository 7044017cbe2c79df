// Draft heads on the command line: creation, inspection, use, refusals, and trees grown for them.
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

class CliHeads : public CliModel {
 protected:
  /// Random heads for the bundled target.
  std::string heads(const std::string& kind, const std::string& more = "") const {
    const std::string out = folder + "/my-" + kind;
    const Outcome made = run("model random --heads " + kind + " " + more + " " + out);
    EXPECT_EQ(made.code, 0) << made.err;
    return out;
  }
  json document(const std::string& command) const {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0) << command << ": " << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
};

const std::string kShort = " --prompt \"Question: Anna has 3 apples\" --max-tokens 12 --json";

TEST_F(CliHeads, output_with_random_heads_equals_ar) {
  for (const std::string kind : {"medusa", "chimera"}) {
    const std::string dir = heads(kind);
    const std::string command = "generate --decoder " + kind + " --heads " + dir + kShort;
    const json plain = document(command + " --set tree=own");
    EXPECT_EQ(plain["identical_to_ar"], true) << kind;
    EXPECT_EQ(plain["lossless"], true);
    EXPECT_EQ(plain["heads"], "my-" + kind);
    EXPECT_FALSE(plain.contains("draft"));
    EXPECT_GT(plain["metrics"]["head_1_verified"].get<int>(), 0);
    const json large = document(command + " --scale 4x1 --set tree=rows8");
    EXPECT_EQ(large["tokens"], plain["tokens"]);
    EXPECT_EQ(large["identical_to_ar"], true);
    const json typical = document(command + " --set verify=typical --temperature 1");
    EXPECT_EQ(typical["lossless"], false);
  }
}

TEST_F(CliHeads, medusa_and_chimera_heads_race_and_are_recorded) {
  const std::string both = heads("medusa") + "," + heads("chimera");
  const std::string record = folder + "/race.pdrun", trace = folder + "/race.json";
  const json race = document("compare --decoders ar,medusa,chimera --heads " + both + kShort +
                             " --record " + record + " --trace " + trace);
  ASSERT_EQ(race["summary"].size(), 3u);
  for (const json& one : race["summary"])
    if (one["decoder"] != "ar") {
      EXPECT_EQ(one["identical"], 1) << one;
    }
  const Outcome info = run("trace info " + record);
  EXPECT_EQ(info.code, 0) << info.err;
  for (const char* name : {"my-medusa", "my-chimera"})
    EXPECT_NE(info.out.find(name), std::string::npos) << info.out;
  EXPECT_EQ(run("trace validate " + record).code, 0);
  EXPECT_EQ(run("trace validate " + trace).code, 0);
}

TEST_F(CliHeads, missing_and_unexpected_heads_are_refused_by_name) {
  const std::string made = heads("medusa");
  // A copy of the bundled target whose card names no heads.
  const std::string target = folder + "/target";
  std::filesystem::copy(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target", target);
  std::filesystem::remove(target + "/decoscope.json");
  const auto refused = [&](const std::string& command, int code, const std::string& part) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, code) << command << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  const std::string of_target = "generate --model " + target + " --prompt a --decoder ";
  refused(of_target + "medusa", 2, "medusa needs draft heads: the card of target names none");
  refused(of_target + "chimera", 2, "chimera needs draft heads");
  refused(of_target + "chimera --heads " + made, 2, "heads of medusa, not used by chimera");
  refused(of_target + "ar --heads " + made, 2, "used by medusa and chimera");
  refused(of_target + "medusa --heads " + target, 3, "medusa or chimera");
  refused(of_target + "medusa --heads " + made + " --set tree=rows15", 2, "medusa: tree: found");
  // The tree file is checked before the model: this one is invalid.
  std::ofstream(folder + "/twice.json") << R"({"paths": [[0], [0]]})";
  refused(
      "generate --model absent --prompt a --decoder medusa --set tree=" + folder + "/twice.json", 3,
      "medusa: tree: " + folder + "/twice.json");
  refused("compare --model absent --prompt a --decoders ar,mcsd --set k_config=2,,1", 2,
          "mcsd: k_config: found ");
  const std::string bundled = "generate --prompt a --decoder ";
  refused(bundled + "medusa --heads " + made + " --set tree=" + folder + "/none.json", 3,
          "none.json");
  const std::string few = heads("chimera", "--n-heads 2");
  refused(bundled + "chimera --heads " + few + " --set tree=chimera_23", 2, "expected at most 2");
  const std::string other = folder + "/other";
  const std::string small = tiny_model();
  EXPECT_EQ(run("model random --heads medusa --model " + small + " " + other).code, 0);
  refused(of_target + "medusa --heads " + other, 3, "hidden_size");
  refused("model random --heads medusa --config x.json " + folder + "/both", 2, "--");
}

TEST_F(CliHeads, model_info_and_validate_accept_heads) {
  const std::string dir = heads("chimera", "--n-heads 3 --dtype f32");
  const json info = document("model info --json " + dir);
  EXPECT_EQ(info["heads_of"], "chimera");
  EXPECT_EQ(info["base"], "demo-target");
  EXPECT_EQ(info["n_heads"], 3);
  EXPECT_EQ(info["dtype"], "f32");
  EXPECT_EQ(info["gram"], 3);
  EXPECT_EQ(info["sees_committed_grams"], true);
  EXPECT_EQ(document("model validate --json " + dir)["valid"], true);
  std::filesystem::resize_file(dir + "/model.safetensors", 1000);
  EXPECT_EQ(run("model validate " + dir).code, 3);
}

TEST_F(CliHeads, a_tree_is_grown_for_a_row_count_or_row_costs) {
  const std::string dir = heads("medusa");
  EXPECT_EQ(run("model tree " + dir).code, 3) << "there are no accuracies";
  std::ofstream(dir + "/accuracies.json")
      << R"({"heads": [[0.7, 0.1, 0.05], [0.6, 0.1], [0.5, 0.1], [0.4, 0.1], [0.9]],)"
      << R"( "prompts": 100, "measured_on": "by hand"})";
  const std::string tree = dir + "/tree.json";
  const json grown = document("model tree " + dir + " --rows 9 --json --out " + tree);
  EXPECT_EQ(grown["rows"], 9);
  EXPECT_LE(grown["depth"], 4) << "four heads";
  EXPECT_EQ(grown["paths"].size(), 8u);
  EXPECT_EQ(grown["paths"][0], json::array({0}));
  // A tree file beside the heads belongs to them.
  const json run_with =
      document("generate --decoder medusa --set tree=own --heads " + dir + kShort);
  EXPECT_LE(run_with["metrics"]["rows_per_step"].get<double>(), 9);
  EXPECT_GT(run_with["metrics"]["rows_per_step"].get<double>(), 5);

  const std::string costs = folder + "/costs.json";
  std::ofstream(costs) << R"({"rows": [{"rows": 1, "ms": 1}, {"rows": 6, "ms": 1.01},)"
                       << R"( {"rows": 7, "ms": 3}, {"rows": 16, "ms": 9}]})";
  EXPECT_EQ(document("model tree " + dir + " --rows auto --json --costs " + costs)["rows"], 6);
  EXPECT_EQ(document("model tree " + dir + " --rows auto --json --costs " + costs)["costs"],
            json({{"file", costs}}));
  EXPECT_TRUE(grown["costs"].is_null());
  const Outcome printed = run("model tree " + dir + " --rows 4");
  EXPECT_EQ(json::parse(printed.out)["paths"].size(), 3u);
  EXPECT_EQ(run("model tree " + dir + " --rows 0").code, 2);
  EXPECT_EQ(run("model tree " + dir + " --rows auto --costs " + tree).code, 3);
}

TEST_F(CliHeads, a_tree_is_grown_for_measured_row_costs) {
  const std::string model = tiny_model(), medusa = folder + "/heads", chimera = folder + "/others";
  for (const auto& [kind, dir] : {std::pair("medusa", medusa), std::pair("chimera", chimera)}) {
    const std::string made = " --model " + model + " " + dir;
    ASSERT_EQ(run(std::string("model random --n-heads 3 --heads ") + kind + made).code, 0);
    std::ofstream(dir + "/accuracies.json")
        << R"({"heads": [[0.8, 0.1, 0.05], [0.7, 0.1], [0.6, 0.1]], "prompts": 9,)"
        << R"( "measured_on": "by hand"})";
    const std::string line = "model tree --rows auto --json " + dir + " --model " + model;
    const json grown = document(line + " --scale 4x1");
    const json& costs = grown["costs"];
    EXPECT_EQ(costs["model"], "tiny");
    EXPECT_EQ(costs["scale"], "4x1");
    EXPECT_GT(costs["heads_ms"].get<double>(), 0);
    ASSERT_GE(costs["rows"].size(), 8u);
    for (const json& row : costs["rows"]) EXPECT_GT(row["ms"].get<double>(), 0);
    EXPECT_EQ(grown["paths"].size() + 1, grown["rows"].get<std::size_t>());
    // The same figures in a file, heads included, choose the same rows.
    json file = {{"rows", costs["rows"]}};
    for (json& row : file["rows"])
      if (row["rows"] > 1) row["ms"] = row["ms"].get<double>() + costs["heads_ms"].get<double>();
    std::ofstream(folder + "/measured.json") << file;
    const json again =
        document("model tree --rows auto --json " + dir + " --costs " + folder + "/measured.json");
    EXPECT_EQ(again["rows"], grown["rows"]) << file;
  }
  const auto refused = [&](const std::string& more, int code, const std::string& part) {
    const Outcome outcome = run("model tree " + medusa + " " + more);
    EXPECT_EQ(outcome.code, code) << more << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  };
  refused("--rows auto", 3, "tiny");  // the model that the heads name does not exist
  refused("--rows 9 --scale 4x1", 2, "--scale: no effect");
  refused("--rows auto --costs " + folder + "/measured.json --model " + model, 2,
          "--model: no effect");
  refused("--rows 9 --costs " + folder + "/measured.json", 2, "--costs: no effect");
  refused("--rows auto --model demo-target", 3, "hidden_size");
}

TEST_F(CliHeads, bench_decode_measures_with_heads) {
  const json out = document("bench decode --decoder medusa --heads " + heads("medusa") +
                            " --context 8 --max-tokens 6 --repeat 1 --json");
  EXPECT_EQ(out["heads"], "my-medusa");
  EXPECT_EQ(out["tokens"], 6);
  // matrices are packed in the type of their file; padding adds little
  const json info = document("model info " + folder + "/my-medusa --json");
  const auto bytes = info["weight_bytes"].get<double>();
  EXPECT_NEAR(out["heads_weight_bytes"].get<double>(), bytes, 0.1 * bytes);
  const json plain = document("bench decode --context 8 --max-tokens 6 --repeat 1 --json");
  EXPECT_FALSE(plain.contains("heads_weight_bytes"));
  EXPECT_EQ(out["cache_bytes"], plain["cache_bytes"]) << "Medusa's heads keep no cache";
  const json step = document("bench step --rows 1 --context 8 --repeat 1 --json");
  EXPECT_EQ(plain["cache_bytes"], 14 * step["cache_bytes_per_token"].get<int>());
  const json chimera = document("bench decode --decoder chimera --heads " + heads("chimera") +
                                " --context 8 --max-tokens 6 --repeat 1 --json");
  EXPECT_GT(chimera["heads_weight_bytes"], 0);
  EXPECT_GT(chimera["cache_bytes"], plain["cache_bytes"]);
  const json drafted =
      document("bench decode --decoder speculative --context 8 --max-tokens 6 --repeat 1 --json");
  EXPECT_GT(drafted["cache_bytes"], plain["cache_bytes"]);
}

}  // namespace

// --json prints one document and nothing else, with fields of the types in docs/contracts.md.
// json::parse reads the whole standard output, so any other text fails.
#include <fstream>
#include <regex>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

const char* type_of(const json& value) {
  return value.is_number_integer() ? "integer" : value.type_name();
}

/// Reports differences between `found` and the form `expected`: a type or several ("number|null";
/// an integer is a number too), the members of an object, the form of every item of a list.
void compare_form(const json& found,
                  const json& expected,
                  const std::string& at,
                  std::string& wrong) {
  if (expected.is_string()) {
    const std::string type = type_of(found);
    const std::string types = "|" + expected.get<std::string>() + "|";
    const bool fits = types.find("|" + type + "|") != std::string::npos ||
                      (type == "integer" && types.find("|number|") != std::string::npos);
    if (!fits) wrong += at + " is " + found.dump() + ", expected " + types + "\n";
  } else if (found.type() != expected.type()) {
    wrong += at + " is of type " + type_of(found) + "\n";
  } else if (expected.is_array()) {
    if (found.empty()) wrong += at + " is empty\n";
    for (std::size_t i = 0; i < found.size(); i++)
      compare_form(found[i], expected[0], at + "[" + std::to_string(i) + "]", wrong);
  } else {
    for (const auto& [name, form] : expected.items()) {
      if (!found.contains(name)) wrong += at + "." + name + " is absent\n";
      if (found.contains(name)) compare_form(found[name], form, at + "." + name, wrong);
    }
  }
}

std::string wrong_in(const json& found, const json& expected) {
  std::string wrong;
  compare_form(found, expected, "document", wrong);
  return wrong;
}

const json kResult = json::parse(R"({
  "id": "string", "decoder": "string", "model": "string", "scale": "string", "device": "string",
  "dtype": "string", "seed": "integer", "prompt_tokens": ["integer"], "tokens": ["integer"],
  "text": "string",
  "token_info": [{"id": "integer", "text": "string", "logp": "number", "drafted_by": "string"}],
  "stop_reason": "string", "steps": "integer", "tokens_per_step": "number",
  "prefill_ms": "number", "decode_ms": "number", "tokens_per_second": "number",
  "lossless": "boolean", "identical_to_ar": "boolean|null", "speedup": "number|null",
  "metrics": {"rows": "integer"}})");

const json kMachine =
    json::parse(R"({"cpu": "string", "gpu": "null", "threads": "integer", "ops": "string"})");

json with(json form, const json& more) {
  form.update(more);
  return form;
}

class CliJson : public CliModel {
 protected:
  json document(const std::string& arguments, int code = 0) const {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.code, code) << arguments << ": " << outcome.err;
    const json found = json::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(found.is_discarded()) << arguments << ": " << outcome.out;
    return found;
  }
};

TEST_F(CliJson, one_result_has_figures_and_decoder_counters) {
  const json found = document(
      "generate --decoder lookahead --prompt 'Anna has 3 pens and 3 pens' --max-tokens 16");
  EXPECT_EQ(wrong_in(found, kResult), "");
  EXPECT_EQ(wrong_in(found["metrics"], json::parse(R"({"rows": "integer", "rows_per_step": "number",
                                     "near_ties": "integer",
                                     "proposed": "integer", "accepted": "integer",
                                     "rejected": "integer", "pool_tries": "integer",
                                     "pool_hits": "integer", "window_rows": "integer"})")),
            "");
}

/// Checks token_info of a result against its tokens and its text.
void expect_token_info(const json& result) {
  std::string text;
  std::vector<int> ids;
  const std::regex drafted_by("none|bonus|pool|draft|head [1-9][0-9]*|prompt|guess");
  for (const json& token : result["token_info"]) {
    text += token["text"].get<std::string>();
    ids.push_back(token["id"].get<int>());
    EXPECT_LE(token["logp"].get<double>(), 1e-6) << token;
    EXPECT_TRUE(std::regex_match(token["drafted_by"].get<std::string>(), drafted_by)) << token;
  }
  EXPECT_EQ(text, result["text"]);
  EXPECT_EQ(json(ids), result["tokens"]);
}

TEST_F(CliJson, each_token_has_logp_and_drafted_by) {
  const std::string asked = " --prompt 'Anna has 3 pens and 3 pens' --max-tokens 24";
  const auto logp_of = [](const json& result) {
    json logp = json::array();
    for (const json& token : result["token_info"]) logp.push_back(token["logp"]);
    return logp;
  };
  const json ar = document("generate" + asked);
  expect_token_info(ar);
  for (const json& token : ar["token_info"]) EXPECT_EQ(token["drafted_by"], "none");
  const json race = document("compare --decoders lookahead,speculative,medusa" + asked);
  ASSERT_EQ(race["results"].size(), 3u);
  for (const json& result : race["results"]) {
    expect_token_info(result);
    EXPECT_EQ(logp_of(result), logp_of(ar)) << result["lane"];
  }
}

TEST_F(CliJson, a_stop_string_is_cut_and_named) {
  const std::string asked = " --prompt 'Anna has 3 pens and' --max-tokens 40";
  const std::string whole = document("generate" + asked)["text"];
  const std::string stop = whole.substr(11, 5);
  ASSERT_EQ(stop.find_first_of("'\n"), std::string::npos) << whole;
  const std::string stopped = asked + " --stop 'never written' --stop '" + stop + "'";
  const std::string text = whole.substr(0, whole.find(stop));
  for (const char* decoder : {"ar", "lookahead", "mcsd"}) {
    const json found = document(std::string("generate --decoder ") + decoder + stopped);
    EXPECT_EQ(found["text"], text) << decoder;
    EXPECT_EQ(found["stop_reason"], "stop_string");
    EXPECT_EQ(found["stop_string"], stop);
    EXPECT_EQ(found["identical_to_ar"], true);
    EXPECT_FALSE(found.contains("stop_id"));
    expect_token_info(found);
    // The plain text output is the same, without the stop string.
    const Outcome shown = run(std::string("generate --decoder ") + decoder + stopped);
    EXPECT_EQ(shown.out, text + "\n") << decoder;
    EXPECT_NE(shown.err.find("stop_string"), std::string::npos) << shown.err;
  }
}

TEST_F(CliJson, a_stop_id_ends_generation_and_is_named) {
  const std::string asked = " --prompt 'Anna has 3 pens and' --max-tokens 40 --ignore-eos";
  const json whole = document("generate" + asked);
  const int id = whole["tokens"][9];
  const json race =
      document("compare --decoders ar,jacobi,seed" + asked + " --stop-id " + std::to_string(id));
  for (const json& found : race["results"]) {
    EXPECT_EQ(found["stop_reason"], "stop_id") << found["lane"];
    EXPECT_EQ(found["stop_id"], id);
    EXPECT_EQ(found["tokens"].back(), id);
    EXPECT_LE(found["tokens"].size(), 10u);
    EXPECT_EQ(found["identical_to_ar"], true);
    expect_token_info(found);
  }
}

TEST_F(CliJson, an_unknown_stop_id_is_refused_before_decoding) {
  for (const char* command : {"generate", "compare --decoders ar,jacobi"}) {
    const Outcome outcome =
        run(std::string(command) + " --prompt a --stop-id 1000000000 --record " + folder +
            "/none.pdrun");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("stop id 1000000000: demo-target has "), std::string::npos)
        << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder + "/none.pdrun"));
  }
}

TEST_F(CliJson, a_recording_keeps_the_stop_string_and_validates) {
  const std::string record = folder + "/a.pdrun", trace = folder + "/a.json";
  const std::string asked = " --prompt 'Anna has 3 pens and' --max-tokens 40";
  const std::string whole = document("generate" + asked)["text"];
  const std::string stop = whole.substr(11, 5);
  ASSERT_EQ(run("generate --decoder lookahead" + asked + " --stop '" + stop + "' --record " +
                record + " --trace " + trace)
                .code,
            0);
  EXPECT_EQ(run("trace validate " + record).code, 0);
  EXPECT_EQ(run("trace validate " + trace).code, 0);
  const json info = json::parse(run("trace info --json " + record).out);
  EXPECT_EQ(info["runs"][0]["stop_reason"], "stop_string");
  EXPECT_EQ(info["runs"][0]["stop_string"], stop);
}

// The contract has 40, not 40.0: strict JSON readers depend on it.
TEST_F(CliJson, whole_numbers_have_no_decimal_point) {
  const Outcome outcome = run("generate --prompt 'Anna has' --max-tokens 4 --json");
  std::smatch rows;
  ASSERT_TRUE(std::regex_search(outcome.out, rows, std::regex("\"rows\": ([^,\\s]+)")));
  EXPECT_TRUE(std::regex_match(rows[1].str(), std::regex("[0-9]+"))) << rows[1];
}

TEST_F(CliJson, a_race_has_machine_results_and_decoder_summaries) {
  const json found = document("compare --decoders ar,jacobi --prompt 'Anna has' --max-tokens 8");
  EXPECT_EQ(wrong_in(found, {{"machine", kMachine},
                             {"results", json::array({kResult})},
                             {"summary", json::array({json::parse(R"({
                                "decoder": "string", "n": "integer", "tokens_per_second": "number",
                                "tokens_per_step": "number", "speedup": "number|null",
                                "lossless": "boolean", "identical": "integer|null"})")})}}),
            "");
}

TEST_F(CliJson, probes_are_listed_per_machine_and_dtype) {
  EXPECT_EQ(wrong_in(document("bench probe"),
                     with(kMachine, json::parse(R"({"read_gbps": "number", "gflops": {
                            "f32": "number", "bf16": "number", "f16": "number"},
                            "reason": "null"})"))),
            "");
}

TEST_F(CliJson, step_costs_are_reported_with_their_roofline) {
  const json machine = with(kMachine, json::parse(R"({"read_gbps": "number",
      "read_gbps_after": "number", "gflops": "number", "gflops_f32": "number",
      "last_level_cache_bytes": "integer"})"));
  EXPECT_EQ(wrong_in(document("bench step --rows 1,2 --context 8 --repeat 1"),
                     with(json::parse(R"({"model": "string", "scale": "string", "dtype": "string",
                            "context": "integer", "weight_bytes": "integer",
                            "cache_bytes": "integer", "cache_bytes_per_token": "integer",
                            "cache_read_bytes": "integer",
                            "generate_peak_rss_bytes": "integer", "launches_per_step": "null",
                            "kernels_per_step": "null", "prompts": "null",
                            "rows": [{"rows": "integer", "ms": "number", "ratio": "number",
                                      "roofline_ms": "number", "roofline_fraction": "number"}]})"),
                          {{"machine", machine}})),
            "");
}

TEST_F(CliJson, first_steps_after_prompts_are_listed_separately) {
  const json document_of_draft = document(
      "bench step --rows 1,2 --context 8 --new-prompt-tokens 3 --texts 2 --repeat 1 --first-steps "
      "3,1,3 --decoder "
      "speculative --draft-forwards 2");
  EXPECT_EQ(wrong_in(document_of_draft, json::parse(R"({"texts": "integer",
                         "rows": [{"rows": "integer", "ms": "number", "first_steps": [
                            {"steps": "integer", "ms": "number", "draft_ms": "number"}]}]})")),
            "");
  ASSERT_EQ(document_of_draft["texts"], 2);
  for (const json& row : document_of_draft["rows"]) {
    ASSERT_EQ(row["first_steps"].size(), 2u);
    EXPECT_EQ(row["first_steps"][0]["steps"], 1);
    EXPECT_EQ(row["first_steps"][1]["steps"], 3);
    EXPECT_GT(row["first_steps"][1]["draft_ms"], 0);
  }
  EXPECT_EQ(wrong_in(document("bench step --rows 1 --context 8 --repeat 1 --first-steps 2"),
                     json::parse(R"({"rows": [{"first_steps": [{"draft_ms": "null"}]}]})")),
            "");
  for (const char* decoder : {"medusa", "chimera"})
    EXPECT_GT(document(std::string("bench step --rows 1 --context 8 --repeat 1 --first-steps 2 "
                                   "--decoder ") +
                       decoder)["rows"][0]["first_steps"][0]["draft_ms"],
              0)
        << decoder;
}

TEST_F(CliJson, a_breakdown_accounts_for_the_whole_step) {
  const json found = document("bench step --rows 1,9 --context 8 --repeat 2 --breakdown");
  for (const json& row : found["rows"]) {
    const json& parts = row["breakdown"];
    double ms = parts["between_ms"];
    for (const char* kind :
         {"products", "norms", "rope", "attention", "activation", "cache", "choice", "other"}) {
      ms += parts["kinds"][kind]["ms"].get<double>();
      EXPECT_GE(parts["kinds"][kind]["operations"], 1) << kind;
      EXPECT_GT(parts["kinds"][kind]["ms"], 0) << kind;
    }
    EXPECT_NEAR(ms, parts["ms"].get<double>(), 1e-6);
    EXPECT_GE(parts["between_ms"], 0);
    EXPECT_GE(parts["waiting"], 0);
    EXPECT_LE(parts["waiting"], 1);
  }
}

TEST_F(CliJson, tokens_per_second_have_a_spread) {
  EXPECT_EQ(wrong_in(document("bench decode --max-tokens 4 --context 8 --repeat 2"),
                     with(json::parse(R"({"model": "string", "dtype": "string", "scale": "string",
                            "context": "integer", "tokens": "integer",
                            "tokens_per_second": "number", "min": "number", "max": "number",
                            "n": "integer", "prefill_ms": "number", "prompts": "null",
                            "peak_rss_bytes": "integer", "cache_bytes": "integer",
                            "weight_bytes": "integer"})"),
                          {{"machine", kMachine}})),
            "");
}

TEST_F(CliJson, records_are_a_list_and_checks_and_stats_objects) {
  const json records = document("data generate arith --count 3");
  EXPECT_EQ(wrong_in(records, json::parse(R"([{"task": "string", "split": "string",
                       "level": "integer", "prompt": "string", "completion": "string",
                       "answer": "string", "check": {}}])")),
            "");
  const std::string file = folder + "/records.jsonl";
  {
    std::ofstream lines(file);
    for (const json& record : records) lines << record.dump() << "\n";
  }
  EXPECT_EQ(wrong_in(document("data check " + file),
                     json::parse(R"({"records": "integer", "correct": "integer",
                       "not_checked": "integer", "wrong": "integer", "reasons": "array",
                       "stopped": "boolean"})")),
            "");
  EXPECT_EQ(wrong_in(document("data stats " + file),
                     json::parse(R"({"records": "integer", "mean_tokens": "number",
                       "max_tokens": "integer", "over_256_tokens": "integer",
                       "over_512_tokens": "integer", "over_task_tokens": "integer",
                       "copy_share_floor": "number",
                       "mean_chars": "number", "max_chars": "integer", "copy_share": "number",
                       "duplicates": "integer", "prompts_in_two_splits": "integer",
                       "forms": "object", "stopped": "boolean"})")),
            "");
}

TEST_F(CliJson, model_info_has_shape_weights_and_memory) {
  const json form = json::parse(R"({"name": "string", "path": "string", "model_type": "string",
      "parameters": "integer", "dtype": "string", "weights_hash": "string", "dim": "integer",
      "hidden_dim": "integer", "n_layers": "integer", "n_heads": "integer",
      "n_kv_heads": "integer", "head_dim": "integer", "vocab_size": "integer",
      "tokenizer_size": "integer|null", "max_seq_len": "integer", "tied_embeddings": "boolean",
      "qkv_bias": "boolean", "sliding_window": "integer",
      "rope": {"type": "string", "theta": "number", "factor": "number"}, "norm_eps": "number",
      "eos_ids": ["integer"], "draft": "string", "notices": "array",
      "memory": {"weight_bytes": "integer", "workspace_bytes": "integer",
                 "cache_bytes_per_token": "integer", "cache_bytes_full_context": "integer"}})");
  EXPECT_EQ(wrong_in(document("model info demo-target"), form), "");
  const json checked = document("model validate demo-target");
  EXPECT_EQ(wrong_in(checked, with(form, {{"valid", "boolean"}})), "");
  EXPECT_EQ(checked["valid"], true);
}

TEST_F(CliJson, a_refused_model_or_trace_is_a_json_document_too) {
  const std::string tiny = tiny_model(), weights = tiny + "/model.safetensors";
  std::filesystem::resize_file(weights, std::filesystem::file_size(weights) - 1);
  const json of_model = document("model validate " + tiny, 3);
  EXPECT_EQ(of_model["valid"], false);
  EXPECT_EQ(of_model["path"], tiny);
  EXPECT_NE(of_model["error"].get<std::string>().find("model.safetensors"), std::string::npos)
      << of_model;
  EXPECT_EQ(document("model validate " + folder + "/none", 3)["valid"], false);
  std::ofstream(folder + "/odd.pdrun") << "no recording";
  const json of_trace = document("trace validate " + folder + "/odd.pdrun", 3);
  EXPECT_EQ(of_trace["ok"], false);
  EXPECT_NE(of_trace["error"].get<std::string>().find("odd.pdrun"), std::string::npos) << of_trace;
}

TEST_F(CliJson, training_and_export_report_their_results) {
  std::ofstream(folder + "/pieces.json")
      << R"({"name": "pieces", "mixture": {"arith": {"weight": 1},
      "sql": {"weight": 1}}, "vocab_size": 640, "sample_bytes": 60000})";
  const json tokenizer =
      document("train tokenizer --recipe " + folder + "/pieces.json --out " + folder + "/pieces");
  EXPECT_EQ(wrong_in(tokenizer, json::parse(R"({"out": "string", "finished": "boolean",
                "steps": "null", "tokens": "null", "seconds": "number", "completion_loss": "null",
                "compute": "null", "vocab_size": "integer", "sample_bytes": "integer"})")),
            "");
  EXPECT_EQ(tokenizer["vocab_size"], 640);
  EXPECT_GE(tokenizer["sample_bytes"], 60000 / 2);
  std::ofstream(folder + "/small.json") << R"({"name": "small", "mixture": {"arith": {"weight": 1}},
      "model": {"layers": 1, "dim": 32, "hidden_dim": 64, "heads": 1, "max_seq_len": 64},
      "context": 64, "batch_tokens": 256, "tokens": 1000})";
  const std::string training = "train target --recipe " + folder + "/small.json --out " + folder +
                               "/small --tokenizer " + folder + "/pieces";
  const json trained = document(training);
  EXPECT_EQ(wrong_in(trained, json::parse(R"({"out": "string", "finished": "boolean",
                "steps": "integer", "tokens": "integer", "seconds": "number",
                "completion_loss": "number", "completion_loss_steps": "integer",
                "compute": "string"})")),
            "");
  EXPECT_EQ(trained["completion_loss_steps"], trained["steps"]);
  const json exported = document(training + " --export");
  EXPECT_EQ(wrong_in(exported, json::parse(R"({"out": "string", "finished": "null",
                "steps": "integer", "tokens": "integer", "seconds": "number",
                "completion_loss": "null", "compute": "string"})")),
            "");
  for (const char* same : {"out", "steps", "tokens", "compute"})
    EXPECT_EQ(exported[same], trained[same]) << same;
}

TEST_F(CliJson, train_heads_and_train_outputs_report_results) {
  const std::string recipes = DECOSCOPE_SOURCE_DIR "/assets/recipes/";
  const json outputs =
      document("train outputs --recipe " + recipes + "tiny-medusa.json --out " + folder + "/texts");
  EXPECT_EQ(wrong_in(outputs, json::parse(R"({"file": "string", "finished": "boolean",
                "texts": "integer", "tokens": "integer", "ended": "integer", "checked": "integer",
                "right": "null"})")),
            "");
  EXPECT_EQ(outputs["texts"], 24);
  for (const std::string kind : {"medusa", "chimera"}) {
    const std::string out = folder + "/" + kind;
    const json trained =
        document("train " + kind + " --recipe " + recipes + "tiny-" + kind + ".json --texts " +
                 outputs["file"].get<std::string>() + " --out " + out);
    EXPECT_EQ(wrong_in(trained, json::parse(R"({"out": "string", "finished": "boolean",
                "steps": "integer", "places": "integer", "seconds": "number", "losses": "object",
                "compute": "string", "accuracies": "array", "prompts": "integer"})")),
              "");
    EXPECT_EQ(trained["steps"], 12) << "24 texts in batches of four, two epochs";
    ASSERT_EQ(trained["accuracies"].size(), 2u);
    EXPECT_EQ(trained["accuracies"][0].size(), 5u);
    std::ifstream file(out + "/accuracies.json");
    const json accuracies = json::parse(file);
    ASSERT_EQ(accuracies["heads"].size(), 2u);
    ASSERT_EQ(accuracies["heads"][0].size(), 10u);
    EXPECT_EQ(accuracies["prompts"], 8);
    // The accuracy of each rank alone, while the command reports cumulative accuracies.
    EXPECT_NEAR(accuracies["heads"][1][0].get<double>() + accuracies["heads"][1][1].get<double>(),
                trained["accuracies"][1][1].get<double>(), 1e-9);
  }
}

TEST_F(CliJson, a_trained_cllm_decodes_by_jacobi_and_lookahead) {
  std::ofstream(folder + "/cllm.json")
      << R"({"name": "taught", "mixture": {"arith": {"weight": 1, "levels": [1, 0, 0]}}, "block": 8,
      "prompts": 4, "max_new_tokens": 64, "drop_wrong": false, "batch_texts": 2, "replay_texts": 1,
      "context": 256, "epochs": 1, "probe_minutes": 0, "probe_problems": 1, "score_problems": 1})";
  const std::string out = folder + "/taught";
  const json trained = document("train cllm --recipe " + folder + "/cllm.json --out " + out);
  const std::string scores = R"([{"task": "string", "n": "integer", "n_checked": "integer",
      "n_correct": "integer", "tokens_per_step_block": "number", "tokens_per_step_slide": "number",
      "fast_forward": "number", "stationary": "number"}])";
  EXPECT_EQ(wrong_in(trained, json::parse(R"({"out": "string", "finished": "boolean",
                "collected": {"answers": "integer", "kept": "integer", "not_checked": "integer",
                  "not_ended": "integer", "wrong": "integer", "token_runs": "integer",
                  "sentence_runs": "integer", "too_long": "integer", "evaluation": "integer",
                  "blocks": "integer", "points": "integer", "seconds": "number"},
                "steps": "integer", "rows": "integer", "seconds": "number",
                "losses": {"ar": "number", "consistency": "number", "replay": "number"},
                "losses_steps": "integer", "compute": "string",
                "before": )" + scores + R"(, "after": )" +
                                          scores + "}")),
            "");
  EXPECT_EQ(trained["finished"], true);
  EXPECT_EQ(trained["collected"]["answers"], 4);
  EXPECT_EQ(trained["steps"], 2);
  for (const char* decoder : {"jacobi", "lookahead"}) {
    const json written = document("generate --check --prompt 'Anna has' --max-tokens 12 --model " +
                                  out + " --decoder " + decoder);
    EXPECT_EQ(written["identical_to_ar"], true) << decoder;
    EXPECT_EQ(written["model"], "taught");
  }
}

TEST_F(CliJson, model_score_reports_one_task_and_level) {
  const json scored = document("model score --task arith --level 3 --count 1");
  ASSERT_EQ(scored["scores"].size(), 1u) << scored;
  EXPECT_EQ(scored["scores"][0]["task"], "arith");
  EXPECT_EQ(scored["scores"][0]["level"], 3);
  EXPECT_EQ(scored["scores"][0]["n"], 1);
  EXPECT_EQ(scored["scores"][0]["forms"].size(), 1u);
}

TEST_F(CliJson, model_score_reads_plain_text_and_counts_by_form) {
  const json scored = document("model score --task plain,chat --level 1 --count 2");
  ASSERT_EQ(scored["scores"].size(), 2u) << scored;
  const json &plain = scored["scores"][0], &chat = scored["scores"][1];
  EXPECT_EQ(wrong_in(plain, json::parse(R"({"perplexity": "number", "accuracy": "null",
                                            "n_ended": "null", "entropy": "null"})")),
            "");
  EXPECT_GT(plain["perplexity"], 1);
  EXPECT_GT(plain["tokens"], 20);
  int n = 0;
  for (const auto& [category, form] : chat["forms"].items()) n += form["n"].get<int>();
  EXPECT_EQ(n, 2);
  EXPECT_FALSE(chat.contains("perplexity"));
}

TEST_F(CliJson, trace_info_validate_and_convert_report_results) {
  const std::string recording = folder + "/a.pdrun", trace = folder + "/a.json";
  ASSERT_EQ(
      run("generate --prompt 'Anna has' --max-tokens 4 --record " + recording + " --trace " + trace)
          .code,
      0);
  const json of_recording = json::parse(R"({"path": "string", "type": "string",
      "version": "integer", "program_version": "string", "bytes": "integer", "events": "integer",
      "kinds": "object", "seconds": "number", "closed": "boolean", "damaged": "integer",
      "runs": [{"run": "integer", "decoder": "string", "model": "string", "seed": "integer",
                "steps": "integer", "tokens": "integer", "tokens_per_step": "number",
                "tokens_per_second": "number", "decode_ms": "number", "speedup": "number|null",
                "state": "string"}],
      "notices": "array"})");
  const json of_trace = json::parse(R"({"path": "string", "type": "string", "profile": "string",
      "events": "integer", "lanes": "integer", "slices": "integer", "flows": "integer",
      "milliseconds": "number", "n_problems": "integer", "problems": "array",
      "notices": "array"})");
  EXPECT_EQ(wrong_in(document("trace info " + recording), of_recording), "");
  EXPECT_EQ(wrong_in(document("trace info " + trace), of_trace), "");
  const json with_ok = {{"ok", "boolean"}};
  EXPECT_EQ(wrong_in(document("trace validate " + recording), with(of_recording, with_ok)), "");
  EXPECT_EQ(wrong_in(document("trace validate " + trace), with(of_trace, with_ok)), "");
  EXPECT_EQ(wrong_in(document("trace convert " + recording + " " + folder + "/b.txt"),
                     json::parse(R"({"from": "string", "files": ["string"], "notices": "array"})")),
            "");
}

TEST_F(CliJson, each_device_reports_availability_and_reason) {
  const json found = document("devices");
  EXPECT_EQ(wrong_in(found, json::parse(R"([{"name": "string", "kind": "string",
                       "available": "boolean", "reason": "string", "memory_bytes": "integer|null",
                       "ops": "string", "gpu": "object|null"}])")),
            "");
  for (const json& device : found) {
    EXPECT_NE(device["memory_bytes"], 0) << device;
    EXPECT_EQ(device["gpu"].is_null(),
              device["kind"] == "cpu" || device["name"] == "cuda:emulated");
    if (device["gpu"].is_null() || device["available"] == true) continue;
    EXPECT_NE(device["gpu"]["reason"], "") << device;
    EXPECT_TRUE(device["gpu"]["gpu_busy_percent"].is_null()) << device;
  }
}

// The memory plan, which also decides whether a model is too large.
TEST_F(CliJson, model_info_reports_the_memory_of_a_run) {
  const std::string tiny = tiny_model();
  const json memory = document("model info " + tiny)["memory"];
  // 2 layers of 64, 4 heads of 16 with 2 for keys and values, MLP 96, 128 tokens, tied; bf16 has 2
  // bytes per number.
  const int layer = 64 * 64 + 2 * 32 * 64 + 64 * 64 + 3 * 64 * 96 + 2 * 64;
  EXPECT_EQ(memory["weight_bytes"], 2 * (2 * layer + 128 * 64 + 64));
  EXPECT_EQ(memory["cache_bytes_per_token"], 2 * 2 * 2 * 32);
  EXPECT_EQ(memory["cache_bytes_full_context"], 512 * 2 * 2 * 2 * 32);
  EXPECT_GT(memory["workspace_bytes"], 0);
  const std::string text = run("model info " + tiny).out;
  EXPECT_NE(text.find("0.1 MB weights"), std::string::npos) << text;
  EXPECT_NE(text.find("256 bytes per token, 0.1 MB at full context"), std::string::npos) << text;
}

}  // namespace

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/closest_name.h"
#include "engine/decode/mcsd.h"
#include "engine/decode/registry.h"
#include "engine/decode/speculative.h"
#include "engine/decode/verify/sampling_mode.h"
#include "tests/support/models/toy_heads.h"
#include "tests/support/models/toy_model.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

std::string usage_error(const std::function<void()>& action) {
  return test::refusal(action, ErrorCode::Usage);
}

TEST(Registry, every_decoder_can_be_made_with_its_defaults) {
  ToyModel model({});
  ToyMedusa medusa({}, 4);
  ToyChimera chimera({}, 4);
  for (const DecoderInfo& info : decoders()) {
    DecoderContext context{.target = model, .draft_model = &model};
    if (info.name == "medusa") context.heads = &medusa;
    if (info.name == "chimera") context.heads = &chimera;
    context.trees_dir = DECOSCOPE_SOURCE_DIR "/assets/trees";
    EXPECT_NE(make_decoder(info.name, context), nullptr);
    EXPECT_FALSE(info.title.empty() || info.summary.empty() || info.reference.empty());
    const OptionValues values = complete_options(info, {});
    EXPECT_EQ(values.size(), info.options.size());
    for (const OptionInfo& option : info.options) {
      EXPECT_EQ(values.at(option.name), option.default_value);
      EXPECT_GT(option.help.size(), 40u) << option.name << ": the help is too short";
      const bool has_words = option.type == OptionInfo::Type::Choice ||
                             option.type == OptionInfo::Type::Bool ||
                             option.type == OptionInfo::Type::Tree ||
                             option.default_value == "auto" || option.name == "ranks";
      EXPECT_EQ(has_words, !option.choices.empty()) << info.name << " " << option.name;
      for (const std::string& choice : option.choices)
        EXPECT_EQ(complete_options(info, {{option.name, choice}}).at(option.name), choice);
      // Defaults and all presets are valid values.
      EXPECT_NO_THROW(complete_options(info, {{option.name, option.default_value}}));
      EXPECT_EQ(option.default_value.starts_with('-'), !option.below_zero.empty())
          << option.name << ": below_zero must explain a negative default";
    }
    for (const auto& [name, preset] : info.presets) EXPECT_NO_THROW(complete_options(info, preset));
  }
}

// Option names and values that the documented command line promises. Decoders may have more.
TEST(Registry, option_names_follow_the_command_line_contract) {
  const std::vector<std::string> any, on_off{"true", "false"};
  const std::vector<std::string> rules{"without", "with", "naive", "kseq"};
  const std::map<std::string, std::map<std::string, std::vector<std::string>>> fixed{
      {"ar", {}},
      {"jacobi",
       {{"block", any}, {"refill", {"block", "slide"}}, {"fill", {"prompt", "pad", "repeat"}}}},
      {"lookahead",
       {{"window", any},
        {"ngram_size", any},
        {"n_guesses", any},
        {"prompt_pool", on_off},
        {"bonus", on_off},
        {"advance", {"one", "accepted"}},
        {"keep", on_off},
        {"preset", {"paper"}}}},
      {"prompt-lookup",
       {{"max_ngram", any}, {"n_tokens", any}, {"variant", {"paper", "hf", "last"}}}},
      {"recycling",
       {{"rows", any},
        {"k", any},
        {"tree", {"own", "rows8", "my/tree.json", "none"}},
        {"pairs", on_off},
        {"prompt", on_off},
        {"learn", {"all", "accepted"}},
        {"keep", on_off}}},
      {"suffix",
       {{"n_tokens", any},
        {"factor", {"0.5", "3"}},
        {"min_p", {"0", "1"}},
        {"shape", {"tree", "chain"}},
        {"earlier", on_off},
        {"keep_tokens", {"0", "1000000"}}}},
      {"speculative", {{"gamma", any}, {"draft_temperature", any}, {"stop_below", any}}},
      {"mcsd", {{"k_config", {"2,2,1"}}, {"rule", rules}, {"draft_temperature", any}}},
      {"seed",
       {{"rule", rules},
        {"k_config", {"2,2,1"}},
        {"policy", {"fcfs", "shortest", "priority"}},
        {"overlap", {"auto", "always", "never"}},
        {"drafters", {"0", "1", "3"}},
        {"batch_verify", any}}},
      {"fastcot",
       {{"window", any}, {"filler", any}, {"skip", on_off}, {"stop", {"none", "probe", "bound"}}}},
      {"medusa",
       {{"tree", {"rows8", "my/tree.json"}},
        {"stop_below", any},
        {"verify", {"greedy", "typical", "sample"}}}},
      {"chimera",
       {{"tree", {"chimera_23", "tree.json"}},
        {"verify", {"greedy", "typical", "sample"}},
        {"drafting", {"chain", "branch"}},
        {"cache", any}}}};
  for (const auto& [name, options] : fixed) {
    const DecoderInfo& info = decoder_named(name);
    const OptionValues values = complete_options(info, {});
    for (const auto& [option, words] : options) {
      EXPECT_TRUE(values.contains(option)) << name << ": " << option;
      for (const std::string& word : words)
        EXPECT_NO_THROW(complete_options(info, {{option, word}})) << name << ": " << option;
    }
  }
}

TEST(Registry, names_the_closest_decoder_and_option) {
  EXPECT_THAT(usage_error([] { decoder_named("lookahed"); }), HasSubstr("'lookahead'"));
  EXPECT_THAT(usage_error([] { decoder_named("promptlookup"); }), HasSubstr("'prompt-lookup'"));
  EXPECT_THAT(usage_error([] { decoder_named("zzzzzz"); }), HasSubstr("known are ar, jacobi"));
  const DecoderInfo& info = decoder_named("lookahead");
  EXPECT_THAT(usage_error([&] {
                complete_options(info, {{"windw", "3"}});
              }),
              HasSubstr("'window'"));
  EXPECT_THAT(usage_error([] {
                complete_options(decoder_named("ar"), {{"block", "3"}});
              }),
              HasSubstr("has none"));
}

TEST(Registry, refuses_values_by_name_and_range) {
  const DecoderInfo& info = decoder_named("lookahead");
  for (const char* value : {"", "x", "3x", "0", "65", "-1", "1e3", "99999999999999999999", "3.0"}) {
    const std::string message = usage_error([&] { complete_options(info, {{"window", value}}); });
    EXPECT_THAT(message, HasSubstr("lookahead: window: found '" + std::string(value) + "'"));
    EXPECT_THAT(message, HasSubstr("between 1 and 64, or auto"));
  }
  EXPECT_THAT(usage_error([&] {
                complete_options(info, {{"advance", "two"}});
              }),
              HasSubstr("one of one, accepted"));
  EXPECT_THAT(usage_error([&] {
                complete_options(info, {{"bonus", "maybe"}});
              }),
              HasSubstr("true or false"));
  EXPECT_EQ(complete_options(info, {{"bonus", "off"}}).at("bonus"), "false");
}

TEST(Registry, explicit_options_override_a_preset) {
  const OptionValues values =
      complete_options(decoder_named("lookahead"), {{"preset", "paper"}, {"window", "7"}});
  EXPECT_EQ(values.at("window"), "7");
  EXPECT_EQ(values.at("ngram_size"), "5");
  EXPECT_EQ(values.at("bonus"), "false");
  EXPECT_EQ(complete_options(decoder_named("lookahead"), {}).at("bonus"), "true");
  // Completing twice changes nothing.
  EXPECT_EQ(complete_options(decoder_named("lookahead"), values), values);
}

// Recordings and saved settings of earlier versions have them.
TEST(Registry, retired_options_have_no_effect) {
  for (const char* name : {"lookahead", "fastcot"}) {
    const DecoderInfo& info = decoder_named(name);
    EXPECT_EQ(complete_options(info, {{"adapt", "0"}}), complete_options(info, {}));
  }
  EXPECT_THAT(usage_error([] {
                complete_options(decoder_named("jacobi"), {{"adapt", "0"}});
              }),
              HasSubstr("adapt"));
}

TEST(Registry, parses_options_into_typed_structs) {
  const ParsedOptions speculative = parse_options("speculative", {{"gamma", "7"}});
  EXPECT_EQ(dynamic_cast<const SpeculativeOptions&>(*speculative).gamma, 7);
  EXPECT_EQ(speculative->draft_shape()->depth, 7);
  EXPECT_EQ(speculative->info().name, "speculative");

  const ParsedOptions mcsd = parse_options("mcsd", {{"k_config", "3, 2"}, {"rule", "kseq"}});
  const auto& tree = dynamic_cast<const McsdOptions&>(*mcsd);
  EXPECT_EQ(tree.k_config, (LevelCounts{3, 2}));
  EXPECT_EQ(tree.rule, DraftRule::KSeq);
  EXPECT_EQ(mcsd->draft_shape()->n_tokens, 3 + 6);
  EXPECT_EQ(mcsd->values().at("k_config"), "3,2");
  EXPECT_FALSE(parse_options("mcsd", {{"k_config", "auto"}})->draft_shape());

  EXPECT_EQ(parse_options("lookahead", {{"ranks", "3"}})->n_ranks(), 3);
  EXPECT_EQ(parse_options("fastcot", {{"stop", "bound"}})->early_stop(), "bound");
  EXPECT_EQ(parse_options("fastcot", {})->early_stop(), "");
  for (const DecoderInfo& info : decoders()) {
    const ParsedOptions defaults = parse_options(info.name, {});
    EXPECT_EQ(parse_options(info.name, defaults->values())->values(), defaults->values());
  }
}

TEST(Registry, refuses_rejection_sampling_where_unsupported) {
  ToyModel model({});
  const Sampling rejection{.temperature = 1, .mode = Sampling::Mode::Rejection};
  const std::string message =
      usage_error([&] { make_decoder("fastcot", {.target = model, .sampling = rejection}); });
  EXPECT_THAT(message, HasSubstr("fastcot cannot run with sampling=rejection"));
  EXPECT_THAT(message, HasSubstr("coupled"));
  for (const char* name : {"ar", "jacobi", "lookahead", "prompt-lookup", "suffix"}) {
    EXPECT_FALSE(refusal(decoder_named(name), rejection, model, nullptr)) << name;
  }
  for (const char* name : {"speculative", "mcsd", "seed"}) {
    EXPECT_FALSE(refusal(decoder_named(name), rejection, model, &model)) << name;
  }
  // Greedy decoding draws no numbers, so rejection sampling is accepted.
  const Sampling greedy{.mode = Sampling::Mode::Rejection};
  EXPECT_FALSE(refusal(decoder_named("fastcot"), greedy, model, nullptr));
  const auto textbook = refusal(decoder_named("jacobi"), rejection, {{"form", "textbook"}});
  ASSERT_TRUE(textbook);
  EXPECT_THAT(*textbook, HasSubstr("use form=kv"));
}

TEST(Registry, refuses_a_missing_draft_or_another_vocabulary) {
  ToyModel model({.vocab = 16}), other({.vocab = 12});
  for (const char* name : {"speculative", "mcsd", "seed"}) {
    const std::string none = usage_error([&] { make_decoder(name, {.target = model}); });
    EXPECT_THAT(none, HasSubstr(std::string(name) + " needs a draft model and there is none"));
    EXPECT_THAT(none, HasSubstr("--draft"));
    const std::string counts =
        usage_error([&] { make_decoder(name, {.target = model, .draft_model = &other}); });
    EXPECT_THAT(counts, HasSubstr(name));
    EXPECT_THAT(counts, HasSubstr("the draft has 12 tokens, the target 16"));
  }
  for (const char* name : {"medusa", "chimera"}) {
    const std::string none = usage_error([&] { make_decoder(name, {.target = model}); });
    EXPECT_THAT(none, HasSubstr(std::string(name) + " needs draft heads"));
    EXPECT_THAT(none, HasSubstr("--heads"));
  }
  ToyMedusa heads({.vocab = 12}, 2);
  EXPECT_THAT(usage_error([&] { make_decoder("medusa", {.target = model, .heads = &heads}); }),
              HasSubstr("the heads have 12 tokens, the model 16"));
  // An unused draft is ignored.
  EXPECT_NE(make_decoder("ar", {.target = model, .draft_model = &other}), nullptr);
}

TEST(Registry, a_tree_is_a_bounded_comma_separated_list) {
  const DecoderInfo& info = decoder_named("mcsd");
  EXPECT_EQ(complete_options(info, {{"k_config", "4, 2,1"}}).at("k_config"), "4,2,1");
  for (const char* value :
       {"", ",", "2,", ",2", "2,,1", "2;1", "0", "2,0", "65", "a", "2,-1", "1.5"}) {
    EXPECT_THAT(usage_error([&] {
                  complete_options(info, {{"k_config", value}});
                }),
                HasSubstr("mcsd: k_config: found '" + std::string(value) +
                          "', expected whole numbers between 1 and 64 with commas between"));
  }
  EXPECT_NO_THROW(complete_options(info, {{"k_config", "3,4,20"}}));  // 3 + 12 + 240
  EXPECT_THAT(usage_error([&] {
                complete_options(info, {{"k_config", "4,4,15"}});  // 4 + 16 + 240
              }),
              HasSubstr("more than 255"));
  const std::string wide = "64,64,64,64,64,64,64,64,64,64,64,64,64";
  EXPECT_THAT(usage_error([&] {
                complete_options(info, {{"k_config", wide}});
              }),
              HasSubstr("more than 255"));
  EXPECT_THAT(usage_error([&] {
                complete_options(decoder_named("seed"), {{"k_config", "4,4,15"}});
              }),
              HasSubstr("seed: k_config: found '4,4,15'"));
}

TEST(Registry, only_typical_and_as_released_are_not_lossless) {
  const Sampling greedy, coupled{.temperature = 1};
  const Sampling rejection{.temperature = 1, .mode = Sampling::Mode::Rejection};
  for (const DecoderInfo& info : decoders())
    for (const Sampling& sampling : {greedy, coupled, rejection})
      EXPECT_TRUE(is_lossless(info, complete_options(info, {}), sampling)) << info.name;
  for (const char* name : {"medusa", "chimera"}) {
    const DecoderInfo& heads = decoder_named(name);
    const OptionValues typical = complete_options(heads, {{"verify", "typical"}});
    EXPECT_FALSE(is_lossless(heads, typical, coupled)) << name;
    EXPECT_FALSE(is_lossless(heads, typical, rejection)) << name;
    EXPECT_TRUE(is_lossless(heads, typical, greedy)) << "only the argmax passes the threshold";
    const OptionValues sample = complete_options(heads, {{"verify", "sample"}});
    EXPECT_TRUE(is_lossless(heads, sample, rejection)) << name;
  }
  const DecoderInfo& info = decoder_named("mcsd");
  const OptionValues certain =
      complete_options(info, {{"as_released", "on"}, {"draft_temperature", "0"}});
  EXPECT_FALSE(is_lossless(info, certain, rejection));
  EXPECT_TRUE(is_lossless(info, certain, greedy))
      << "exact match compares tokens, not distributions";
  EXPECT_TRUE(is_lossless(info, certain, coupled));
  const OptionValues drawn = complete_options(info, {{"as_released", "on"}});
  EXPECT_TRUE(is_lossless(info, drawn, rejection))
      << "candidates are samples of their distribution";
  const auto certain_with = [&info](OptionValues options) {
    options.insert({{"as_released", "on"}, {"draft_temperature", "0"}});
    return complete_options(info, options);
  };
  for (const char* chain : {"1", "1,1,1"})
    EXPECT_TRUE(is_lossless(info, certain_with({{"k_config", chain}}), rejection)) << chain;
  EXPECT_FALSE(is_lossless(info, certain_with({{"k_config", "1,2"}}), rejection));
  for (const char* rule : {"without", "with", "kseq", "naive"})
    EXPECT_EQ(is_lossless(info, certain_with({{"rule", rule}}), rejection),
              rule == std::string("naive"))
        << "naive uses only the target's distribution";
}

// The run's event and the engine's settings give the same names.
TEST(Registry, temperature_and_sampling_names_are_consistent) {
  for (const float temperature : {0.0f, 9e-6f, 1e-5f, 1.1e-5f, 1.0f})
    EXPECT_EQ(is_greedy(temperature), Sampling{.temperature = temperature}.greedy()) << temperature;
  for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection})
    EXPECT_EQ(sampling_mode(name_of(mode)), mode);
  const auto takes = [](const DecoderInfo& info) { return takes_turns(info.name); };
  ASSERT_EQ(std::ranges::count_if(decoders(), takes), 1);
  EXPECT_TRUE(complete_options(*std::ranges::find_if(decoders(), takes), {}).contains("branches"));
}

TEST(ClosestName, counts_edits) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("wnidow", "window"), 1);
  const std::vector<std::string> known{"window", "n_guesses"};
  EXPECT_EQ(closest_name("win", known), "window");
  EXPECT_EQ(closest_name("temperature", known), "");
}

}  // namespace
}  // namespace engine::test

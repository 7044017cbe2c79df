#include "engine/decode/registry.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/base/closest_name.h"
#include "engine/decode/ar.h"
#include "engine/decode/chimera.h"
#include "engine/decode/fastcot.h"
#include "engine/decode/jacobi.h"
#include "engine/decode/lookahead.h"
#include "engine/decode/mcsd.h"
#include "engine/decode/medusa.h"
#include "engine/decode/options.h"
#include "engine/decode/prompt_lookup.h"
#include "engine/decode/verify/sampling.h"
#include "engine/decode/speculative.h"
#include "engine/decode/textbook_jacobi.h"
#include "engine/event/run_rules.h"
#include "engine/model/draft_heads.h"

namespace engine {
namespace {

using Type = OptionInfo::Type;

std::string short_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

OptionInfo int_info(const char* name, int value, int min, int max, const char* help) {
  return {
      name, Type::Int, std::to_string(value), static_cast<double>(min), static_cast<double>(max),
      {},   help};
}
OptionInfo float_info(const char* name, double value, double min, double max, const char* help) {
  return {name, Type::Float, short_number(value), min, max, {}, help};
}
OptionInfo bool_info(const char* name, bool value, const char* help) {
  return {name, Type::Bool, value ? "true" : "false", 0, 0, {"true", "false"}, help};
}
OptionInfo choice_info(const char* name, std::vector<std::string> choices, const char* help) {
  return {name, Type::Choice, choices[0], 0, 0, choices, help};
}

OptionInfo tree_info(std::vector<std::string> choices, const char* help) {
  return {"tree", Type::Tree, choices[0], 0, 0, choices, help};
}

OptionInfo counts_info(const char* name, const char* value, int min, int max, const char* help) {
  return {name, Type::Counts, value, static_cast<double>(min), static_cast<double>(max), {}, help};
}

constexpr int kMaxDraftRows = 255;  // of one step

constexpr int kMaxRanks = 16;  // that decode one text together

// Lookahead's defaults, the fastest sizes on two cores (docs/results.md): small windows suit
// machines where extra rows are not free.
constexpr int kDefaultWindow = 2;
constexpr int kDefaultNgramSize = 3;
constexpr int kDefaultGuesses = 4;

DecoderInfo ar_info() {
  DecoderInfo info;
  info.name = "ar";
  info.title = "Autoregressive";
  info.summary =
      "One token a step, each from all before it: the baseline every other decoder must "
      "reproduce.";
  info.reference = "plain decoding";
  info.supports_rejection = true;
  return info;
}

DecoderInfo jacobi_info() {
  DecoderInfo info;
  info.name = "jacobi";
  info.title = "Jacobi";
  info.summary =
      "Guesses a whole block and refines all of it in every step; what has stopped "
      "changing from the front is final.";
  info.reference = "Song et al. 2021, arXiv:2002.03629; Kou et al. 2024, arXiv:2403.00835 (CLLM)";
  info.options = {
      int_info("block", 16, 1, 256,
               "Tokens refined at once: a longer block can finish more in one step, but each step "
               "computes that many rows. 1 is plain decoding."),
      choice_info("refill", {"block", "slide"},
                  "What follows as tokens become final: 'block' lets the block shrink until it has "
                  "converged and then opens the next (CLLM); 'slide' tops it up with new guesses "
                  "in every step (FastCoT)."),
      choice_info("fill", {"prompt", "pad", "repeat"},
                  "First guesses of a block: 'prompt' draws tokens of the text so far, 'pad' takes "
                  "token 0, 'repeat' the last token again."),
      choice_info(
          "form", {"kv", "textbook"},
          "'kv' keeps keys and values of what is final, and the block shrinks; 'textbook' "
          "computes all of the block anew in every step until nothing changes: same tokens, "
          "more work, to be looked at."),
  };
  return info;
}

DecoderInfo fastcot_info() {
  DecoderInfo info;
  info.name = "fastcot";
  info.title = "FastCoT";
  info.summary =
      "Guesses a window of approximate tokens beside each exact one and confirms them a step "
      "later; "
      "a rationale may end early, with the window's guesses for its rest.";
  info.reference = "Zhang et al. 2023, arXiv:2311.08263";
  info.options = {
      int_info("window", 10, 0, 255,
               "c: approximate tokens guessed in every step, each a row. 0 is plain decoding."),
      choice_info("filler", {"pad", "prompt", "repeat"},
                  "What a new slot of the window holds before the model has guessed it: token 0 "
                  "('pad'), a token of the text so far ('prompt') or the last one ('repeat')."),
      bool_info("skip", true,
                "Emit every confirmed guess at once. Without it a step emits one token, as many "
                "steps as plain decoding: the paper's ablation."),
      choice_info("stop", {"none", "bound", "probe"},
                  "When a run may end before its text does: never; after `bound` steps; or when an "
                  "answer is seen in the window ('probe': `reason cot` says what to look for)."),
      int_info(
          "bound", 64, 1, 100000,
          "Steps after which stop=bound ends a run; `reason cot --find-bound` finds a good one."),
      float_info("probe_threshold", 3, 0, 1000,
                 "How much more than the window's mean an answer in it must be attended to, twice "
                 "in a row, for stop=probe."),
      float_info("adapt", 0, 0, 100,
                 "Above 0: use the widest window whose measured step costs at most this many times "
                 "a step without one; which is used changes no token."),
  };
  return info;
}

DecoderInfo lookahead_info() {
  DecoderInfo info;
  info.name = "lookahead";
  info.title = "Lookahead";
  info.summary =
      "A moving window of guesses collects n-grams; those that begin with the last token "
      "are verified in the same step.";
  info.reference = "Fu et al. 2024, arXiv:2402.02057";
  info.supports_rejection = true;
  info.options = {
      int_info("window", kDefaultWindow, 1, 64,
               "W: columns of the window, each yields one new n-gram a step. Wider finds more, and "
               "costs W (N - 1) rows a step."),
      int_info("ngram_size", kDefaultNgramSize, 2, 16,
               "N: tokens in an n-gram; a step can emit at most N. Longer pays where text is very "
               "predictable."),
      int_info("n_guesses", kDefaultGuesses, 0, 64,
               "G: n-grams kept, and so verified at once, for each first token. 0 verifies nothing "
               "and is plain decoding with a window beside it."),
      bool_info("prompt_pool", true,
                "Also collect n-grams from the prompt and the text written so far: good where the "
                "answer repeats the question."),
      bool_info("bonus", true,
                "Keep the model's own next token behind a fully accepted n-gram (the published "
                "program throws it away)."),
      choice_info("advance", {"one", "accepted"},
                  "How far the window moves after a step: always 'one' as published, or by as many "
                  "tokens as were 'accepted', refilled from the text."),
      bool_info("merge", true,
                "Share rows between guesses that begin alike: same tokens, fewer rows."),
      float_info(
          "adapt", 0, 0, 100,
          "Above 0: a step may take at most this many times one of plain decoding. Up to `window`, "
          "`ngram_size` and `n_guesses`, what brings fewest tokens a row rests; no token depends "
          "on it."),
      int_info("ranks", 1, 1, kMaxRanks,
               "Devices that share the rows of every step, each with all the weights: the model's "
               "own and cuda devices behind it, or the CPU's threads in parts. Same tokens, same "
               "steps; pays where each has memory of its own."),
      choice_info("preset", {"none", "paper"},
                  "'paper' sets what was published: W 15, N 5, G 15, no prompt pool, no bonus, no "
                  "merging, nothing verified while the window warms up. Options given by name "
                  "still count."),
  };
  info.presets["paper"] = {{"window", "15"},         {"ngram_size", "5"}, {"n_guesses", "15"},
                           {"prompt_pool", "false"}, {"bonus", "false"},  {"merge", "false"},
                           {"advance", "one"}};
  return info;
}

DecoderInfo prompt_lookup_info() {
  DecoderInfo info;
  info.name = "prompt-lookup";
  info.title = "Prompt lookup";
  info.summary =
      "Looks for the last few tokens earlier in the text and guesses that it goes on as "
      "it did there.";
  info.reference = "Saxena 2023, prompt-lookup-decoding";
  info.supports_rejection = true;
  info.options = {
      int_info("max_ngram", 3, 1, 16,
               "Tokens of the text's end to look for, longest first: longer matches are rarer and "
               "more often right."),
      int_info(
          "n_tokens", 10, 1, 128,
          "Tokens guessed from a match: each costs a row, and those behind the first wrong one "
          "are wasted."),
      choice_info("variant", {"last", "hf", "paper"},
                  "Which match counts: the 'last' one; the first, as Hugging Face has it ('hf'); "
                  "or the first with n_tokens behind it ('paper')."),
  };
  return info;
}

/// What every decoder with a draft model lets a person set of the draft.
void add_draft_options(DecoderInfo& info) {
  info.needs_draft = true;
  info.supports_rejection = true;
  std::vector<OptionInfo> options = {
      float_info("stop_below", 0, 0, 1,
                 "Drafts no further where the draft gives its own token less than this "
                 "probability: saves rows that would be refused, and changes no token, or under "
                 "rejection sampling not their distribution."),
      float_info("draft_temperature", -1, -1, 100,
                 "Temperature of the draft; below 0: the target's. 0 proposes its likeliest "
                 "tokens."),
      int_info("draft_top_k", -1, -1, 1 << 20,
               "The draft proposes only of its k likeliest tokens; 0: of all; -1: as the target."),
      float_info("draft_top_p", -1, -1, 1,
                 "The draft proposes only of its likeliest tokens up to this probability; below 0: "
                 "as the target."),
      float_info("draft_min_p", -1, -1, 1,
                 "The draft proposes only tokens of at least this share of its likeliest one's "
                 "probability; below 0: as the target."),
  };
  for (OptionInfo& option : options)
    if (option.min < 0) option.below_zero = "the target's";
  info.options.insert(info.options.end(), options.begin(), options.end());
}

DecoderInfo speculative_info() {
  DecoderInfo info;
  info.name = "speculative";
  info.title = "Speculative";
  info.summary =
      "A small draft model writes a few tokens ahead; the model judges all of them in one step "
      "and keeps those it agrees with.";
  info.reference = "Leviathan et al. 2023, arXiv:2211.17192; Chen et al. 2023, arXiv:2302.01318";
  info.options = {
      int_info("gamma", 4, 0, 64,
               "Tokens drafted a step: more can be accepted at once, and more is lost behind the "
               "first one refused. 0 is plain decoding."),
  };
  add_draft_options(info);
  return info;
}

DecoderInfo mcsd_info() {
  DecoderInfo info;
  info.name = "mcsd";
  info.title = "Multi-candidate";
  info.summary =
      "A draft model proposes a tree, several candidates for each place; the model judges the "
      "whole tree in one step and keeps the path it agrees with.";
  info.reference =
      "Yang et al. 2024, arXiv:2401.06706; SpecInfer, arXiv:2305.09781; SpecTr, "
      "arXiv:2310.15141";
  info.options = {
      counts_info(
          "k_config", "2,1,1", 1, 64,
          "Candidates below each node, level by level: 2,2,1 is 2 + 4 + 4 tokens, three "
          "deep. Width pays where the draft is unsure, depth where it is often right. 'auto' "
          "measures what trees cost and bring here, and keeps the best."),
      choice_info(
          "rule", {"without", "with", "naive", "kseq"},
          "How candidates are drawn and judged under rejection sampling: drawn 'without' "
          "replacement (MCSD) or 'with' it (SpecInfer), 'naive': the model draws and looks "
          "whether a candidate is the same, or 'kseq' (SpecTr). The output's distribution is the "
          "same."),
  };
  info.options.front().choices = {kAuto};
  add_draft_options(info);
  info.options.push_back(bool_info(
      "as_released", false,
      "As the published program does at draft temperature 0: takes a softmax for the candidates' "
      "distribution, though they are certain. NOT lossless under rejection sampling; to be looked "
      "at."));
  return info;
}

DecoderInfo seed_info() {
  DecoderInfo info;
  info.name = "seed";
  info.title = "SEED";
  info.summary =
      "Several texts at a time take turns at the model: while it judges what was drafted for one, "
      "the draft model writes ahead for the others. A text alone is speculative decoding.";
  info.reference = "Wang et al. 2024, arXiv:2406.18200";
  info.options = {
      int_info("branches", 3, 1, 64,
               "Texts under way at once. More hide the draft's time better and cost a cache each."),
      choice_info("policy", {"fcfs", "shortest", "priority"},
                  "Who is next, of the texts that wait for the draft model and of those whose "
                  "draft waits to be judged: first come first served, the shortest text, or the "
                  "most valuable state (priority). It changes no token."),
      int_info("batch_verify", 1, 1, 64,
               "Drafts of different texts that the model may judge in one step. 1 is the published "
               "schedule; more share the reading of the weights."),
      choice_info("overlap", {"auto", "always", "never"},
                  "Whether the draft model works while the model judges: 'auto' measures both and "
                  "keeps the quicker, 'always' is the published schedule, 'never' takes turns, all "
                  "threads for whoever works. It changes no token."),
      int_info("draft_threads", 1, 1, 1024,
               "Processor threads that draft, beside those of the model. In turn it has them all."),
      int_info(
          "target_threads", 0, 0, 1024,
          "Processor threads of the model while the draft works beside it; 0: all of them, which "
          "the drafting ones then share. Where drafting takes long, fewer may be faster."),
      counts_info("k_config", "1,1,1", 1, 64,
                  "Candidates below each node, level by level: 1,1,1 is a chain of three; 2,2,1 a "
                  "tree of 2 + 4 + 4 tokens (mcsd)."),
      choice_info("rule", {"without", "with", "naive", "kseq"},
                  "How candidates are drawn and judged under rejection sampling, as in mcsd."),
  };
  add_draft_options(info);
  return info;
}

/// What every decoder with draft heads lets a person set.
void add_heads_options(DecoderInfo& info) {
  info.needs_heads = true;
  info.supports_rejection = true;
  std::vector<std::string> trees{"own"};
  trees.insert(trees.end(), bundled_trees().begin(), bundled_trees().end());
  trees.push_back("none");
  const std::vector<OptionInfo> options = {
      tree_info(std::move(trees),
                "Which ranks of which head are guessed: the tree beside the heads, else rows16 "
                "('own'), a bundled one or a .json file. More nodes are followed further and "
                "cost a row each; 'none' is plain decoding."),
      float_info(
          "stop_below", 0, 0, 1,
          "Leaves out guesses whose path the heads give less than this probability, and asks "
          "no head below them: saves rows that would be refused, and changes no token, or "
          "under rejection sampling not their distribution."),
      choice_info("verify", {"greedy", "typical", "sample"},
                  "Which guesses stay: those equal to the model's own choice ('greedy'), those it "
                  "finds likely enough ('typical', NOT lossless with a temperature), or those "
                  "equal to a draw of its own for each node ('sample')."),
      float_info("epsilon", 0.09, 0, 1,
                 "Of verify=typical: a token more probable than this is always kept."),
      float_info("delta", 0.3, 0, 1000,
                 "Of verify=typical: where the model is unsure (entropy H) tokens above "
                 "delta exp(-H) are kept too."),
      choice_info("root", {"argmax", "typical", "sample"},
                  "Of verify=typical: the token behind the kept ones is the likeliest ('argmax', "
                  "as published), drawn from those likely enough ('typical') or from all "
                  "('sample')."),
  };
  info.options.insert(info.options.end(), options.begin(), options.end());
}

DecoderInfo medusa_info() {
  DecoderInfo info;
  info.name = "medusa";
  info.title = "Medusa";
  info.summary =
      "Small heads on the model's last state guess several tokens ahead, a few candidates each; "
      "the model judges the tree of them in one step.";
  info.reference = "Cai et al. 2024, arXiv:2401.10774";
  info.reads_prompt_state = true;
  add_heads_options(info);
  return info;
}

DecoderInfo chimera_info() {
  DecoderInfo info;
  info.name = "chimera";
  info.title = "Chimera";
  info.summary =
      "Heads that also see what is drafted before them, through an encoder of token groups and one "
      "transformer block; the model judges their tree in one step.";
  info.reference = "Zeng et al. 2024, arXiv:2402.15758";
  add_heads_options(info);
  const std::vector<OptionInfo> own = {
      choice_info("drafting", {"chain", "branch"},
                  "'chain' asks the heads along their likeliest tokens alone, and every branch of "
                  "a level gets the same candidates; 'branch' asks for each branch by itself, "
                  "which guesses better and costs more."),
      int_info("cache", 1024, 0, 1 << 20,
               "Encoded token groups kept for their next use; 0 keeps none. It changes no token."),
  };
  info.options.insert(info.options.end(), own.begin(), own.end());
  return info;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = closest_name(name, known);
  return nearest.empty() ? "known are " + joined(known) : "did you mean '" + nearest + "'?";
}

[[noreturn]] void refuse_value(const DecoderInfo& info,
                               const OptionInfo& option,
                               const std::string& value,
                               const std::string& expected) {
  throw Error(ErrorCode::Usage, info.name + ": " + option.name + ": found '" + value +
                                    "', expected " + expected + "; the default is " +
                                    option.default_value);
}

/// "2, 2,1" as "2,2,1"; nullopt where it is not whole numbers of the option's range.
std::optional<std::string> counts_from(const OptionInfo& option, const std::string& value) {
  std::string text;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(value.find(',', begin), value.size());
    while (begin < end && value[begin] == ' ') begin++;
    long long number = 0;
    const char* const last = value.data() + end;
    const auto [stop, error] = std::from_chars(value.data() + begin, last, number);
    if (error != std::errc{} || stop != last || static_cast<double>(number) < option.min ||
        static_cast<double>(number) > option.max) {
      return std::nullopt;
    }
    text += (text.empty() ? "" : ",") + std::to_string(number);
    if (end == value.size()) return text;
    begin = end + 1;
  }
}

/// The value as decoders read it.
std::string checked(const DecoderInfo& info, const OptionInfo& option, const std::string& value) {
  const char* end = value.data() + value.size();
  const std::string range =
      "between " + short_number(option.min) + " and " + short_number(option.max);
  switch (option.type) {
    case Type::Int: {
      long long number = 0;
      const auto [stop, error] = std::from_chars(value.data(), end, number);
      if (error != std::errc{} || stop != end || static_cast<double>(number) < option.min ||
          static_cast<double>(number) > option.max) {
        refuse_value(info, option, value, "a whole number " + range);
      }
      return std::to_string(number);
    }
    case Type::Float: {
      double number = 0;
      const auto [stop, error] = std::from_chars(value.data(), end, number);
      if (error != std::errc{} || stop != end || !std::isfinite(number) || number < option.min ||
          number > option.max) {
        refuse_value(info, option, value, "a number " + range);
      }
      return value;
    }
    case Type::Bool:
      if (value == "true" || value == "1" || value == "on" || value == "yes") return "true";
      if (value == "false" || value == "0" || value == "off" || value == "no") return "false";
      refuse_value(info, option, value, "true or false");
    case Type::Choice:
    case Type::Tree: {
      const bool is_tree = option.type == Type::Tree;
      if (is_tree && value.ends_with(".json")) return value;
      for (const std::string& choice : option.choices) {
        if (choice == value) return value;
      }
      refuse_value(info, option, value,
                   "one of " + joined(option.choices) + (is_tree ? ", or a .json file" : ""));
    }
    case Type::Counts:
      if (std::ranges::find(option.choices, value) != option.choices.end()) return value;
      if (const auto counts = counts_from(option, value)) return *counts;
      refuse_value(info, option, value,
                   "whole numbers " + range + " with commas between" +
                       (option.choices.empty() ? "" : ", or " + joined(option.choices)));
  }
  return value;
}

void check_jacobi(const DecoderInfo&, const OptionValues& values) {
  if (values.at("form") != "textbook" || values.at("refill") != "slide") return;
  throw Error(ErrorCode::Usage,
              "jacobi: refill is slide, but form=textbook computes a block until all of it is "
              "final and has nothing to slide; use refill=block or form=kv");
}

void check_fastcot(const DecoderInfo&, const OptionValues& values) {
  if (values.at("stop") == "none" || std::stod(values.at("adapt")) <= 0) return;
  throw Error(ErrorCode::Usage,
              "fastcot: adapt follows measured time, so what stop=" + values.at("stop") +
                  " leaves approximate would differ from run to run; use one of the two");
}

void check_lookahead(const DecoderInfo&, const OptionValues& values) {
  if (n_ranks_of(values) == 1 || std::stod(values.at("adapt")) <= 0) return;
  throw Error(ErrorCode::Usage,
              "lookahead: adapt follows the time that one device measures, so ranks would choose "
              "windows of different sizes; use ranks=1 or adapt=0");
}

/// Of decoders that draft a tree: that a step can hold it.
void check_tree(const DecoderInfo& info, const OptionValues& values) {
  if (is_auto(values, "k_config")) return;
  long long rows = 0, width = 1;
  for (const int k : counts_option(values, "k_config")) {
    width *= k;
    rows += width;
    if (rows <= kMaxDraftRows) continue;
    throw Error(ErrorCode::Usage, info.name + ": k_config: found '" + values.at("k_config") +
                                      "', a tree of more than " + std::to_string(kMaxDraftRows) +
                                      " tokens; use smaller numbers or fewer");
  }
}

template <class D>
std::unique_ptr<Decoder> made(const DecoderContext& context) {
  return std::make_unique<D>(context);
}

std::unique_ptr<Decoder> made_jacobi(const DecoderContext& context) {
  const bool keeps = context.options.at("form") == "kv";
  return keeps ? made<JacobiDecoder>(context) : made<TextbookJacobiDecoder>(context);
}

/// What stands behind a name.
struct Listed {
  DecoderInfo info;
  std::unique_ptr<Decoder> (*make)(const DecoderContext&);
  /// Refuses values that are right by themselves and cannot be together; null: all can.
  void (*check)(const DecoderInfo&, const OptionValues&) = nullptr;
};

const std::vector<Listed>& table() {
  static const std::vector<Listed> rows{
      {ar_info(), made<ArDecoder>},
      {jacobi_info(), made_jacobi, check_jacobi},
      {lookahead_info(), made<LookaheadDecoder>, check_lookahead},
      {prompt_lookup_info(), made<PromptLookupDecoder>},
      {fastcot_info(), made<FastCotDecoder>, check_fastcot},
      {speculative_info(), made<SpeculativeDecoder>},
      {mcsd_info(), made<McsdDecoder>, check_tree},
      {medusa_info(), made<MedusaDecoder>},
      {chimera_info(), made<ChimeraDecoder>},
      // A branch of SEED by itself drafts and verifies in turn: it is a schedule, not a decoder.
      {seed_info(), made<McsdDecoder>, check_tree}};
  return rows;
}

const std::vector<DecoderInfo>& all() {
  static const std::vector<DecoderInfo> infos = [] {
    std::vector<DecoderInfo> found;
    for (const Listed& row : table()) found.push_back(row.info);
    return found;
  }();
  return infos;
}

/// @throws Error(Usage)  if there is none of that name
const Listed& row_of(const std::string& name) {
  return table()[static_cast<std::size_t>(&decoder_named(name) - all().data())];
}

}  // namespace

std::span<const DecoderInfo> decoders() {
  return all();
}

const DecoderInfo& decoder_named(const std::string& name) {
  std::vector<std::string> known;
  for (const DecoderInfo& info : all()) {
    if (info.name == name) return info;
    known.push_back(info.name);
  }
  throw Error(ErrorCode::Usage,
              "decoder: there is none named '" + name + "'; " + suggestion(name, known));
}

OptionValues complete_options(const DecoderInfo& info, const OptionValues& given) {
  std::vector<std::string> known;
  for (const OptionInfo& option : info.options) known.push_back(option.name);
  OptionValues values;
  for (const auto& [name, value] : given) {
    const OptionInfo* found = nullptr;
    for (const OptionInfo& option : info.options) {
      if (option.name == name) found = &option;
    }
    if (!found) {
      throw Error(ErrorCode::Usage,
                  info.name + ": there is no option '" + name + "'; " +
                      (known.empty() ? "this decoder has none" : suggestion(name, known)));
    }
    values[name] = checked(info, *found, value);
  }
  const auto chosen = values.find("preset");
  const auto preset =
      chosen == values.end() ? info.presets.end() : info.presets.find(chosen->second);
  if (preset != info.presets.end()) values.insert(preset->second.begin(), preset->second.end());
  for (const OptionInfo& option : info.options) values.insert({option.name, option.default_value});
  if (const auto check = row_of(info.name).check) check(info, values);
  return values;
}

bool is_lossless(const DecoderInfo& info, const OptionValues& options, const Sampling& sampling) {
  return info.lossless && keeps_distribution(options, rejects(sampling), sampling.temperature);
}

std::optional<std::string> refusal(const DecoderInfo& info,
                                   const Sampling& sampling,
                                   const OptionValues& options) {
  if (rejects(sampling) && !info.supports_rejection) {
    return info.name +
           " cannot run with sampling=rejection: it refines guesses towards a fixed point, which "
           "exists only for fixed random numbers; use sampling=coupled";
  }
  if (rejects(sampling) && n_ranks_of(options) > 1) {
    return info.name + " cannot run with sampling=rejection and ranks=" + options.at("ranks") +
           ": a guess is judged there by what was refused before it, which another rank may have "
           "done; use sampling=coupled or ranks=1";
  }
  return std::nullopt;
}

std::optional<std::string> refusal(const DecoderInfo& info,
                                   const Sampling& sampling,
                                   const LanguageModel& target,
                                   const LanguageModel* draft_model,
                                   const DraftHeads* heads) {
  if (auto reason = refusal(info, sampling)) return reason;
  if (info.needs_draft && !draft_model) {
    return info.name +
           " needs a draft model and there is none; name one (--draft NAME|DIR), or choose a "
           "decoder "
           "that needs none";
  }
  if (info.needs_heads && !heads) {
    return info.name +
           " needs draft heads trained on this model and there are none; name some (--heads "
           "NAME|DIR), or choose a decoder that needs none";
  }
  if (heads && info.needs_heads && heads->vocab_size() != target.vocab_size()) {
    return info.name + " needs heads of the model's vocabulary: the heads have " +
           std::to_string(heads->vocab_size()) + " tokens, the model " +
           std::to_string(target.vocab_size());
  }
  if (draft_model && info.needs_draft && draft_model->vocab_size() != target.vocab_size()) {
    return info.name + " needs a draft model with the target's vocabulary: the draft has " +
           std::to_string(draft_model->vocab_size()) + " tokens, the target " +
           std::to_string(target.vocab_size());
  }
  return std::nullopt;
}

std::unique_ptr<Decoder> make_decoder(const std::string& name, DecoderContext context) {
  const DecoderInfo& info = decoder_named(name);
  context.options = complete_options(info, context.options);
  if (const auto reason = refusal(info, context.sampling, context.options))
    throw Error(ErrorCode::Usage, *reason);
  if (const auto reason =
          refusal(info, context.sampling, context.target, context.draft_model, context.heads)) {
    throw Error(ErrorCode::Usage, *reason);
  }
  return row_of(name).make(context);
}

}  // namespace engine

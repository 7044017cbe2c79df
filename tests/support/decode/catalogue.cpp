#include "tests/support/decode/catalogue.h"
#include "tests/support/assets_folder.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/shared/target_output.h"
#include "engine/decode/draft/rank_tree.h"
#include "engine/decode/recycling.h"
#include "engine/decode/registry.h"
#include "engine/event/run_rules.h"
#include "engine/run/run.h"
#include "tests/support/models/tiny_transformer.h"
#include "tests/support/models/toy_heads.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

const std::string kAssets = assets_folder();

std::vector<std::vector<TokenId>> bundled_prompts(const Model& model) {
  std::ifstream file(kAssets + "/prompts/bundled.jsonl");
  std::vector<std::vector<TokenId>> prompts;
  for (std::string line; std::getline(file, line);) {
    const auto text = nlohmann::json::parse(line).at("prompt").get<std::string>();
    prompts.push_back(tokenize_prompt(model, text));
  }
  if (prompts.empty()) throw std::runtime_error("the bundled prompts are missing");
  return prompts;
}

Job job_of(const char* decoder, OptionValues options = {}) {
  Job job;
  job.decoder = decoder;
  job.options = std::move(options);
  return job;
}

/// @param max_seq_len  0: the shape's default
ToyShape toy_shape(int max_seq_len) {
  ToyShape shape{.vocab = 9, .context = 2, .seed = 21};
  if (max_seq_len > 0) shape.max_seq_len = max_seq_len;
  return shape;
}

}  // namespace

HeadsFiles random_heads_for(const ModelConfig& config, HeadsKind kind, const ModelFiles* target) {
  HeadsFiles files;
  files.path = files.name = "random heads";
  files.config.kind = kind;
  files.config.n_heads = 4;
  files.config.dim = config.dim;
  files.config.vocab_size = config.vocab_size;
  files.config.hidden_dim = config.hidden_dim;
  files.config.n_attention_heads = config.n_heads;
  if (target) {
    files.config.target_output = true;
    files.config.head_hidden_dim = 16;
    for (TokenId token = 0; token < config.vocab_size; token += 2)
      files.config.output_tokens.push_back(token);
  }
  files.tensors = random_heads(files.config, 31);
  if (target)
    files.tensors = with_target_output(files.tensors, files.config.output_tokens, *target);
  return files;
}

std::string name_of(const Subject& subject) {
  if (subject.kind == Subject::Kind::Toy) return "toy";
  return std::string(subject.kind == Subject::Kind::Tiny ? "tiny_" : "bundled_") +
         kernels::name_of(subject.dtype);
}

std::vector<Subject> all_subjects() {
  std::vector<Subject> all{{}};
  for (const auto kind : {Subject::Kind::Tiny, Subject::Kind::Bundled}) {
    for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16, kernels::DType::F16}) {
#if defined(__SANITIZE_THREAD__)
      // Each test takes minutes, so only bf16 runs with two threads.
      if (kind == Subject::Kind::Bundled && dtype != kernels::DType::BF16) continue;
#endif
      all.push_back({kind, dtype});
    }
  }
  return all;
}

Loaded::Loaded(const Subject& subject,
               int max_seq_len,
               const ModelScale& scale,
               std::unique_ptr<kernels::Device> device)
    : subject_(subject), max_seq_len_(max_seq_len), scale_(scale), device_(std::move(device)) {
  if (subject.kind == Subject::Kind::Toy) {
    const ToyShape shape = toy_shape(max_seq_len);
    model_ = std::make_unique<ToyModel>(shape);
    draft_ = std::make_unique<ToyModel>(draft_of(shape));
    medusa_ = std::make_unique<ToyMedusa>(draft_of(shape), 4);
    chimera_ = std::make_unique<ToyChimera>(draft_of(shape), 4);
    return;
  }
  // Two threads in one dtype suffice: tests run two at a time, and threads that wait for each other
  // on busy cores take twice as long.
  if (!device_) device_ = kernels::open_cpu(subject.dtype == kernels::DType::BF16 ? 2 : 1);
  std::unique_ptr<Model> model = transformer_on(*device_);
  ModelFiles target;  // source of Chimera's shared weights
  if (subject.kind == Subject::Kind::Tiny) {
    draft_ = tiny_draft(*device_, subject.dtype, 11);
    target.config = tiny_config();
    target.tensors = random_tensors(target.config, 11);
  } else {
    target = open_model(kAssets + "/models/demo-target");
    draft_ = Model::load(*device_, open_model(kAssets + "/models/demo-draft"),
                         {.dtype = subject.dtype, .progress = {}});
    if (max_seq_len == 0) prompts_ = bundled_prompts(*model);
  }
  const HeadsOptions options{.dtype = subject.dtype,
                             .scale = scale,
                             .vocab_size = model->vocab_size(),
                             .max_seq_len = model->max_seq_len()};
  const auto heads_for = [&](HeadsKind kind) {
    if (subject.kind == Subject::Kind::Tiny) return random_heads_for(target.config, kind, &target);
    return open_heads(kAssets + "/models/demo-" + name_of(kind), &target);
  };
  medusa_ = load_medusa(*device_, heads_for(HeadsKind::Medusa), options);
  chimera_ = load_chimera(*device_, heads_for(HeadsKind::Chimera), target, options);
  transformer_ = model.get();
  model_ = std::move(model);
}

std::unique_ptr<Model> Loaded::transformer_on(kernels::Device& device) const {
  if (subject_.kind == Subject::Kind::Tiny) {
    ModelConfig config = tiny_config();
    if (max_seq_len_ > 0) config.max_seq_len = max_seq_len_;
    return tiny_transformer(device, subject_.dtype, 11, config, scale_);
  }
  return Model::load(
      device, open_model(kAssets + "/models/demo-target"),
      {.dtype = subject_.dtype, .scale = scale_, .max_seq_len = max_seq_len_, .progress = {}});
}

std::vector<OtherRank> Loaded::ranks(const Job& job) {
  const int n_ranks = n_ranks_of(complete_options(decoder_named(job.decoder), job.options));
  while (static_cast<int>(ranks_.size()) < n_ranks - 1) {
    auto rank = std::make_unique<Rank>();
    if (subject_.kind == Subject::Kind::Toy) {
      rank->model = std::make_unique<ToyModel>(toy_shape(max_seq_len_));
    } else {
      rank->device = kernels::open_cpu(1);
      rank->model = transformer_on(*rank->device);
    }
    ranks_.push_back(std::move(rank));
  }
  std::vector<OtherRank> others;
  for (int i = 0; i < n_ranks - 1; i++) {
    Rank& rank = *ranks_[static_cast<std::size_t>(i)];
    others.push_back({rank.model.get(), &rank.at_work});
  }
  return others;
}

DraftHeads* Loaded::heads(const std::string& decoder) {
  if (decoder == "medusa") return medusa_.get();
  return decoder == "chimera" ? chimera_.get() : nullptr;
}

std::string Loaded::heads_tree(const std::string& decoder) const {
  if (subject_.kind != Subject::Kind::Bundled || (decoder != "medusa" && decoder != "chimera"))
    return "";
  return kAssets + "/models/demo-" + decoder + "/tree.json";
}

std::vector<TokenId> Loaded::prompt(int i) const {
  if (!prompts_.empty()) return prompts_[static_cast<std::size_t>(i) % prompts_.size()];
  Dice dice(700 + static_cast<std::uint64_t>(i));
  return dice.text(dice(1, 24), model_->vocab_size());
}

int Loaded::n_tokens() const {
  return subject_.kind == Subject::Kind::Bundled ? 28 : 72;
}

Loaded& loaded(const Subject& subject) {
  static std::map<std::string, std::unique_ptr<Loaded>> all;
  auto& one = all[name_of(subject)];
  if (!one) one = std::make_unique<Loaded>(subject);
  return *one;
}

std::vector<Job> all_settings() {
  return {
      job_of("ar"),
      job_of("jacobi"),
      job_of("jacobi", {{"block", "1"}}),
      job_of("jacobi", {{"block", "5"}, {"refill", "slide"}, {"fill", "repeat"}}),
      job_of("jacobi", {{"block", "40"}, {"fill", "pad"}}),
      job_of("jacobi", {{"block", "6"}, {"form", "textbook"}}),
      job_of("jacobi", {{"block", "1"}, {"form", "textbook"}, {"fill", "pad"}}),
      job_of("fastcot"),
      job_of("fastcot", {{"window", "0"}}),
      job_of("fastcot", {{"window", "4"}, {"skip", "false"}, {"filler", "repeat"}}),
      job_of("fastcot", {{"window", "30"}, {"filler", "prompt"}}),
      job_of("lookahead"),
      job_of("lookahead", {{"window", "1"}, {"ngram_size", "2"}, {"n_guesses", "1"}}),
      job_of("lookahead", {{"window", "5"}, {"ngram_size", "4"}, {"n_guesses", "5"}}),
      job_of("lookahead", {{"window", "4"}, {"ngram_size", "3"}, {"advance", "accepted"}}),
      job_of("lookahead", {{"ngram_size", "6"}, {"bonus", "false"}, {"merge", "false"}}),
      job_of("lookahead", {{"n_guesses", "0"}}),
      job_of("lookahead", {{"prompt_pool", "false"}, {"window", "8"}, {"ngram_size", "3"}}),
      job_of("lookahead", {{"preset", "paper"}}),
      job_of("prompt-lookup"),
      job_of("prompt-lookup", {{"variant", "hf"}, {"max_ngram", "2"}}),
      job_of("prompt-lookup", {{"variant", "paper"}, {"n_tokens", "4"}}),
      job_of("prompt-lookup", {{"max_ngram", "1"}, {"n_tokens", "1"}}),
      job_of("prompt-lookup", {{"max_ngram", "6"}, {"n_tokens", "24"}}),
      job_of("recycling"),
      job_of("recycling", {{"rows", "1"}}),
      job_of("recycling", {{"rows", "4"}, {"pairs", "false"}, {"keep", "true"}}),
      job_of("recycling", {{"rows", "40"}, {"k", "3"}, {"learn", "accepted"}}),
      job_of("recycling", {{"tree", "medusa_sim_7b_63"}, {"k", "10"}, {"pairs", "false"}}),
      job_of("suffix"),
      job_of("suffix", {{"shape", "chain"}, {"n_tokens", "12"}, {"factor", "4"}}),
      job_of("suffix", {{"min_p", "0"}, {"factor", "20"}, {"n_tokens", "24"}}),
      job_of("suffix", {{"n_tokens", "1"}, {"earlier", "false"}, {"min_p", "0.6"}}),
      job_of("speculative"),
      job_of("speculative", {{"gamma", "0"}}),
      job_of("speculative", {{"gamma", "1"}}),
      job_of("speculative", {{"gamma", "12"}, {"stop_below", "0.4"}}),
      job_of("speculative", {{"draft_temperature", "0"}, {"draft_top_k", "2"}}),
      job_of("mcsd"),
      job_of("mcsd", {{"k_config", "4,2,2"}, {"draft_temperature", "0"}}),
      job_of("mcsd", {{"k_config", "3"}, {"draft_temperature", "1.5"}}),
      job_of("mcsd", {{"k_config", "2,1,2,1,1"}, {"stop_below", "0.3"}, {"rule", "with"}}),
      job_of("seed"),
      job_of("seed", {{"k_config", "2,2"}, {"branches", "1"}, {"policy", "priority"}}),
      job_of("medusa"),
      job_of("medusa", {{"tree", "none"}}),
      job_of("medusa", {{"tree", "medusa_sim_7b_63"}, {"verify", "sample"}}),
      job_of("medusa", {{"tree", "medusa_sim_7b_63"}, {"stop_below", "0.05"}}),
      job_of("chimera"),
      job_of("chimera", {{"drafting", "branch"}, {"cache", "0"}}),
      job_of("chimera", {{"tree", "chimera_23"}, {"drafting", "branch"}, {"cache", "3"}}),
      job_of("chimera", {{"tree", "rows8"}, {"verify", "sample"}}),
      job_of("chimera", {{"tree", "rows24"}, {"stop_below", "0.1"}}),
      job_of("chimera", {{"drafting", "branch"}, {"stop_below", "0.1"}, {"verify", "sample"}}),
      job_of("lookahead", {{"ranks", "2"}}),
      job_of("lookahead",
             {{"ranks", "3"}, {"window", "5"}, {"ngram_size", "4"}, {"n_guesses", "5"}}),
      job_of("lookahead",
             {{"ranks", "2"}, {"ngram_size", "6"}, {"bonus", "false"}, {"merge", "false"}}),
      job_of("lookahead", {{"ranks", "3"}, {"preset", "paper"}}),
  };
}

std::vector<Job> plain_settings() {
  return {job_of("ar"),
          job_of("jacobi"),
          job_of("jacobi", {{"refill", "slide"}}),
          job_of("jacobi", {{"form", "textbook"}, {"block", "7"}}),
          job_of("fastcot"),
          job_of("lookahead"),
          job_of("prompt-lookup"),
          job_of("recycling"),
          job_of("suffix"),
          job_of("speculative"),
          job_of("mcsd"),
          job_of("seed"),
          job_of("medusa"),
          job_of("chimera"),
          job_of("chimera", {{"drafting", "branch"}})};
}

int most_tokens(const Job& job) {
  OptionValues values = complete_options(decoder_named(job.decoder), job.options);
  // the largest sizes that "auto" chooses
  const std::map<std::string, std::string> largest{
      {"block", "32"},  {"n_tokens", "32"},  {"gamma", "16"},   {"k_config", "1,1,1,1,1"},
      {"window", "31"}, {"ngram_size", "6"}, {"n_guesses", "8"}};
  for (auto& [name, value] : values)
    if (const auto size = largest.find(name); value == "auto" && size != largest.end())
      value = size->second;
  if (job.decoder == "ar") return 1;
  if (job.decoder == "jacobi") return std::stoi(values.at("block"));
  if (job.decoder == "fastcot")
    return values.at("skip") == "true" ? std::stoi(values.at("window")) + 1 : 1;
  if (job.decoder == "prompt-lookup" || job.decoder == "suffix")
    return std::stoi(values.at("n_tokens")) + 1;
  if (job.decoder == "recycling" && values.at("rows") == "auto") return 13;  // twelve levels
  if (job.decoder == "recycling" && values.at("tree") == "own")
    return recycling_tree(std::stoi(values.at("rows")), std::stoi(values.at("k"))).max_depth() + 1;
  if (job.decoder == "recycling" || job.decoder == "medusa" || job.decoder == "chimera") {
    std::string tree = values.at("tree");
    if (tree == "auto") return 7;  // at most six heads
    if (tree == "own") tree = job.heads_tree.empty() ? "rows16" : job.heads_tree;
    return find_rank_tree(tree, kAssets + "/trees").max_depth() + 1;
  }
  if (job.decoder == "speculative") return std::stoi(values.at("gamma")) + 1;
  if (job.decoder == "mcsd" || job.decoder == "seed") {
    const std::string& k = values.at("k_config");
    return static_cast<int>(std::ranges::count(k, ',')) + 2;
  }
  // Without the bonus token a full match gives N - 1 tokens.
  return std::stoi(values.at("ngram_size")) - (values.at("bonus") == "true" ? 0 : 1);
}

}  // namespace engine::test

#include "engine/checkpoint/config_keys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/refuse.h"

namespace engine {
namespace {

using Kind = JsonReader::Kind;

constexpr std::string_view kOrigin = "origin of the file";
constexpr std::string_view kTraining = "training only: dropout, initial weights";
constexpr std::string_view kLayout = "how the result is computed; the result is the same";
constexpr std::string_view kReturned = "return values of Python calls";
constexpr std::string_view kOtherTasks = "encoders, classifiers and other tasks";
constexpr std::string_view kAssisted = "drafting in transformers; the tokens are the same";
constexpr std::string_view kElsewhere = "read from another file, or used by the tokenizer";

struct HarmlessMember {
  std::string_view name, why;
};

constexpr HarmlessMember kHarmless[] = {
    {"_name_or_path", kOrigin},
    {"name_or_path", kOrigin},
    {"transformers_version", kOrigin},
    {"_commit_hash", kOrigin},
    {"_from_model_config", kOrigin},
    {"unsloth_version", kOrigin},
    {"unsloth_fixed", kOrigin},
    {"transformers.js_config", kOrigin},
    {"trust_remote_code", kOrigin},
    {"initializer_range", kTraining},
    {"initializer_factor", kTraining},
    {"attention_dropout", kTraining},
    {"hidden_dropout", kTraining},
    {"resid_pdrop", kTraining},
    {"attn_pdrop", kTraining},
    {"embd_pdrop", kTraining},
    {"gradient_checkpointing", kTraining},
    {"use_cache", kLayout},
    {"pretraining_tp", kLayout},
    {"attn_implementation", kLayout},
    {"_attn_implementation", kLayout},
    {"_attn_implementation_autoset", kLayout},
    {"_flash_attn_2_enabled", kLayout},
    {"use_flash_attn", kLayout},
    {"use_bfloat16", kLayout},
    {"torchscript", kLayout},
    {"chunk_size_feed_forward", kLayout},
    {"low_memory", kLayout},
    {"cache_implementation", kLayout},
    {"cache_config", kLayout},
    {"max_cache_len", kLayout},
    {"compile_config", kLayout},
    {"disable_compile", kLayout},
    {"prefill_chunk_size", kLayout},
    {"continuous_batching_config", kLayout},
    {"output_attentions", kReturned},
    {"output_hidden_states", kReturned},
    {"output_scores", kReturned},
    {"output_logits", kReturned},
    {"return_dict", kReturned},
    {"return_dict_in_generate", kReturned},
    {"use_return_dict", kReturned},
    {"id2label", kOtherTasks},
    {"label2id", kOtherTasks},
    {"problem_type", kOtherTasks},
    {"finetuning_task", kOtherTasks},
    {"task_specific_params", kOtherTasks},
    {"is_decoder", kOtherTasks},
    {"tie_encoder_decoder", kOtherTasks},
    {"cross_attention_hidden_size", kOtherTasks},
    {"pruned_heads", kOtherTasks},
    {"is_assistant", kAssisted},
    {"num_assistant_tokens", kAssisted},
    {"num_assistant_tokens_schedule", kAssisted},
    {"assistant_confidence_threshold", kAssisted},
    {"assistant_early_exit", kAssisted},
    {"assistant_lookbehind", kAssisted},
    {"target_lookbehind", kAssisted},
    {"assistant_ensemble_weight", kAssisted},
    {"prompt_lookup_num_tokens", kAssisted},
    {"max_matching_ngram_size", kAssisted},
    {"speculation_type", kAssisted},
    {"tokenizer_class", kElsewhere},
    {"unk_token_id", kElsewhere},
    {"sep_token_id", kElsewhere},
    {"bos_token_id", kElsewhere},
    {"pad_token_id", kElsewhere},
    {"eos_token_id", kElsewhere},
    {"chat_format", kElsewhere},
};

struct NeutralValue {
  std::string_view name;
  double value;
};

/// Defaults of transformers for members missing from generation_config.json; older versions wrote
/// all of them to config.json.
constexpr NeutralValue kNeutral[] = {
    {"max_length", 20},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"num_beams", 1},
    {"num_beam_groups", 1},
    {"diversity_penalty", 0},
    {"temperature", 1},
    {"top_k", 50},
    {"top_p", 1},
    {"min_p", 0},
    {"typical_p", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"repetition_penalty", 1},
    {"encoder_repetition_penalty", 1},
    {"length_penalty", 1},
    {"no_repeat_ngram_size", 0},
    {"encoder_no_repeat_ngram_size", 0},
    {"num_return_sequences", 1},
    {"guidance_scale", 1},
};

/// Members of generation_config.json that --defaults model applies.
constexpr std::string_view kApplied[] = {
    "do_sample", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_new_tokens"};

bool is_off(const Json& value) {
  switch (value.kind) {
    case Kind::Null:
      return true;
    case Kind::Bool:
      return !value.boolean;
    case Kind::Array:
      return value.items.empty();
    case Kind::Object:
      return value.members.empty();
    case Kind::String:
      return value.text.empty();
    case Kind::Number:
      return false;
  }
  return false;
}

bool changes_nothing(const std::string& name, const Json& value) {
  if (is_off(value) ||
      std::ranges::find(kHarmless, name, &HarmlessMember::name) != std::end(kHarmless))
    return true;
  const auto* neutral = std::ranges::find(kNeutral, name, &NeutralValue::name);
  return neutral != std::end(kNeutral) && value.is(Kind::Number) &&
         value.number().real() == neutral->value;
}

}  // namespace

std::vector<std::string> members_without_effect(const Json& config,
                                                const std::vector<std::string>& read) {
  std::vector<std::string> names;
  for (const auto& [name, value] : config.members)
    if (std::ranges::find(read, name) == read.end() && !changes_nothing(name, value))
      names.push_back(escaped(name));
  return names;
}

std::vector<std::string> generation_members_not_applied(const Json& generation) {
  std::vector<std::string> members;
  for (const auto& [name, value] : generation.members)
    if (std::ranges::find(kApplied, name) == std::end(kApplied) && !changes_nothing(name, value))
      members.push_back(fmt::format("{} {}", escaped(name), value.shown()));
  return members;
}

}  // namespace engine

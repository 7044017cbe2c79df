#include "engine/tokenizer/tiktoken_models.h"

#include <fmt/format.h>

namespace engine {
namespace {

using Names = std::vector<std::string>;

void add(Names& names, std::initializer_list<const char*> more) {
  names.insert(names.end(), more.begin(), more.end());
}

/// Adds "<|PREFIXreserved_special_token_FIRST|>" and `n - 1` more.
void add_reserved(Names& names, std::string_view prefix, int first, int n) {
  for (int i = first; i < first + n; i++)
    names.push_back(fmt::format("<|{}reserved_special_token_{}|>", prefix, i));
}

// clang-format off
Names llama3_special() {
  Names names = {"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
                 "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
                 "<|eot_id|>", "<|python_tag|>", "<|image|>"};
  add_reserved(names, "", 2, 256 - static_cast<int>(names.size()));
  return names;
}

Names llama4_special() {
  Names names = {"<|begin_of_text|>", "<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
                 "<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>"};
  add_reserved(names, "text_post_train_", 0, 6);
  add(names, {"<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>"});
  add_reserved(names, "text_post_train_", 8, 61);
  add(names, {"<|image_start|>", "<|image_end|>"});
  add_reserved(names, "vision_", 0, 2);
  add(names, {"<|tile_x_separator|>", "<|tile_y_separator|>"});
  add_reserved(names, "vision_", 2, 4);
  add(names, {"<|image|>"});
  add_reserved(names, "vision_", 6, 1);
  add(names, {"<|patch|>"});
  add_reserved(names, "vision_", 7, 1041);
  add_reserved(names, "reasoning_", 0, 8);
  add(names, {"<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"});
  add_reserved(names, "", 0, 2048 - static_cast<int>(names.size()));
  return names;
}

Names qwen_special() {
  Names names = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int i = 0; i < 205; i++) names.push_back(fmt::format("<|extra_{}|>", i));
  return names;
}

Names qwen35_special() {
  return {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
          "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
          "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
          "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>",
          "<think>", "</think>", "<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>",
          "<tts_text_bos_single>", "<|audio_pad|>"};
}

std::vector<TiktokenModel> all_models() {
  return {{"Llama 3", 128000, "llama3", false, "<|begin_of_text|>", "<|end_of_text|>", llama3_special()},
          {"Llama 4", 200000, "llama4", false, "<|begin_of_text|>", "<|end_of_text|>", llama4_special()},
          {"Qwen", 151643, "qwen2", true, "", "<|endoftext|>", qwen_special()},
          {"Qwen 3.5", 248044, "qwen35", true, "", "<|endoftext|>", qwen35_special()}};
}
// clang-format on

}  // namespace

std::optional<TiktokenModel> tiktoken_model_of(std::int64_t n_tokens) {
  for (TiktokenModel& model : all_models())
    if (model.n_tokens == n_tokens) return std::move(model);
  return std::nullopt;
}

std::string known_tiktoken_models() {
  std::string known;
  for (const TiktokenModel& model : all_models())
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", model.n_tokens, model.name);
  return known;
}

std::vector<std::string> tekken_special_names() {
  return {"<unk>",
          "<s>",
          "</s>",
          "[INST]",
          "[/INST]",
          "[AVAILABLE_TOOLS]",
          "[/AVAILABLE_TOOLS]",
          "[TOOL_RESULTS]",
          "[/TOOL_RESULTS]",
          "[TOOL_CALLS]",
          "[IMG]",
          "<pad>",
          "[IMG_BREAK]",
          "[IMG_END]",
          "[PREFIX]",
          "[MIDDLE]",
          "[SUFFIX]",
          "[SYSTEM_PROMPT]",
          "[/SYSTEM_PROMPT]",
          "[TOOL_CONTENT]"};
}

}  // namespace engine

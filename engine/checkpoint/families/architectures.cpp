#include "engine/checkpoint/families/architectures.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace engine {
namespace {

constexpr std::array<Architecture, 9> kArchitectures = {{
    {"LLaMA 1-3, SmolLM2", "llama", "LlamaForCausalLM", "llama",
     "optional biases; all RoPE scalings"},
    {"Mistral", "mistral", "MistralForCausalLM", "llama", "sliding window"},
    {"Qwen2", "qwen2", "Qwen2ForCausalLM", "qwen2", "biases of q, k and v; window in some layers"},
    {"Qwen3", "qwen3", "Qwen3ForCausalLM", "qwen3", "norms of q and k; window in some layers"},
    {"SmolLM3", "smollm3", "SmolLM3ForCausalLM", "smollm3", "layers without RoPE"},
    {"Phi-3", "phi3", "Phi3ForCausalLM", "phi3",
     "fused qkv and gate_up; longrope; window; RoPE of a part of a head"},
    {"Granite", "granite", "GraniteForCausalLM", "granite",
     "multipliers of embeddings, scores, residuals and logits"},
    {"Gemma 2", "gemma2", "Gemma2ForCausalLM", "gemma2",
     "norm offsets, post norms, GELU gate, softcaps, local and global layers"},
    {"Gemma 3 (text)", "gemma3_text", "Gemma3ForCausalLM", "gemma3",
     "as Gemma 2 without softcaps; norms of q and k, a RoPE base for local layers"},
}};

}  // namespace

std::span<const Architecture> architectures() {
  return kArchitectures;
}

const Architecture* architecture_of_type(const std::string& model_type) {
  const auto* found = std::ranges::find(kArchitectures, model_type, &Architecture::model_type);
  return found == kArchitectures.end() ? nullptr : found;
}

const Architecture* architecture_of_gguf(const std::string& gguf) {
  const auto* found = std::ranges::find(kArchitectures, gguf, &Architecture::gguf);
  return found == kArchitectures.end() ? nullptr : found;
}

bool is_gemma(const std::string& model_type) {
  return is_one_of(model_type, {"gemma2", "gemma3_text"});
}

bool is_one_of(const std::string& model_type, std::initializer_list<const char*> model_types) {
  return std::ranges::find(model_types, model_type) != model_types.end();
}

std::string architecture_list() {
  std::string list;
  for (const Architecture& a : kArchitectures) {
    const bool is_last = &a == &kArchitectures.back();
    list += fmt::format("{}{} ({})",
                        list.empty() ? ""
                        : is_last    ? " or "
                                     : ", ",
                        a.model_type, a.class_name);
  }
  return list;
}

}  // namespace engine

// The supported architectures. One forward pass (engine/model/transformer.cpp) runs them all;
// ModelConfig says how each differs from LLaMA.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

namespace engine {

/// One architecture and its names.
struct Architecture {
  const char* name;        // for people: "Gemma 3"
  const char* model_type;  // of config.json: "gemma3_text"
  const char* class_name;  // in `architectures` of config.json: "Gemma3ForCausalLM"
  const char* gguf;        // general.architecture of a GGUF file: "gemma3"
  const char* notes;       // how it differs from LLaMA
};

/// All architectures, LLaMA first.
std::span<const Architecture> architectures();
/// The architecture with this model_type; null: not supported.
const Architecture* architecture_of_type(const std::string& model_type);
/// The architecture with this name in GGUF files; null: not supported. Mistral's files have the
/// name "llama".
const Architecture* architecture_of_gguf(const std::string& gguf);
/// True for Gemma 2 and 3.
bool is_gemma(const std::string& model_type);
/// True if `model_type` is one of these.
bool is_one_of(const std::string& model_type, std::initializer_list<const char*> model_types);
/// Lists all architectures, for messages: "llama (LlamaForCausalLM), ... or gemma3_text
/// (Gemma3ForCausalLM)".
std::string architecture_list();

}  // namespace engine

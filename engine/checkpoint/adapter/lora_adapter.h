// Low-rank adapters (LoRA, arXiv:2106.09685) in the format of the peft library: a folder with
// adapter_config.json and adapter_model.safetensors. An adapter is merged when a model is opened:
//   W' = W + scale B A,  A [r, in], B [out, r],  scale = alpha / r, or alpha / sqrt(r) (use_rslora)
// in f32, before the weights are rounded to the type in which they are computed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/base/limits.h"
#include "engine/checkpoint/opened_model.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// The update of one matrix.
struct LowRankUpdate {
  Tensor a, b;  // [r, in] and [out, r]
  float scale = 1;
};

/// An opened adapter.
struct LoraAdapter {
  std::string path;                              // its folder
  std::string base;                              // the base model that it names; may be empty
  std::map<std::string, LowRankUpdate> updates;  // by the name of the matrix, as in TensorSource
  std::shared_ptr<const TensorSource> tensors;   // all tensors of its file, by their names there
};

/// True if a folder holds an adapter and no whole model.
bool is_adapter(const std::string& folder);

/// Splits "MODEL+ADAPTER", where ADAPTER is the folder of an adapter.
/// @return  the model and the adapter; the adapter is empty if the text does not have this form
std::pair<std::string, std::string> split_adapter(const std::string& model);

/// The base model that an adapter's configuration names; empty if it names none.
/// @throws Error(BadInput)  if the configuration cannot be read
std::string base_of_adapter(const std::string& folder);

/// Opens an adapter.
/// @throws Error(BadInput)  if a file cannot be read, the adapter is of another kind than LoRA, or it
///                          changes more than matrices (biases, magnitudes, whole modules)
LoraAdapter open_adapter(const std::string& folder, const FileLimits& limits = {});

/// Writes the folder of an adapter, as peft does.
/// @param adapter  its updates have one rank and scale 1, so that lora_alpha is the rank
void write_adapter(const std::string& directory, const LoraAdapter& adapter, kernels::DType dtype);

/// The tensors of a model with an adapter merged into them.
/// @param specs  of the model
/// @throws Error(BadInput)  if the adapter changes a matrix that the model does not have, or has
///                          another shape than it
std::shared_ptr<const TensorSource> with_adapter(std::shared_ptr<const TensorSource> model,
                                                 const std::vector<TensorSpec>& specs,
                                                 LoraAdapter adapter);

}  // namespace engine

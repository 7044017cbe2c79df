// A 16-digit hash of a model's weights. It distinguishes recordings of different models with the
// same name.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/model_files.h"

namespace engine {

/// 64-bit hash over names, dtypes, shapes and stored bytes of the tensors that the model reads. A
/// model has the same hash in one file and in shards. A change of any weight changes the hash,
/// which is not cryptographic.
/// @return  16 hexadecimal digits
/// @throws Error(BadInput)  if a file was cut or changed since it was opened
std::string weights_hash(const ModelFiles& files);
/// The same hash for any list of tensors.
std::string weights_hash(const TensorSource& tensors, const std::vector<TensorSpec>& specs);

}  // namespace engine

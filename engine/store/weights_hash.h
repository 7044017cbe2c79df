// Which weights a run used, in sixteen digits: two recordings whose models only share a name can be
// told apart.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/model_files.h"

namespace engine {

/// 64-bit hash over names, dtypes, shapes and bytes of the tensors the model reads, as stored: the
/// same for one file and for shards, another as soon as one weight differs. It finds accidents, not
/// forgeries.
/// @return  16 hexadecimal digits
/// @throws Error(BadInput)  if a file was cut or changed since it was opened
std::string weights_hash(const ModelFiles& files);
/// The same of any list of tensors.
std::string weights_hash(const TensorSource& tensors, const std::vector<TensorSpec>& specs);

}  // namespace engine

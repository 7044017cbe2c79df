#include "engine/checkpoint/gguf/gguf_tensors.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/gguf/gguf_names.h"
#include "engine/checkpoint/safetensors.h"

namespace engine {
namespace {

struct Found {
  std::shared_ptr<const GgufFile> file;
  const GgufTensor* tensor;
};
using Index = std::unordered_map<std::string_view, Found>;

std::string field_of(const std::string& name) {
  return "tensor " + in_quotes(name);
}

// Indexes the tensors of all parts by name.
Index index_of(const std::vector<std::shared_ptr<const GgufFile>>& files) {
  Index index;
  for (const auto& file : files) {
    for (const GgufTensor& tensor : file->tensors()) {
      const auto [at, is_new] = index.emplace(tensor.name, Found{file, &tensor});
      if (!is_new)
        refuse(file->path(), field_of(tensor.name),
               "the name of a tensor in " + escaped(at->second.file->path()),
               "every tensor in one part");
    }
  }
  return index;
}

void check_tensor(const Found& found, const TensorSpec& spec) {
  const GgufTensor& tensor = *found.tensor;
  const std::string& path = found.file->path();
  if (!tensor.type->readable)
    refuse(path, field_of(tensor.name), fmt::format("the type {}", tensor.type->name),
           fmt::format("one that is read: {}; take the model in one of these types",
                       readable_ggml_types()));
  if (tensor.shape != spec.shape)
    refuse(path, field_of(tensor.name), shown_shape(tensor.shape), shown_shape(spec.shape));
}

std::optional<kernels::DType> element_of(const GgmlTypeInfo& type) {
  switch (static_cast<GgmlType>(type.number)) {
    case GgmlType::F32:
      return kernels::DType::F32;
    case GgmlType::F16:
      return kernels::DType::F16;
    case GgmlType::BF16:
      return kernels::DType::BF16;
    default:
      return std::nullopt;
  }
}

// Puts rows 0, 2, 4, ... of each head first and rows 1, 3, 5, ... after them.
void separate_pairs(
    const char* from, char* to, std::size_t n_rows, std::size_t row_bytes, int n_heads) {
  const std::size_t per_head = n_rows / static_cast<std::size_t>(n_heads), half = per_head / 2;
  for (std::size_t row = 0; row < n_rows; row++) {
    const std::size_t in_head = row % per_head;
    const std::size_t source = row - in_head + 2 * (in_head % half) + in_head / half;
    std::memcpy(to + row * row_bytes, from + source * row_bytes, row_bytes);
  }
}

bool is_aligned(const void* data, kernels::DType dtype) {
  return reinterpret_cast<std::uintptr_t>(data) %
             static_cast<std::uintptr_t>(kernels::bytes_of(dtype)) ==
         0;
}

// Allocates a tensor. The caller writes every byte, so the memory is not initialised.
Tensor allocated(kernels::DType dtype, const std::vector<std::int64_t>& shape) {
  Tensor out{dtype, shape, nullptr, nullptr};
  const auto n_bytes = static_cast<std::size_t>(out.n_elements() * kernels::bytes_of(dtype));
  const std::shared_ptr<char> data(new char[n_bytes], std::default_delete<char[]>());
  out.data = data.get();
  out.hold = data;
  return out;
}

char* memory_of(const Tensor& tensor) {
  return static_cast<char*>(const_cast<void*>(tensor.data));  // of allocated()
}

// Decodes blocks in pieces and rounds the elements to `dtype`.
void decode_to(const GgufTensor& tensor, kernels::DType dtype, char* out) {
  constexpr std::size_t kPieceElements = 1 << 16;
  const auto type = static_cast<GgmlType>(tensor.type->number);
  const auto block_size = static_cast<std::size_t>(tensor.type->block_size);
  const auto block_bytes = static_cast<std::size_t>(tensor.type->block_bytes);
  const std::size_t step = kPieceElements / block_size * block_bytes;
  std::vector<float> piece(kPieceElements);
  for (std::size_t at = 0; at < tensor.bytes.size(); at += step) {
    const std::string_view blocks = tensor.bytes.substr(at, step);
    const auto n = static_cast<std::int64_t>(blocks.size() / block_bytes * block_size);
    dequantise(type, blocks, piece.data());
    convert_elements({kernels::DType::F32, {n}, piece.data(), nullptr}, 0, n, dtype, out);
    out += n * kernels::bytes_of(dtype);
  }
}

// Copies a tensor: in its own type if that is F32, F16 or BF16, else decoded to `dtype`.
Tensor decoded(const GgufTensor& tensor, kernels::DType dtype) {
  const std::optional<kernels::DType> element = element_of(*tensor.type);
  Tensor out = allocated(element.value_or(dtype), tensor.shape);
  if (tensor.bytes.empty()) return out;
  if (element)
    std::memcpy(memory_of(out), tensor.bytes.data(), tensor.bytes.size());
  else if (dtype == kernels::DType::F32)
    dequantise(static_cast<GgmlType>(tensor.type->number), tensor.bytes,
               reinterpret_cast<float*>(memory_of(out)));
  else
    decode_to(tensor, dtype, memory_of(out));
  return out;
}

Tensor with_separate_pairs(const Tensor& tensor, int n_heads) {
  Tensor out = allocated(tensor.dtype, tensor.shape);
  const auto n_rows = static_cast<std::size_t>(tensor.shape[0]);
  const auto row_bytes = static_cast<std::size_t>(tensor.n_elements() / tensor.shape[0] *
                                                  kernels::bytes_of(tensor.dtype));
  separate_pairs(static_cast<const char*>(tensor.data), memory_of(out), n_rows, row_bytes, n_heads);
  return out;
}

// The same for an array with equally many values per row.
template <class T>
void separate_pairs_of(std::vector<T>& values, std::int64_t n_rows, int n_heads) {
  if (values.empty()) return;
  std::vector<T> moved(values.size());
  const auto n = static_cast<std::size_t>(n_rows);
  separate_pairs(reinterpret_cast<const char*>(values.data()),
                 reinterpret_cast<char*>(moved.data()), n, values.size() / n * sizeof(T), n_heads);
  values = std::move(moved);
}

Tensor without_offset(const Tensor& tensor, float offset) {
  Tensor out = allocated(kernels::DType::F32, tensor.shape);
  auto* values = reinterpret_cast<float*>(memory_of(out));
  convert_elements(tensor, 0, tensor.n_elements(), kernels::DType::F32, values);
  for (std::int64_t i = 0; i < tensor.n_elements(); i++) values[i] -= offset;
  return out;
}

}  // namespace

GgufTensors::GgufTensors(std::vector<std::shared_ptr<const GgufFile>> files,
                         const ModelConfig& config)
    : files_(std::move(files)) {
  const Index index = index_of(files_);
  for (const TensorSpec& spec : tensors_of(config)) {
    const GgufPlace place = place_in_gguf(spec.name, config);
    const auto found = index.find(place.name);
    if (found == index.end()) refuse(path(), field_of(place.name), "none", shown_shape(spec.shape));
    check_tensor(found->second, spec);
    entries_.push_back({spec.name, found->second.file, found->second.tensor,
                        place.n_interleaved_heads, place.offset});
  }
  std::ranges::sort(entries_, {}, &Entry::name);
}

const GgufTensors::Entry& GgufTensors::entry(const std::string& name) const {
  const auto at = std::ranges::lower_bound(entries_, name, {}, &Entry::name);
  if (at == entries_.end() || at->name != name)
    refuse(path(), field_of(name), "none", "the tensor");
  return *at;
}

bool GgufTensors::has(const std::string& name) const {
  return std::ranges::binary_search(entries_, name, {}, &Entry::name);
}

std::vector<std::string> GgufTensors::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

void GgufTensors::check() const {
  for (const auto& file : files_) file->check();
}

Tensor GgufTensors::read(const std::string& name) const {
  return read_for(name, kernels::DType::F32);
}

Tensor GgufTensors::read_for(const std::string& name, kernels::DType dtype) const {
  const Entry& at = entry(name);
  at.file->check();
  const std::optional<kernels::DType> element = element_of(*at.tensor->type);
  const bool as_stored = element && at.n_interleaved_heads == 0 && at.offset == 0 &&
                         is_aligned(at.tensor->bytes.data(), *element);
  if (as_stored) {
    const StoredTensor view = stored(name);
    return {*element, view.shape, view.bytes.data(), view.hold};
  }
  // An offset is subtracted before the elements are rounded.
  Tensor out = decoded(*at.tensor, at.offset != 0 ? kernels::DType::F32 : dtype);
  at.file->release(*at.tensor);
  if (at.n_interleaved_heads > 0) out = with_separate_pairs(out, at.n_interleaved_heads);
  if (at.offset != 0) out = without_offset(out, at.offset);
  return out;
}

StoredTensor GgufTensors::stored(const std::string& name) const {
  const Entry& at = entry(name);
  const auto release = [file = at.file, tensor = at.tensor](const void*) {
    file->release(*tensor);
  };
  return {at.tensor->type->name, at.tensor->shape, at.tensor->bytes,
          std::shared_ptr<const void>(at.tensor->bytes.data(), release)};
}

std::optional<kernels::DType> GgufTensors::quantised_format(const std::string& name) const {
  const Entry& at = entry(name);
  const auto type = static_cast<GgmlType>(at.tensor->type->number);
  if (!is_quantised(type) || at.tensor->shape.size() != 2 || at.offset != 0) return std::nullopt;
  return packed_format(type);
}

std::optional<QuantisedTensor> GgufTensors::quantised(const std::string& name) const {
  if (!quantised_format(name)) return std::nullopt;
  const Entry& at = entry(name);
  const auto type = static_cast<GgmlType>(at.tensor->type->number);
  at.file->check();
  QuantisedTensor out = unpack(type, at.tensor->bytes, at.tensor->shape);
  at.file->release(*at.tensor);
  if (at.n_interleaved_heads > 0) {
    separate_pairs_of(out.q, out.shape[0], at.n_interleaved_heads);
    separate_pairs_of(out.scale, out.shape[0], at.n_interleaved_heads);
    separate_pairs_of(out.minimum, out.shape[0], at.n_interleaved_heads);
  }
  return out;
}

const GgmlTypeInfo& GgufTensors::main_type() const {
  std::map<const GgmlTypeInfo*, std::int64_t> n_elements;
  for (const Entry& entry : entries_) n_elements[entry.tensor->type] += entry.tensor->n_elements();
  return *std::ranges::max_element(n_elements, {}, [](const auto& n) { return n.second; })->first;
}

std::vector<std::string> GgufTensors::unused() const {
  std::unordered_set<std::string_view> used;
  for (const Entry& entry : entries_) used.insert(entry.tensor->name);
  std::vector<std::string> names;
  for (const auto& file : files_)
    for (const GgufTensor& tensor : file->tensors())
      if (!used.contains(tensor.name)) names.push_back(tensor.name);
  return names;
}

}  // namespace engine

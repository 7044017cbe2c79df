#include "engine/checkpoint/gguf/convert.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/gguf/gguf_config.h"
#include "engine/checkpoint/gguf/gguf_names.h"
#include "engine/checkpoint/gguf/gguf_tensors.h"
#include "engine/checkpoint/gguf/gguf_writer.h"
#include "engine/checkpoint/gguf/tokenizer_from_gguf.h"
#include "engine/checkpoint/gguf/tokenizer_to_gguf.h"
#include "engine/checkpoint/weights_output.h"

namespace engine {
namespace {

constexpr std::int64_t kPieceElements = 1 << 20;  // converted at a time

GgmlType type_of(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::F16:
      return GgmlType::F16;
    case kernels::DType::BF16:
      return GgmlType::BF16;
    default:
      break;
  }
  return GgmlType::F32;
}

std::int64_t bytes_in(const std::vector<std::int64_t>& shape, const GgmlTypeInfo& type) {
  std::int64_t n = 1;
  for (const std::int64_t dim : shape) n *= dim;
  return n / type.block_size * type.block_bytes;
}

// Chooses a tensor's type: F32 for vectors, F16 for matrices whose rows are not whole blocks of
// `type`.
GgmlType wanted_type(const std::vector<std::int64_t>& shape, GgmlType type) {
  if (shape.size() < 2) return GgmlType::F32;
  return shape.back() % info_of(type).block_size == 0 ? type : GgmlType::F16;
}

// Adds a notice if matrices became F16 instead of the wanted type.
// @param names  of these matrices
void note_other_types(const std::vector<std::string>& names,
                      GgmlType wanted,
                      std::vector<std::string>& notices) {
  if (names.empty()) return;
  notices.push_back(
      fmt::format("{}, e.g. {}: F16, because rows of {} are whole blocks of {}",
                  counted(static_cast<std::int64_t>(names.size()), "matrix", "matrices"),
                  names.front(), name_of(wanted), info_of(wanted).block_size));
}

// Writes the padding after a tensor of n bytes.
void pad(std::int64_t n_bytes, WeightsOutput& out) {
  out.write_uncounted(std::string(gguf_padding(static_cast<std::size_t>(n_bytes)), '\0'));
}

// ---- from a directory

// One tensor of the output.
struct Planned {
  std::string source;  // Hugging Face's name
  GgufPlace place;
  std::vector<std::int64_t> shape;
  GgmlType type;
};

std::vector<Planned> plan_of(const ModelFiles& files, std::optional<GgmlType> type) {
  std::vector<Planned> plan;
  for (const TensorSpec& spec : tensors_of(files.config)) {
    const GgmlType stored = type_of(files.tensors->read(spec.name).dtype);
    plan.push_back({spec.name, place_in_gguf(spec.name, files.config), spec.shape,
                    wanted_type(spec.shape, type.value_or(stored))});
  }
  return plan;
}

// Maps a row of the GGUF file's matrix to the same row in Hugging Face's order.
std::int64_t source_row(std::int64_t row, std::int64_t n_rows, int n_interleaved_heads) {
  if (n_interleaved_heads == 0) return row;
  const std::int64_t per_head = n_rows / n_interleaved_heads, in_head = row % per_head;
  return row - in_head + in_head / 2 + in_head % 2 * (per_head / 2);
}

// Returns rows [first, first + n) as the GGUF file stores them: in its order, with its offset
// added.
std::vector<float> rows_of(const Tensor& tensor,
                           const GgufPlace& place,
                           std::int64_t first,
                           std::int64_t n) {
  const std::int64_t n_rows = tensor.shape.size() < 2 ? 1 : tensor.shape[0];
  const std::int64_t row_size = tensor.n_elements() / n_rows;
  std::vector<float> out(static_cast<std::size_t>(n * row_size));
  for (std::int64_t i = 0; i < n; i++) {
    const std::int64_t from = source_row(first + i, n_rows, place.n_interleaved_heads);
    convert_elements(tensor, from * row_size, row_size, kernels::DType::F32,
                     out.data() + i * row_size);
  }
  if (place.offset != 0)
    for (float& value : out) value += place.offset;
  return out;
}

// Gives a bias whose rows are interleaved a second dimension of 1, so that it is reordered like a
// matrix.
Tensor as_rows(Tensor tensor, const GgufPlace& place) {
  if (place.n_interleaved_heads > 0 && tensor.shape.size() == 1) tensor.shape.push_back(1);
  return tensor;
}

void write_tensor(const TensorSource& tensors, const Planned& planned, WeightsOutput& out) {
  const Tensor tensor = as_rows(tensors.read(planned.source), planned.place);
  const std::int64_t n_rows = tensor.shape.size() < 2 ? 1 : tensor.shape[0];
  const std::int64_t row_size = tensor.n_elements() / n_rows;
  const std::int64_t step = std::max<std::int64_t>(1, kPieceElements / row_size);
  std::string bytes;
  for (std::int64_t row = 0; row < n_rows; row += step) {
    bytes.clear();
    quantise(planned.type, rows_of(tensor, planned.place, row, std::min(step, n_rows - row)),
             bytes);
    out.write(bytes);
  }
  pad(bytes_in(planned.shape, info_of(planned.type)), out);
}

void write_from_directory(const ModelFiles& files,
                          const std::string& path,
                          std::optional<GgmlType> type,
                          const WriteProgress& progress,
                          std::vector<std::string>& notices) {
  const std::vector<Planned> plan = plan_of(files, type);
  std::vector<std::string> other;
  for (const Planned& one : plan)
    if (type && one.shape.size() > 1 && one.type != *type) other.push_back(one.place.name);
  if (type) note_other_types(other, *type, notices);
  GgufHeader header;
  const std::vector<GgufFactors> factors = write_gguf_config(files.config, files.path, header);
  header.text("general.name", files.name);
  const GgmlType main = type.value_or(type_of(files.stored_dtype));
  header.u32("general.file_type", file_type_number(main));
  if (is_quantised(main)) header.u32("general.quantization_version", 2);
  tokenizer_to_gguf(files, header, notices);
  std::int64_t total = 0;
  for (const GgufFactors& one : factors) {
    header.tensor(one.name, {static_cast<std::int64_t>(one.values.size())},
                  static_cast<std::uint32_t>(GgmlType::F32));
    total += static_cast<std::int64_t>(one.values.size() * sizeof(float));
  }
  for (const Planned& one : plan) {
    header.tensor(one.place.name, one.shape, static_cast<std::uint32_t>(one.type));
    total += bytes_in(one.shape, info_of(one.type));
  }
  WeightsOutput out(path, total, progress);
  out.write_uncounted(header.bytes());
  for (const GgufFactors& one : factors) {
    std::string bytes;
    quantise(GgmlType::F32, one.values, bytes);
    out.write(bytes);
    pad(static_cast<std::int64_t>(bytes.size()), out);
  }
  for (const Planned& one : plan) write_tensor(*files.tensors, one, out);
  files.tensors->check();
  out.finish();
}

// ---- from another GGUF file

// Chooses the type of a tensor from another GGUF file: its own type, unless it is a matrix and
// `type` is given.
const GgmlTypeInfo& type_after(const GgufTensor& tensor, std::optional<GgmlType> type) {
  return type && tensor.shape.size() > 1 && tensor.type->readable
             ? info_of(wanted_type(tensor.shape, *type))
             : *tensor.type;
}

void write_other_type(const GgufTensor& tensor, GgmlType to, WeightsOutput& out) {
  const auto from = static_cast<GgmlType>(tensor.type->number);
  const auto block_size = static_cast<std::size_t>(tensor.type->block_size);
  const auto block_bytes = static_cast<std::size_t>(tensor.type->block_bytes);
  const std::size_t step = kPieceElements / block_size * block_bytes;
  std::string bytes;
  for (std::size_t at = 0; at < tensor.bytes.size(); at += step) {
    const std::string_view blocks = tensor.bytes.substr(at, step);
    std::vector<float> values(blocks.size() / block_bytes * block_size);
    dequantise(from, blocks, values.data());
    bytes.clear();
    quantise(to, values, bytes);
    out.write(bytes);
  }
}

void copy_pairs(const GgufFile& file, std::optional<GgmlType> type, GgufHeader& header) {
  for (const GgufEntry& entry : file.entries()) {
    const bool is_own =
        entry.key == "general.alignment" || entry.key.starts_with("split.") ||
        (type && (entry.key == "general.file_type" || entry.key == "general.quantization_version"));
    if (!is_own) header.copy(entry);
  }
  if (!type) return;
  header.u32("general.file_type", file_type_number(*type));
  if (is_quantised(*type)) header.u32("general.quantization_version", 2);
}

void write_from_gguf(const ModelFiles& files,
                     const std::string& path,
                     std::optional<GgmlType> type,
                     const WriteProgress& progress,
                     std::vector<std::string>& notices) {
  const auto* tensors = dynamic_cast<const GgufTensors*>(files.tensors.get());
  if (!tensors)
    refuse(path, "model", "a GGUF file with an adapter",
           "a directory as output, which can be converted to a GGUF file afterwards");
  const auto& parts = tensors->parts();
  GgufHeader header;
  copy_pairs(*parts[0], type, header);
  std::int64_t total = 0;
  std::vector<std::string> other;
  for (const auto& part : parts) {
    for (const GgufTensor& tensor : part->tensors()) {
      const GgmlTypeInfo& to = type_after(tensor, type);
      const bool is_other = type && &to != tensor.type && to.number != info_of(*type).number;
      if (is_other) other.push_back(tensor.name);
      header.tensor(tensor.name, tensor.shape, to.number);
      total += bytes_in(tensor.shape, to);
    }
  }
  if (type) note_other_types(other, *type, notices);
  WeightsOutput out(path, total, progress);
  out.write_uncounted(header.bytes());
  for (const auto& part : parts) {
    for (const GgufTensor& tensor : part->tensors()) {
      const GgmlTypeInfo& to = type_after(tensor, type);
      if (&to == tensor.type)
        out.write(tensor.bytes);
      else
        write_other_type(tensor, static_cast<GgmlType>(to.number), out);
      pad(bytes_in(tensor.shape, to), out);
      part->release(tensor);
    }
    part->check();
  }
  out.finish();
}

}  // namespace

void write_gguf(const ModelFiles& files,
                const std::string& path,
                std::optional<GgmlType> type,
                const WriteProgress& progress,
                std::vector<std::string>& notices) {
  if (files.gguf)
    write_from_gguf(files, path, type, progress, notices);
  else
    write_from_directory(files, path, type, progress, notices);
}

void write_directory(const ModelFiles& files,
                     const std::string& directory,
                     std::optional<kernels::DType> dtype,
                     const WriteProgress& progress,
                     std::vector<std::string>& notices) {
  // Quantised weights are written as f32, in which no value changes.
  const kernels::DType main = files.quantised ? kernels::DType::F32 : files.stored_dtype;
  write_weights(directory, files.config, *files.tensors, dtype, main, progress);
  if (files.gguf)
    tokenizer_from_gguf(*files.gguf, directory, notices);
  else if (files.tokenizer)
    copy_tokenizer(files.path, directory);
}

}  // namespace engine

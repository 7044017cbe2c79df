#include "engine/base/limits.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "engine/base/types.h"

namespace engine {
namespace {

constexpr std::int64_t k4GiB = std::int64_t{1} << 32;

// json_depth and piece_bytes become recursion depth on a stack of 8 MB; the numbers of a config are
// ints, and the sum of two must fit.
constexpr FileLimit kLimits[] = {
    {"safetensors_header_bytes", &FileLimits::safetensors_header_bytes, k4GiB},
    {"json_bytes", &FileLimits::json_bytes, k4GiB},
    {"json_depth", &FileLimits::json_depth, 1024},
    {"n_tensors", &FileLimits::n_tensors, 1 << 30},
    {"tensor_name_bytes", &FileLimits::tensor_name_bytes, 1 << 20},
    {"tensor_rank", &FileLimits::tensor_rank, 64},
    {"tokenizer_bytes", &FileLimits::tokenizer_bytes, (std::int64_t{1} << 31) - 1},
    {"n_pieces", &FileLimits::n_pieces, 1 << 30},
    {"piece_bytes", &FileLimits::piece_bytes, 8192},
    {"vocab_size", &FileLimits::vocab_size, 1 << 30},
    {"n_layers", &FileLimits::n_layers, 1 << 20},
    {"n_heads", &FileLimits::n_heads, 1 << 20},
    {"max_seq_len", &FileLimits::max_seq_len, 1 << 30},
    {"dim", &FileLimits::dim, 1 << 24},
    {"hidden_dim", &FileLimits::hidden_dim, 1 << 26},
    {"prompt_bytes", &FileLimits::prompt_bytes, 1'000'000'000},
};

}  // namespace

std::span<const FileLimit> file_limits() {
  return kLimits;
}

void raise_limit(FileLimits& limits, const std::string& name_and_value) {
  const std::size_t equals = std::min(name_and_value.find('='), name_and_value.size());
  const std::string name = name_and_value.substr(0, equals);
  const auto* limit = std::ranges::find_if(kLimits, [&](const auto& l) { return l.name == name; });
  if (limit == std::end(kLimits)) {
    std::string known;
    for (const FileLimit& l : kLimits) known += (known.empty() ? "" : ", ") + std::string(l.name);
    throw Error(ErrorCode::Usage,
                fmt::format("--limit: found '{}', expected NAME=VALUE with one of {}",
                            escaped(name_and_value), known));
  }
  const std::int64_t lowest = FileLimits{}.*limit->value;
  const std::string text = name_and_value.substr(std::min(equals + 1, name_and_value.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  if (!is_number || value < lowest || value > limit->highest) {
    throw Error(ErrorCode::Usage,
                fmt::format("--limit {}: found '{}', expected a whole number from {} (the "
                            "default) to {}",
                            name, escaped(text), lowest, limit->highest));
  }
  limits.*limit->value = value;
}

}  // namespace engine

#include "engine/checkpoint/safetensors.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/file_kind.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"

namespace engine {
namespace {

constexpr std::size_t kLengthBytes = 8;

struct StoredType {
  const char* name;
  int bits;
  bool supported;  // false: the format has this type, but this program cannot read it
};
constexpr StoredType kStoredTypes[] = {
    {"F32", 32, true}, {"F16", 16, true},     {"BF16", 16, true},    {"F64", 64, true},
    {"I64", 64, true}, {"I32", 32, true},     {"I16", 16, true},     {"I8", 8, true},
    {"U64", 64, true}, {"U32", 32, true},     {"U16", 16, true},     {"U8", 8, true},
    {"BOOL", 8, true}, {"F8_E4M3", 8, true},  {"F8_E5M2", 8, true},  {"F8_E8M0", 8, false},
    {"F4", 4, false},  {"F6_E2M3", 6, false}, {"F6_E3M2", 6, false}, {"C64", 64, false},
};

std::string field_of(const std::string& tensor, const char* field) {
  return "tensor " + in_quotes(tensor) + ": " + field;
}

// Parses the header's JSON into entries; error messages name tensor and field.
class HeaderReader {
 public:
  HeaderReader(std::string_view header, const std::string& path, const FileLimits& limits)
      : json_(header, path, JsonReader::Places::Byte, kLengthBytes, limits.json_depth),
        path_(path),
        limits_(limits) {}

  std::vector<TensorEntry> read() {
    std::vector<TensorEntry> entries;
    bool has_metadata = false;
    std::string key;
    json_.enter_object();
    while (json_.next_key(key)) {
      if (key == "__metadata__") {
        if (std::exchange(has_metadata, true)) refuse_duplicate("__metadata__");
        read_metadata();
        continue;
      }
      check_name(key);
      if (static_cast<std::int64_t>(entries.size()) == limits_.n_tensors) {
        refuse(path_, "header", fmt::format("more than {} tensors", limits_.n_tensors), "fewer");
      }
      entries.push_back(read_tensor(key));
    }
    json_.end();
    return entries;
  }

 private:
  [[noreturn]] void refuse_duplicate(const std::string& field) {
    refuse(path_, field, "the key twice", "every key once");
  }

  void check_name(const std::string& name) {
    if (name.empty()) refuse(path_, json_.place(), "an empty tensor name", "a name");
    if (static_cast<std::int64_t>(name.size()) > limits_.tensor_name_bytes) {
      refuse(path_, "tensor " + in_quotes(name), fmt::format("a name of {} bytes", name.size()),
             fmt::format("at most {}", limits_.tensor_name_bytes));
    }
  }

  void read_metadata() {
    if (json_.kind() != JsonReader::Kind::Object) {
      refuse(path_, "__metadata__", name_of(json_.kind()), "an object of strings");
    }
    json_.enter_object();
    std::vector<std::string> keys;
    std::string key;
    while (json_.next_key(key)) {
      if (json_.kind() != JsonReader::Kind::String) {
        // Reports too deep nesting wherever it occurs.
        const std::string found = name_of(json_.kind());
        json_.skip();
        refuse(path_, "__metadata__." + escaped(key), found, "a string");
      }
      json_.skip();
      keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) refuse_duplicate("__metadata__." + escaped(*twice));
  }

  TensorEntry read_tensor(const std::string& name) {
    TensorEntry entry;
    entry.name = name;
    if (json_.kind() != JsonReader::Kind::Object) {
      refuse(path_, "tensor " + in_quotes(name), name_of(json_.kind()), "an object");
    }
    json_.enter_object();
    bool seen[3] = {};
    const char* fields[3] = {"dtype", "shape", "data_offsets"};
    std::string key;
    while (json_.next_key(key)) {
      const auto known = std::find(std::begin(fields), std::end(fields), key);
      if (known == std::end(fields)) {
        refuse(path_, "tensor " + in_quotes(name), "the field " + in_quotes(key),
               "dtype, shape and data_offsets");
      }
      if (std::exchange(seen[known - fields], true)) refuse_duplicate(field_of(name, *known));
      if (key == "dtype") read_dtype(entry);
      if (key == "shape") read_shape(entry);
      if (key == "data_offsets") read_offsets(entry);
    }
    for (int i = 0; i < 3; i++) {
      if (!seen[i]) refuse(path_, field_of(name, fields[i]), "none", "a value");
    }
    check_size(entry);
    return entry;
  }

  void read_dtype(TensorEntry& entry) {
    if (json_.kind() != JsonReader::Kind::String) {
      refuse(path_, field_of(entry.name, "dtype"), name_of(json_.kind()), "a string");
    }
    entry.dtype = json_.string();
  }

  // A whole number of at most 63 bits; messages quote anything else as in the file.
  std::int64_t read_count(const TensorEntry& entry, const char* field, const char* too_large) {
    if (json_.kind() != JsonReader::Kind::Number) {
      refuse(path_, field_of(entry.name, field), name_of(json_.kind()), "whole numbers");
    }
    const JsonNumber number = json_.number();
    const std::optional<std::int64_t> value = number.integer();
    if (value && *value >= 0) return *value;
    const bool whole = number.text.find_first_not_of("0123456789") == std::string_view::npos;
    refuse(path_, field_of(entry.name, field), escaped(number.text),
           whole ? too_large : "whole numbers from 0");
  }

  void read_shape(TensorEntry& entry) {
    if (json_.kind() != JsonReader::Kind::Array) {
      refuse(path_, field_of(entry.name, "shape"), name_of(json_.kind()), "an array");
    }
    json_.enter_array();
    while (json_.next_item()) {
      if (static_cast<std::int64_t>(entry.shape.size()) == limits_.tensor_rank) {
        refuse(path_, field_of(entry.name, "shape"),
               fmt::format("more than {} dimensions", limits_.tensor_rank), "fewer");
      }
      entry.shape.push_back(read_count(entry, "shape", "dimensions below 2^63 (shape overflows)"));
    }
  }

  void read_offsets(TensorEntry& entry) {
    constexpr const char* kField = "data_offsets";
    if (json_.kind() != JsonReader::Kind::Array) {
      refuse(path_, field_of(entry.name, kField), name_of(json_.kind()), "[begin, end]");
    }
    json_.enter_array();
    int n = 0;
    while (json_.next_item()) {
      if (n == 2) refuse(path_, field_of(entry.name, kField), "more than two", "[begin, end]");
      (n++ == 0 ? entry.begin : entry.end) = read_count(entry, kField, "offsets within the file");
    }
    if (n != 2) {
      refuse(path_, field_of(entry.name, kField), fmt::format("{} numbers", n), "[begin, end]");
    }
    if (entry.begin > entry.end) {
      refuse(path_, field_of(entry.name, kField), fmt::format("[{}, {}]", entry.begin, entry.end),
             "begin <= end");
    }
  }

  // Checks the size, elements times bits. Each product is checked for overflow, even if the tensor
  // is empty.
  void check_size(const TensorEntry& entry) {
    const auto type = std::find_if(std::begin(kStoredTypes), std::end(kStoredTypes),
                                   [&](const StoredType& t) { return entry.dtype == t.name; });
    if (type == std::end(kStoredTypes)) {
      refuse(path_, field_of(entry.name, "dtype"), "the unknown type " + in_quotes(entry.dtype),
             "a type of the safetensors format");
    }
    std::int64_t n_bits = type->bits;
    bool is_empty = false;
    for (const std::int64_t dim : entry.shape) {
      is_empty |= dim == 0;
      if (__builtin_mul_overflow(n_bits, std::max<std::int64_t>(dim, 1), &n_bits)) {
        refuse(path_, field_of(entry.name, "shape"), shown_shape(entry.shape),
               "a size below 2^63 bits (shape overflows)");
      }
    }
    if (is_empty) n_bits = 0;
    if (n_bits % 8 != 0) {
      refuse(path_, field_of(entry.name, "shape"),
             fmt::format("{} of {}, {} bits", shown_shape(entry.shape), entry.dtype, n_bits),
             "whole bytes");
    }
    if (!type->supported) {
      refuse(path_, field_of(entry.name, "dtype"), "the type " + in_quotes(entry.dtype),
             "one this program supports (F32, F16, BF16 for weights)");
    }
    if (n_bits / 8 != entry.end - entry.begin) {
      refuse(
          path_, field_of(entry.name, "data_offsets"),
          fmt::format("[{}, {}], {} bytes", entry.begin, entry.end, entry.end - entry.begin),
          fmt::format("{} bytes for {} of {}", n_bits / 8, shown_shape(entry.shape), entry.dtype));
    }
  }

  JsonReader json_;
  const std::string& path_;
  const FileLimits& limits_;
};

// Reads and validates the header's length, before allocating memory for it.
std::size_t header_length(std::string_view bytes, const std::string& path, std::int64_t limit) {
  if (const std::string other = recognised_as(bytes); !other.empty()) {
    refuse(path, "file", other, "a safetensors file");
  }
  if (bytes.size() < kLengthBytes) {
    refuse(path, "file", fmt::format("{} bytes, too few for a header", bytes.size()),
           "a safetensors file");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; i++) {
    length |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  if (length > static_cast<std::uint64_t>(limit)) {
    refuse(path, "bytes 0..7", fmt::format("a header length of {}", length),
           fmt::format("at most {}", limit));
  }
  if (length > bytes.size() - kLengthBytes) {
    refuse(path, "bytes 0..7", fmt::format("a header length of {}", length),
           fmt::format("at most the {} bytes left in the file", bytes.size() - kLengthBytes));
  }
  return static_cast<std::size_t>(length);
}

// Checks that the tensors cover the data without gaps or overlap.
void check_coverage(std::vector<TensorEntry>& entries,
                    const std::string& path,
                    std::size_t data_begin,
                    std::size_t file_size) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::int64_t reached = 0;
  const TensorEntry* last = nullptr;
  for (const TensorEntry& entry : entries) {
    if (entry.begin < reached) {
      refuse(path, field_of(entry.name, "data_offsets"),
             fmt::format("[{}, {}] over {} of {}", entry.begin, entry.end,
                         fmt::format("[{}, {}]", last->begin, last->end), in_quotes(last->name)),
             "tensors that do not overlap");
    }
    if (entry.begin > reached) {
      refuse(path, field_of(entry.name, "data_offsets"), fmt::format("begin {}", entry.begin),
             fmt::format("{} (no gap between tensors)", reached));
    }
    reached = entry.end;
    last = &entry;
  }
  const auto available = static_cast<std::int64_t>(file_size - data_begin);
  if (reached != available) {
    refuse(path, "file", fmt::format("{} bytes", file_size),
           fmt::format("{} (header {}, tensors {})",
                       static_cast<std::int64_t>(data_begin) + reached, data_begin, reached));
  }
}

}  // namespace

std::string shown_shape(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::optional<kernels::DType> TensorEntry::element() const {
  if (dtype == "F32") return kernels::DType::F32;
  if (dtype == "F16") return kernels::DType::F16;
  if (dtype == "BF16") return kernels::DType::BF16;
  return std::nullopt;
}

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(const std::string& path,
                                                             const FileLimits& limits) {
  auto source = std::make_shared<SafetensorsFile>();
  source->file_ = MappedFile::open(path);
  const std::string_view bytes = source->file_->bytes();
  const std::size_t length = header_length(bytes, path, limits.safetensors_header_bytes);
  source->data_begin_ = kLengthBytes + length;
  HeaderReader reader(bytes.substr(kLengthBytes, length), path, limits);
  std::vector<TensorEntry> entries = reader.read();

  const auto by_name = [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; };
  std::sort(entries.begin(), entries.end(), by_name);
  const auto same = [](const TensorEntry& a, const TensorEntry& b) { return a.name == b.name; };
  const auto twice = std::adjacent_find(entries.begin(), entries.end(), same);
  if (twice != entries.end()) {
    refuse(path, "tensor " + in_quotes(twice->name), "the key twice", "every tensor once");
  }
  check_coverage(entries, path, source->data_begin_, bytes.size());
  std::sort(entries.begin(), entries.end(), by_name);
  source->entries_ = std::move(entries);
  source->file_->check();
  return source;
}

const TensorEntry* SafetensorsFile::find(const std::string& name) const {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const TensorEntry& entry, const std::string& wanted) { return entry.name < wanted; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

Tensor SafetensorsFile::read(const std::string& name) const {
  const TensorEntry* entry = find(name);
  if (!entry) refuse(path(), "tensor " + in_quotes(name), "none", "the tensor");
  const std::optional<kernels::DType> element = entry->element();
  if (!element) {
    refuse(path(), field_of(name, "dtype"), entry->dtype, "F32, F16 or BF16 for a weight");
  }
  file_->check();
  const std::size_t begin = data_begin_ + static_cast<std::size_t>(entry->begin);
  const std::size_t end = data_begin_ + static_cast<std::size_t>(entry->end);
  const void* data = file_->bytes().data() + begin;
  if (reinterpret_cast<std::uintptr_t>(data) % static_cast<unsigned>(kernels::bytes_of(*element)) !=
      0) {
    // The data are copied, because they are misaligned if the header's length is no multiple of the
    // alignment.
    const auto copy = std::make_shared<std::vector<std::byte>>(end - begin);
    if (begin < end) std::memcpy(copy->data(), data, end - begin);
    return {*element, entry->shape, copy->data(), copy};
  }
  const auto release = [file = file_, begin, end](const void*) { file->release(begin, end); };
  return {*element, entry->shape, data, std::shared_ptr<const void>(data, release)};
}

std::string_view SafetensorsFile::bytes_of(const TensorEntry& entry) const {
  file_->check();
  return {reinterpret_cast<const char*>(file_->bytes().data()) + data_begin_ + entry.begin,
          static_cast<std::size_t>(entry.end - entry.begin)};
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const TensorEntry& entry : entries_) names.push_back(entry.name);
  return names;
}

}  // namespace engine

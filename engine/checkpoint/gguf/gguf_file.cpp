#include "engine/checkpoint/gguf/gguf_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "engine/base/file_kind.h"
#include "engine/base/refuse.h"
#include "engine/base/types.h"
#include "engine/base/utf8.h"

namespace engine {
namespace {

constexpr std::uint64_t kMaxKeyBytes = 65'535;  // limit of the GGUF specification
constexpr std::uint64_t kMaxNameBytes = 63;     // limit of llama.cpp for tensor names
constexpr std::uint32_t kMaxDims = 4;
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 65'536;
constexpr const char* kAlignment = "general.alignment";
// The smallest metadata pair (length, one letter, type, one byte) and the smallest description of a
// tensor (length, one letter, dimensions, type, offset).
constexpr std::uint64_t kMinPairBytes = 8 + 1 + 4 + 1, kMinTensorBytes = 8 + 1 + 4 + 4 + 8;

constexpr const char* kTypeNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};
// The size of a value in bytes; 0: it varies.
constexpr int kTypeBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::uint32_t kTypes = std::size(kTypeNames);

int bytes_of(GgufType type) {
  return kTypeBytes[static_cast<std::uint32_t>(type)];
}

template <typename T>
T little_endian(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

bool is_integer(GgufType type) {
  return type != GgufType::F32 && type != GgufType::F64 && type != GgufType::Bool &&
         type != GgufType::String && type != GgufType::Array;
}

bool is_real(GgufType type) {
  return type == GgufType::F32 || type == GgufType::F64;
}

// The integer stored at `bytes`; nullopt above 2^63 - 1.
std::optional<std::int64_t> integer_at(const char* bytes, GgufType type) {
  switch (type) {
    case GgufType::U8:
      return little_endian<std::uint8_t>(bytes);
    case GgufType::I8:
      return little_endian<std::int8_t>(bytes);
    case GgufType::U16:
      return little_endian<std::uint16_t>(bytes);
    case GgufType::I16:
      return little_endian<std::int16_t>(bytes);
    case GgufType::U32:
      return little_endian<std::uint32_t>(bytes);
    case GgufType::I32:
      return little_endian<std::int32_t>(bytes);
    case GgufType::I64:
      return little_endian<std::int64_t>(bytes);
    default:
      break;
  }
  const auto value = little_endian<std::uint64_t>(bytes);
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  return static_cast<std::int64_t>(value);
}

double real_at(const char* bytes, GgufType type) {
  return type == GgufType::F32 ? double{little_endian<float>(bytes)} : little_endian<double>(bytes);
}

// Names a place in the file for an error message. The text is built only when an error occurs,
// because a file has many places.
struct Place {
  const char* kind;
  std::string_view name = {};               // of a key or tensor
  std::optional<std::uint64_t> index = {};  // of a pair or tensor whose name is not known yet
  std::optional<std::uint64_t> byte = {};   // offset in the file

  Place at(std::uint64_t offset) const { return {kind, name, index, offset}; }
  std::string text() const {
    std::string out = kind;
    if (!name.empty()) out += " " + in_quotes(name);
    if (index) out += fmt::format(" {}", *index);
    if (byte) out += fmt::format(" (byte {})", *byte);
    return out;
  }
};

Place key_place(std::string_view key) {
  return {"key", key};
}

Place tensor_place(std::string_view name) {
  return {"tensor", name};
}

[[noreturn]] void refuse(const std::string& file,
                         const Place& place,
                         const std::string& found,
                         const std::string& expected) {
  engine::refuse(file, place.text(), found, expected);
}

std::string array_words(std::uint64_t n, GgufType element) {
  return fmt::format("an array of {} {}{}", n, name_of(element),
                     element == GgufType::String && n != 1 ? "s" : "");
}

std::string type_of(const GgufEntry& entry) {
  if (entry.type != GgufType::Array) return name_of(entry.type);
  return array_words(static_cast<std::uint64_t>(entry.count), entry.element);
}

// Reads values one after another; every read is checked against the end of the file.
class Cursor {
 public:
  Cursor(std::string_view bytes, const std::string& path, std::uint64_t pos = 0)
      : bytes_(bytes), path_(path), pos_(pos) {}

  std::uint64_t pos() const { return pos_; }
  std::uint64_t left() const { return bytes_.size() - pos_; }

  /// @param place  names the value in messages
  std::string_view take(std::uint64_t n, const Place& place, const char* what) {
    if (n > left()) {
      refuse(
          path_, place.at(pos_), fmt::format("{} of {} bytes", what, n),
          fmt::format("at most the {} bytes left in the file; is the download complete?", left()));
    }
    const std::string_view out = bytes_.substr(pos_, n);
    pos_ += n;
    return out;
  }

  template <typename T>
  T value(const Place& place, const char* what) {
    return little_endian<T>(take(sizeof(T), place, what).data());
  }

  std::string_view string(const Place& place, const char* what, std::uint64_t limit) {
    const auto n = value<std::uint64_t>(place, "a length");
    if (n > limit && n <= left()) {
      refuse(path_, place.at(pos_), fmt::format("{} of {} bytes", what, n),
             fmt::format("at most {}", limit));
    }
    return take(n, place, what);
  }

 private:
  std::string_view bytes_;
  const std::string& path_;
  std::uint64_t pos_;
};

// The parts of a file before its data.
class HeaderReader {
 public:
  HeaderReader(std::string_view bytes, const std::string& path, const FileLimits& limits)
      : bytes_(bytes), path_(path), limits_(limits), cursor_(bytes, path) {}

  void read() {
    read_start();
    read_pairs();
    alignment_ = read_alignment();
    read_tensors();
    place_tensors();
  }

  std::vector<GgufEntry> entries;
  std::vector<GgufTensor> tensors;

 private:
  void read_start() {
    if (bytes_.empty()) refuse(path_, Place{"file"}, "an empty file", "a GGUF file");
    if (bytes_.substr(0, 4) == "FUGG")
      refuse(path_, Place{"bytes 0..3"}, "\"FUGG\", a big-endian file", "\"GGUF\", little-endian");
    if (!bytes_.starts_with("GGUF")) {
      const std::string other = recognised_as(bytes_);
      refuse(path_, Place{"bytes 0..3"}, other.empty() ? in_quotes(bytes_.substr(0, 4)) : other,
             "\"GGUF\", the start of a GGUF file");
    }
    cursor_.take(4, {"start"}, "a magic number");
    const auto version = cursor_.value<std::uint32_t>({"version"}, "a version");
    const bool is_swapped = version != 0 && (version & 0xFFFF) == 0;
    if (is_swapped)
      refuse(path_, Place{"version"}, fmt::format("{:#x}, a big-endian file", version),
             "little-endian");
    if (version < 2 || version > 3) {
      refuse(path_, Place{"version"}, fmt::format("{}", version),
             "2 or 3; convert the model again with a current llama.cpp");
    }
    n_tensors_ = count("number of tensors", cursor_.value<std::uint64_t>({"start"}, "a number"),
                       kMinTensorBytes);
    n_pairs_ = count("number of metadata pairs",
                     cursor_.value<std::uint64_t>({"start"}, "a number"), kMinPairBytes);
    if (n_tensors_ > static_cast<std::uint64_t>(limits_.n_tensors)) {
      refuse(path_, Place{"number of tensors"}, fmt::format("{}", n_tensors_),
             fmt::format("at most {}", limits_.n_tensors));
    }
  }

  // Checks that the rest of the file can hold n items, and returns n.
  std::uint64_t count(const char* what, std::uint64_t n, std::uint64_t min_bytes) {
    if (n > cursor_.left() / min_bytes) {
      refuse(path_, Place{what}, fmt::format("{}", n),
             fmt::format("at most {}, as {} bytes are left in the file; is the download complete?",
                         cursor_.left() / min_bytes, cursor_.left()));
    }
    return n;
  }

  void read_pairs() {
    for (std::uint64_t i = 0; i < n_pairs_; i++) {
      entries.push_back(read_pair(i));
      if (cursor_.pos() > static_cast<std::uint64_t>(limits_.tokenizer_bytes)) {
        refuse(path_, key_place(entries.back().key),
               fmt::format("metadata of more than {} bytes", limits_.tokenizer_bytes),
               "less (--limit tokenizer_bytes=N raises the limit)");
      }
    }
    std::ranges::sort(entries, {}, &GgufEntry::key);
    const auto twice = std::ranges::adjacent_find(entries, {}, &GgufEntry::key);
    if (twice != entries.end()) {
      const std::uint64_t offset = std::max(twice->offset, std::next(twice)->offset);
      refuse(path_, key_place(twice->key).at(offset), "the key twice", "every key once");
    }
  }

  GgufEntry read_pair(std::uint64_t i) {
    GgufEntry entry;
    entry.offset = cursor_.pos();
    entry.key = cursor_.string({"metadata pair", {}, i}, "a key", kMaxKeyBytes);
    const Place pair{"metadata pair", {}, i, entry.offset};
    if (entry.key.empty()) refuse(path_, pair, "an empty key", "a name");
    if (entry.key.find('\0') != std::string_view::npos ||
        first_bad_utf8(entry.key) != entry.key.size()) {
      refuse(path_, pair, "the key " + in_quotes(entry.key), "UTF-8 without NUL");
    }
    entry.type = read_type(entry.key);
    if (entry.type == GgufType::Array) {
      read_array(entry);
    } else {
      entry.bytes = read_elements(entry, entry.type, 1);
    }
    return entry;
  }

  // Checks the number before it becomes an enumerator.
  GgufType read_type(std::string_view key) {
    const Place place = key_place(key).at(cursor_.pos());
    const auto number = cursor_.value<std::uint32_t>(place, "a type");
    if (number >= kTypes) {
      refuse(path_, place, fmt::format("the value type {}", number),
             fmt::format("a type from 0 to {}", kTypes - 1));
    }
    return static_cast<GgufType>(number);
  }

  void read_array(GgufEntry& entry) {
    const Place place = key_place(entry.key).at(cursor_.pos());
    entry.element = read_type(entry.key);
    if (entry.element == GgufType::Array)
      refuse(path_, place, "an array of arrays", "an array of plain values");
    const auto n = cursor_.value<std::uint64_t>(place, "a number of elements");
    const bool is_string = entry.element == GgufType::String;
    const std::uint64_t size = is_string ? 8 : static_cast<std::uint64_t>(bytes_of(entry.element));
    if (n > cursor_.left() / size) {
      refuse(path_, place, array_words(n, entry.element),
             fmt::format("at most {}, as {} bytes are left in the file; is the download complete?",
                         cursor_.left() / size, cursor_.left()));
    }
    entry.count = static_cast<std::int64_t>(n);
    entry.bytes = read_elements(entry, entry.element, n);
  }

  std::string_view read_elements(const GgufEntry& entry, GgufType type, std::uint64_t n) {
    const std::uint64_t begin = cursor_.pos();
    if (type == GgufType::String) {
      const Place place = key_place(entry.key);
      for (std::uint64_t i = 0; i < n; i++)
        cursor_.string(place, "a string", std::numeric_limits<std::uint64_t>::max());
    } else {
      cursor_.take(n * static_cast<std::uint64_t>(bytes_of(type)), key_place(entry.key), "a value");
    }
    const std::string_view bytes = bytes_.substr(begin, cursor_.pos() - begin);
    if (type == GgufType::Bool) check_booleans(entry, bytes);
    return bytes;
  }

  void check_booleans(const GgufEntry& entry, std::string_view bytes) {
    for (const char byte : bytes) {
      if (byte == 0 || byte == 1) continue;
      refuse(path_, key_place(entry.key),
             fmt::format("the bool {}", static_cast<unsigned char>(byte)), "0 or 1");
    }
  }

  std::uint64_t read_alignment() {
    const auto at =
        std::ranges::lower_bound(entries, std::string_view(kAlignment), {}, &GgufEntry::key);
    if (at == entries.end() || at->key != kAlignment) return kDefaultAlignment;
    const std::string expected = fmt::format("a u32, a power of two up to {}", kMaxAlignment);
    if (at->type != GgufType::U32) refuse(path_, key_place(kAlignment), type_of(*at), expected);
    const std::uint64_t value = little_endian<std::uint32_t>(at->bytes.data());
    if (!std::has_single_bit(value) || value > kMaxAlignment)
      refuse(path_, key_place(kAlignment), fmt::format("{}", value), expected);
    return value;
  }

  void read_tensors() {
    std::unordered_set<std::string> names;
    count("number of tensors", n_tensors_, kMinTensorBytes);
    for (std::uint64_t i = 0; i < n_tensors_; i++) {
      tensors.push_back(read_tensor(i));
      if (!names.insert(tensors.back().name).second)
        refuse(path_, tensor_place(tensors.back().name), "the name twice", "every tensor once");
    }
    info_end_ = cursor_.pos();
  }

  GgufTensor read_tensor(std::uint64_t i) {
    GgufTensor tensor;
    const Place number{"tensor", {}, i, cursor_.pos()};
    tensor.name = cursor_.string({"tensor", {}, i}, "a name", kMaxNameBytes);
    if (tensor.name.empty()) refuse(path_, number, "an empty name", "a name");
    if (tensor.name.find('\0') != std::string::npos)
      refuse(path_, number, "the name " + in_quotes(tensor.name), "a name without NUL");
    read_shape(tensor);
    read_tensor_type(tensor);
    set_size(tensor);
    offsets_.push_back(cursor_.value<std::uint64_t>(tensor_place(tensor.name), "an offset"));
    return tensor;
  }

  void read_shape(GgufTensor& tensor) {
    const Place place = tensor_place(tensor.name);
    const auto n = cursor_.value<std::uint32_t>(place, "a number of dimensions");
    if (n > kMaxDims)
      refuse(path_, place, fmt::format("{} dimensions", n), fmt::format("at most {}", kMaxDims));
    for (std::uint32_t i = 0; i < n; i++) {
      const auto dim = cursor_.value<std::uint64_t>(place, "a dimension");
      if (dim > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        refuse(path_, place, fmt::format("a dimension of {}", dim), "a dimension below 2^63");
      tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(dim));
    }
  }

  void read_tensor_type(GgufTensor& tensor) {
    const auto number = cursor_.value<std::uint32_t>(tensor_place(tensor.name), "a type");
    tensor.type = ggml_type_info(number);
    if (tensor.type) return;
    refuse(path_, tensor_place(tensor.name), fmt::format("the unknown tensor type {}", number),
           "one of " + readable_ggml_types());
  }

  // Sets the number of bytes; every product is checked for overflow, even if the tensor is empty.
  void set_size(GgufTensor& tensor) {
    const GgmlTypeInfo& type = *tensor.type;
    const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % type.block_size != 0) {
      refuse(path_, tensor_place(tensor.name), fmt::format("rows of {} elements", row),
             fmt::format("a multiple of {}, the block size of {}", type.block_size, type.name));
    }
    std::int64_t n = 1, n_bytes = 0;
    bool is_empty = false, overflows = false;
    for (const std::int64_t dim : tensor.shape) {
      is_empty |= dim == 0;
      overflows |= __builtin_mul_overflow(n, std::max<std::int64_t>(dim, 1), &n);
    }
    const std::int64_t n_blocks = n / type.block_size;
    overflows |= __builtin_mul_overflow(n_blocks, type.block_bytes, &n_bytes) ||
                 __builtin_add_overflow(n_bytes, type.block_bytes, &n_bytes);
    if (overflows) {
      refuse(path_, tensor_place(tensor.name), "a size of more than 2^63 bytes (shape overflows)",
             "a smaller tensor");
    }
    sizes_.push_back(is_empty ? 0
                              : static_cast<std::uint64_t>(n_blocks) *
                                    static_cast<std::uint64_t>(type.block_bytes));
  }

  // Checks that the tensors follow each other, each padded to the alignment, within the file.
  void place_tensors() {
    if (tensors.empty()) return;
    const std::uint64_t data_begin = padded(info_end_, {"header"});
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < tensors.size(); i++) {
      const Place place = tensor_place(tensors[i].name);
      if (offsets_[i] != expected) {
        refuse(path_, place, fmt::format("offset {}", offsets_[i]),
               fmt::format("{}, the end of the tensor before it", expected));
      }
      const std::uint64_t available = bytes_.size() - std::min(data_begin, bytes_.size());
      if (expected > available || sizes_[i] > available - expected) {
        refuse(path_, place,
               fmt::format("{} bytes from offset {}, of which the file has {}", sizes_[i], expected,
                           available - std::min(expected, available)),
               "a whole file; is the download complete?");
      }
      tensors[i].bytes = bytes_.substr(std::min(data_begin + expected, bytes_.size()), sizes_[i]);
      expected = padded(expected + sizes_[i], place);
    }
  }

  std::uint64_t padded(std::uint64_t n, const Place& place) const {
    std::uint64_t up = 0;
    if (__builtin_add_overflow(n, alignment_ - 1, &up))
      refuse(path_, place, "a size that overflows", "a size below 2^63 bytes");
    return up / alignment_ * alignment_;
  }

  std::string_view bytes_;
  const std::string& path_;
  const FileLimits& limits_;
  Cursor cursor_;
  std::uint64_t n_tensors_ = 0, n_pairs_ = 0, info_end_ = 0, alignment_ = kDefaultAlignment;
  std::vector<std::uint64_t> offsets_, sizes_;
};

}  // namespace

const char* name_of(GgufType type) {
  return kTypeNames[static_cast<std::uint32_t>(type)];
}

std::int64_t GgufTensor::n_elements() const {
  std::int64_t n = 1;
  for (const std::int64_t dim : shape) n *= dim;
  return n;
}

std::shared_ptr<const GgufFile> GgufFile::open(const std::string& path, const FileLimits& limits) {
  auto gguf = std::make_shared<GgufFile>();
  gguf->file_ = MappedFile::open(path);
  HeaderReader header(gguf->file_->bytes(), path, limits);
  header.read();
  gguf->entries_ = std::move(header.entries);
  gguf->tensors_ = std::move(header.tensors);
  gguf->file_->check();
  return gguf;
}

void GgufFile::refuse_value(std::string_view key,
                            const std::string& found,
                            const std::string& expected) const {
  const GgufEntry* entry = find(key);
  refuse(path(), entry ? key_place(key).at(entry->offset) : key_place(key), found, expected);
}

const GgufEntry* GgufFile::find(std::string_view key) const {
  const auto at = std::ranges::lower_bound(entries_, key, {}, &GgufEntry::key);
  return at != entries_.end() && at->key == key ? &*at : nullptr;
}

std::string GgufFile::architecture() const {
  constexpr const char* kKey = "general.architecture";
  constexpr std::size_t kMaxBytes = 64;
  const std::optional<std::string> name = string(kKey);
  if (!name) refuse_value(kKey, "none", "the name of an architecture");
  if (name->empty() || name->size() > kMaxBytes)
    refuse_value(kKey, fmt::format("{} bytes", name->size()), "the name of an architecture");
  return *name;
}

std::optional<std::string> GgufFile::string(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (entry->type != GgufType::String) refuse_value(key, type_of(*entry), "a string");
  return std::string(Cursor(entry->bytes, path()).string(key_place(key), "a string", ~0ULL));
}

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (entry->type == GgufType::Array) refuse_value(key, type_of(*entry), "an integer");
  return integers(key).front();
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (!is_real(entry->type)) refuse_value(key, type_of(*entry), "f32 or f64");
  return real_at(entry->bytes.data(), entry->type);
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return std::nullopt;
  if (entry->type != GgufType::Bool) refuse_value(key, type_of(*entry), "a bool");
  return entry->bytes.front() != 0;
}

std::vector<std::string_view> GgufFile::strings(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return {};
  if (entry->type != GgufType::Array || entry->element != GgufType::String)
    refuse_value(key, type_of(*entry), "an array of strings");
  std::vector<std::string_view> out;
  out.reserve(static_cast<std::size_t>(entry->count));
  Cursor cursor(entry->bytes, path());
  const Place place = key_place(key);
  for (std::int64_t i = 0; i < entry->count; i++)
    out.push_back(cursor.string(place, "a string", ~0ULL));
  return out;
}

std::vector<double> GgufFile::numbers(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return {};
  if (entry->type != GgufType::Array || !is_real(entry->element))
    refuse_value(key, type_of(*entry), "an array of f32 or f64");
  std::vector<double> out(static_cast<std::size_t>(entry->count));
  const auto size = static_cast<std::size_t>(bytes_of(entry->element));
  for (std::size_t i = 0; i < out.size(); i++)
    out[i] = real_at(entry->bytes.data() + i * size, entry->element);
  return out;
}

std::vector<std::int64_t> GgufFile::integers(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return {};
  const GgufType type = entry->type == GgufType::Array ? entry->element : entry->type;
  if (!is_integer(type)) refuse_value(key, type_of(*entry), "integers");
  std::vector<std::int64_t> out(static_cast<std::size_t>(entry->count));
  const auto size = static_cast<std::size_t>(bytes_of(type));
  for (std::size_t i = 0; i < out.size(); i++) {
    const std::optional<std::int64_t> value = integer_at(entry->bytes.data() + i * size, type);
    if (!value) refuse_value(key, "a number above 2^63 - 1", "a smaller one");
    out[i] = *value;
  }
  return out;
}

std::vector<bool> GgufFile::booleans(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (!entry) return {};
  const GgufType type = entry->type == GgufType::Array ? entry->element : entry->type;
  if (type != GgufType::Bool) refuse_value(key, type_of(*entry), "truth values");
  std::vector<bool> out;
  for (const char byte : entry->bytes) out.push_back(byte != 0);
  return out;
}

void GgufFile::release(const GgufTensor& tensor) const {
  const auto begin = static_cast<std::size_t>(tensor.bytes.data() - file_->bytes().data());
  file_->release(begin, begin + tensor.bytes.size());
}

}  // namespace engine

#include "engine/event/serialise.h"

#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/event/event_fields.h"

namespace engine {
namespace {

constexpr std::array<const char*, std::variant_size_v<Event>> kKindNames{
    "ModelLoaded",    "RunStarted",  "Phase",         "StepBegun",     "Drafted",
    "BlockRefined",   "Verified",    "Committed",     "PoolChanged",   "Queued",
    "Dequeued",       "Waiting",     "Sampled",       "Agreement",     "StepEnded",
    "PayloadDropped", "RunFinished", "RunFailed",     "Held",          "Notice",
    "SearchBegun",    "ThoughtMade", "ThoughtValued", "ThoughtJudged", "SearchEnded"};

/// The largest value of an enumeration; the reader refuses larger bytes.
template <typename T>
constexpr int kLastOf = 0;
template <>
constexpr int kLastOf<ReadAs> = static_cast<int>(ReadAs::Raw);
template <>
constexpr int kLastOf<RowFate> = static_cast<int>(RowFate::Window);
template <>
constexpr int kLastOf<TokenStatus> = static_cast<int>(TokenStatus::Approximate);
template <>
constexpr int kLastOf<RowTag::Kind> = static_cast<int>(RowTag::Kind::Probe);
template <>
constexpr int kLastOf<GuessSource::Kind> = static_cast<int>(GuessSource::Kind::File);
template <>
constexpr int kLastOf<Notice::Level> = static_cast<int>(Notice::Level::Error);
template <>
constexpr int kLastOf<ThoughtFate> = static_cast<int>(ThoughtFate::Unreadable);

constexpr std::size_t kTagBytes = 5;  // kind, a, b

template <typename T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
/// Vectors of these types are copied as bytes, because they have the same layout in memory and in
/// the file.
template <typename T>
concept AsInMemory = Number<T> && std::endian::native == std::endian::little;
template <typename T>
concept Enumeration = std::is_enum_v<T>;
template <typename T>
concept Flag = std::same_as<T, bool>;

template <std::size_t>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using Type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = std::uint64_t;
};
template <typename T>
using Bits = typename UnsignedOf<sizeof(T)>::Type;

template <Number T>
void put(std::string& bytes, T value) {
  const auto bits = std::bit_cast<Bits<T>>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(bits >> (8 * i)));
  }
}

void put_length(std::string& bytes, std::size_t length) {
  for (; length >= 0x80; length >>= 7) bytes += static_cast<char>(0x80 | (length & 0x7F));
  bytes += static_cast<char>(length);
}

/// Writes every field it visits: length, then the bytes of its value.
class Writer {
 public:
  explicit Writer(std::string& bytes) : bytes_(bytes) {}

  template <typename T>
  void operator()(const T& field) {
    value_.clear();
    value(field);
    put_length(bytes_, value_.size());
    bytes_ += value_;
  }

 private:
  void value(const Number auto& x) { put(value_, x); }
  void value(const Flag auto& x) { value_ += static_cast<char>(x ? 1 : 0); }
  void value(const Enumeration auto& x) { value_ += static_cast<char>(x); }
  void value(const std::string& x) { value_ += x; }
  void value(const RowTag& x) {
    value(x.kind);
    put(value_, x.a);
    put(value_, x.b);
  }
  template <typename T>
  void value(const std::vector<T>& xs) {
    if constexpr (AsInMemory<T>) {
      value_.append(reinterpret_cast<const char*>(xs.data()), xs.size() * sizeof(T));
      return;
    }
    for (const T& x : xs) {
      if constexpr (std::same_as<T, std::string>) {
        text(x);
      } else if constexpr (Part<T>) {
        std::string inner;
        Writer writer(inner);
        fields(writer, x);
        text(inner);
      } else {
        value(x);
      }
    }
  }
  void value(const std::map<std::string, std::string>& xs) {
    for (const auto& [key, x] : xs) text(key), text(x);
  }
  void value(const std::map<std::string, double>& xs) {
    for (const auto& [key, x] : xs) text(key), put(value_, x);
  }
  void text(const std::string& x) {
    put_length(value_, x.size());
    value_ += x;
  }

  std::string& bytes_;  // the caller's
  std::string value_;
};

/// Reads numbers and texts from some bytes, in order. Throws an Error if too few bytes are left.
class Bytes {
 public:
  explicit Bytes(std::string_view left) : left_(left) {}
  bool empty() const { return left_.empty(); }
  std::size_t size() const { return left_.size(); }

  template <Number T>
  T number() {
    const std::string_view bytes = take(sizeof(T));
    Bits<T> bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const auto byte = static_cast<Bits<T>>(static_cast<unsigned char>(bytes[i]));
      bits = static_cast<Bits<T>>(bits | static_cast<Bits<T>>(byte << (8 * i)));
    }
    return std::bit_cast<T>(bits);
  }
  std::string_view text() { return take(length()); }

  std::string_view take(std::size_t n) {
    if (n > left_.size()) {
      throw Error(ErrorCode::BadInput, fmt::format("found {} bytes, expected {}", left_.size(), n));
    }
    const std::string_view bytes = left_.substr(0, n);
    left_.remove_prefix(n);
    return bytes;
  }

 private:
  std::size_t length() {
    std::uint64_t n = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      const auto byte = number<std::uint8_t>();
      n |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return n;
    }
    throw Error(ErrorCode::BadInput, "found a length of more than 63 bits");
  }

  std::string_view left_;
};

/// Fills every field it visits; a field beyond the end of the bytes keeps its default.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void operator()(T& field) {
    if (bytes_.empty()) return;
    ++n_fields_;
    Bytes value(bytes_.text());
    read(value, field);
    if (!value.empty()) {
      throw Error(ErrorCode::BadInput,
                  fmt::format("found {} extra bytes, expected none", value.size()));
    }
  }

  int n_fields() const { return n_fields_; }
  /// Skips the fields after those visited. @return  their number
  int skip_rest() {
    int n = 0;
    for (; !bytes_.empty(); ++n) bytes_.text();
    return n;
  }

 private:
  template <Number T>
  void read(Bytes& from, T& x) {
    x = from.number<T>();
  }
  void read(Bytes& from, Flag auto& x) {
    const auto byte = from.number<std::uint8_t>();
    if (byte > 1) throw Error(ErrorCode::BadInput, fmt::format("found {}, expected 0 or 1", byte));
    x = byte == 1;
  }
  template <Enumeration T>
  void read(Bytes& from, T& x) {
    const auto byte = from.number<std::uint8_t>();
    if (byte > kLastOf<T>) {
      throw Error(ErrorCode::BadInput, fmt::format("found {}, expected 0 to {}", byte, kLastOf<T>));
    }
    x = static_cast<T>(byte);
  }
  void read(Bytes& from, std::string& x) { x = from.take(from.size()); }
  void read(Bytes& from, RowTag& x) {
    read(from, x.kind);
    x.a = from.number<std::int16_t>();
    x.b = from.number<std::int16_t>();
  }
  template <typename T>
  void read(Bytes& from, std::vector<T>& xs) {
    if constexpr (std::same_as<T, std::string>) {
      while (!from.empty()) xs.emplace_back(from.text());
    } else if constexpr (Part<T>) {
      while (!from.empty()) {
        Reader inner(from.text());
        fields(inner, xs.emplace_back());
        inner.skip_rest();
      }
    } else if constexpr (AsInMemory<T>) {
      xs.resize(from.size() / sizeof(T));
      const std::string_view bytes = from.take(xs.size() * sizeof(T));
      if (!bytes.empty()) std::memcpy(xs.data(), bytes.data(), bytes.size());
      if (!from.empty()) read(from, xs.emplace_back());  // a part of a number; throws an Error
    } else {
      xs.reserve(from.size() / (std::same_as<T, RowTag> ? kTagBytes : sizeof(T)));
      while (!from.empty()) read(from, xs.emplace_back());
    }
  }
  void read(Bytes& from, std::map<std::string, std::string>& xs) {
    while (!from.empty()) {
      const std::string key(from.text());
      xs[key] = from.text();
    }
  }
  void read(Bytes& from, std::map<std::string, double>& xs) {
    while (!from.empty()) {
      const std::string key(from.text());
      xs[key] = from.number<double>();
    }
  }

  Bytes bytes_;
  int n_fields_ = 0;
};

template <std::size_t kKind = 0>
Event blank_of(std::size_t kind) {
  if constexpr (kKind + 1 < std::variant_size_v<Event>) {
    if (kind != kKind) return blank_of<kKind + 1>(kind);
  }
  return Event(std::in_place_index<kKind>);
}

}  // namespace

void encode(const Event& event, std::string& bytes) {
  put(bytes, static_cast<std::uint16_t>(event.index()));
  Writer writer(bytes);
  std::visit([&](const auto& e) { fields(writer, e); }, event);
}

Decoded decode(std::string_view bytes) {
  Bytes head(bytes);
  Decoded decoded{.kind = head.number<std::uint16_t>()};
  if (decoded.kind >= std::variant_size_v<Event>) return decoded;
  Event event = blank_of(decoded.kind);
  Reader reader(bytes.substr(sizeof(std::uint16_t)));
  try {
    std::visit([&](auto& e) { fields(reader, e); }, event);
    decoded.n_unknown_fields = reader.skip_rest();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: field {}: {}", kind_name(decoded.kind),
                                          reader.n_fields(), error.what()));
  }
  decoded.event = std::move(event);
  return decoded;
}

std::string kind_name(std::size_t kind) {
  return kind < kKindNames.size() ? kKindNames[kind] : fmt::format("kind {}", kind);
}

}  // namespace engine

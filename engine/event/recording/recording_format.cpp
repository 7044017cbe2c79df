#include "engine/event/recording/recording_format.h"

#include <zlib.h>

#include "engine/base/types.h"

namespace engine {
namespace {

template <typename T>
void put(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFF);
}

template <typename T>
T get(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace

void put_u16(std::string& bytes, std::uint16_t value) {
  put(bytes, value);
}
void put_u32(std::string& bytes, std::uint32_t value) {
  put(bytes, value);
}
void put_u64(std::string& bytes, std::uint64_t value) {
  put(bytes, value);
}
std::uint16_t get_u16(std::string_view bytes) {
  return get<std::uint16_t>(bytes);
}
std::uint32_t get_u32(std::string_view bytes) {
  return get<std::uint32_t>(bytes);
}
std::uint64_t get_u64(std::string_view bytes) {
  return get<std::uint64_t>(bytes);
}

std::uint32_t crc_of(std::string_view bytes, std::uint32_t before) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(::crc32_z(before, data, bytes.size()));
}

std::string recording_header(std::int64_t unix_seconds) {
  std::string fields;
  put_u32(fields, static_cast<std::uint32_t>(program_version().size()));
  fields += program_version();
  put_u64(fields, static_cast<std::uint64_t>(unix_seconds));

  std::string checked;
  put_u32(checked, kRecordingVersion);
  put_u32(checked, static_cast<std::uint32_t>(fields.size()));
  checked += fields;

  std::string header(kRecordingMagic);
  header += checked;
  put_u32(header, crc_of(checked));
  return header;
}

std::uint32_t put_frame(std::string& bytes, std::string_view body) {
  ensure(body.size() <= kMaxFrameBytes, "an event is larger than a frame may be");
  std::string length;
  put_u32(length, static_cast<std::uint32_t>(body.size()));
  const std::uint32_t crc = crc_of(body, crc_of(length));
  bytes += kFrameMarker;
  bytes += length;
  put_u32(bytes, crc);
  bytes += body;
  return crc;
}

std::string_view program_version() {
  return DECOSCOPE_VERSION;
}

}  // namespace engine

// How a .pdrun file is laid out. Everything is little endian.
//   header  magic (8 bytes), u32 version, u32 n, n bytes of fields, u32 CRC-32 of version..fields
//           fields: u32 length + program version; i64 seconds since 1970 of the beginning
//   frame   "PE", u32 length of the body, u32 CRC-32 of length and body, body (serialise.h)
//   footer  a frame whose body is u16 0xFFFF, u64 number of events, u32 CRC-32 over all their CRCs;
//           there only when the recording was closed
// A kill at any byte costs the frame it hit; a flipped bit costs its frame, the marker finds the
// next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace engine {

inline constexpr std::string_view kRecordingMagic{"PDRUN\r\n\x1A", 8};
inline constexpr std::uint32_t kRecordingVersion = 1;
inline constexpr std::string_view kFrameMarker = "PE";
inline constexpr std::size_t kFrameHeadBytes = 2 + 4 + 4;
inline constexpr std::size_t kHeaderHeadBytes = 8 + 4 + 4;
/// A vocabulary of 4,000,000 pieces fits.
inline constexpr std::uint32_t kMaxFrameBytes = 256u << 20;
inline constexpr std::uint32_t kMaxHeaderBytes = 64u << 10;
inline constexpr std::uint16_t kFooterKind = 0xFFFF;
inline constexpr std::size_t kFooterBytes = 2 + 8 + 4;

void put_u16(std::string& bytes, std::uint16_t value);
void put_u32(std::string& bytes, std::uint32_t value);
void put_u64(std::string& bytes, std::uint64_t value);
/// The caller has checked that 2, 4 or 8 bytes are there.
std::uint16_t get_u16(std::string_view bytes);
std::uint32_t get_u32(std::string_view bytes);
std::uint64_t get_u64(std::string_view bytes);

/// CRC-32 (zlib's) of `bytes`, continuing from `before`.
std::uint32_t crc_of(std::string_view bytes, std::uint32_t before = 0);

std::string recording_header(std::int64_t unix_seconds);
/// Appends a whole frame. @return its CRC
std::uint32_t put_frame(std::string& bytes, std::string_view body);

/// The version this library was built as.
std::string_view program_version();

}  // namespace engine

// The layout of a .pdrun file. All numbers are little endian.
//   header  magic (8 bytes), u32 version, u32 n, n bytes of fields, u32 CRC-32 of version..fields
//           fields: u32 length + program version; i64 time of the beginning, seconds since 1970
//   frame   "PE", u32 length of the body, u32 CRC-32 of length and body, body (serialise.h)
//   footer  a frame whose body is u16 0xFFFF, u64 number of events, u32 CRC-32 over all their CRCs;
//           only a recording that was closed has a footer
// A killed process or a flipped bit damages only one frame; the reader finds the next frame by its
// marker.
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

/// Appends a number, least significant byte first.
void put_u16(std::string& bytes, std::uint16_t value);
/// Appends a number, least significant byte first.
void put_u32(std::string& bytes, std::uint32_t value);
/// Appends a number, least significant byte first.
void put_u64(std::string& bytes, std::uint64_t value);
/// Reads a number from the first 2 bytes, which must exist.
std::uint16_t get_u16(std::string_view bytes);
/// Reads a number from the first 4 bytes, which must exist.
std::uint32_t get_u32(std::string_view bytes);
/// Reads a number from the first 8 bytes, which must exist.
std::uint64_t get_u64(std::string_view bytes);

/// CRC-32 (zlib's) of `bytes`, continuing from `before`.
std::uint32_t crc_of(std::string_view bytes, std::uint32_t before = 0);

/// The header of a recording that begins now.
std::string recording_header(std::int64_t unix_seconds);
/// Appends a frame: marker, length, CRC and body.
/// @return  its CRC
std::uint32_t put_frame(std::string& bytes, std::string_view body);

/// The version of this program.
std::string_view program_version();

}  // namespace engine

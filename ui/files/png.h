// The parts of PNG files.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ui {

/// Returns a PNG of 8-bit RGB rows, top row first.
/// @param rgb   [height * width * 3]
/// @param says  a description in UTF-8 that the file contains (iTXt "Description"); empty: none
std::string png_of(std::span<const std::uint8_t> rgb,
                   int width,
                   int height,
                   const std::string& says = "");

/// Returns the signature and the chunk IHDR of a PNG with 8-bit RGB pixels.
std::string png_head(int width, int height);
/// Returns the compressed pixels, the content of IDAT. @param rgb  [height * width * 3]
std::string png_pixels(std::span<const std::uint8_t> rgb, int width, int height);
/// Appends a chunk: length, type, data and CRC-32.
void put_chunk(std::string& out, const std::string& type, const std::string& data);
/// Appends the chunk iTXt "Description". @param says  UTF-8
void put_description(std::string& out, const std::string& says);
/// Appends a number of 16 or 32 bits, most significant byte first.
void put_u16(std::string& out, int v);
void put_u32(std::string& out, std::uint32_t v);

}  // namespace ui

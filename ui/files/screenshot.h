// Writes drawn frames as PNG files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ui {

/// Returns a PNG of 8-bit RGB rows, top row first.
/// @param rgb   [height * width * 3]
/// @param says  a description in UTF-8 that the file contains (iTXt "Description"); empty: none
std::string png_of(std::span<const std::uint8_t> rgb,
                   int width,
                   int height,
                   const std::string& says = "");
/// Reads a part of the current OpenGL frame buffer, top row first.
/// @param bottom  the lowest row of the part, counted from the bottom of the buffer
/// @return        [height * width * 3]
std::vector<std::uint8_t> read_pixels(int left, int bottom, int width, int height);
/// Writes the current OpenGL frame buffer as a PNG file.
/// @throws Error(Resources)  the file cannot be written
void write_screenshot(const std::string& path, int width, int height);

}  // namespace ui

// What is drawn, as a PNG.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ui {

/// A PNG of 8-bit RGB rows, top row first.
/// @param rgb   [height * width * 3]
/// @param says  UTF-8, kept in the file beside the picture (iTXt "Description"); empty: nothing
std::string png_of(std::span<const std::uint8_t> rgb,
                   int width,
                   int height,
                   const std::string& says = "");
/// A part of the current OpenGL frame buffer, top row first.
/// @param bottom  of its lowest row, counted from the buffer's lowest
/// @return        [height * width * 3]
std::vector<std::uint8_t> read_pixels(int left, int bottom, int width, int height);
/// Reads the current OpenGL frame buffer and writes it.
/// @throws Error(Resources)  it cannot be written
void write_screenshot(const std::string& path, int width, int height);

}  // namespace ui

// Writes drawn frames as PNG files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ui {

/// Reads a part of the current OpenGL frame buffer, top row first.
/// @param bottom  the lowest row of the part, counted from the bottom of the buffer
/// @return        [height * width * 3]
std::vector<std::uint8_t> read_pixels(int left, int bottom, int width, int height);
/// Writes the current OpenGL frame buffer as a PNG file.
/// @throws Error(Resources)  the file cannot be written
void write_screenshot(const std::string& path, int width, int height);

}  // namespace ui

// The window as a PNG.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ui {

/// A PNG of 8-bit RGB rows, top row first.
/// @param rgb  [height * width * 3]
std::string png_of(std::span<const std::uint8_t> rgb, int width, int height);
/// Reads the current OpenGL frame buffer and writes it.
/// @throws Error(Resources)  it cannot be written
void write_screenshot(const std::string& path, int width, int height);

}  // namespace ui

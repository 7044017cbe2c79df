#include "ui/files/screenshot.h"

#include <algorithm>

#include <GL/gl.h>

#include "engine/base/output_file.h"
#include "ui/files/png.h"

namespace ui {
std::vector<std::uint8_t> read_pixels(int left, int bottom, int width, int height) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(width) * 3;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(row) * height);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(left, bottom, width, height, GL_RGB, GL_UNSIGNED_BYTE, pixels.data());
  // OpenGL counts rows from the bottom.
  for (int y = 0; y < height / 2; ++y)
    std::swap_ranges(pixels.begin() + y * row, pixels.begin() + (y + 1) * row,
                     pixels.begin() + (height - 1 - y) * row);
  return pixels;
}

void write_screenshot(const std::string& path, int width, int height) {
  const std::vector<std::uint8_t> pixels = read_pixels(0, 0, width, height);
  engine::write_whole_file(path, png_of(pixels, width, height));
}

}  // namespace ui

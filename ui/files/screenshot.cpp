#include "ui/files/screenshot.h"

#include <algorithm>

#include <GL/gl.h>
#include <zlib.h>

#include "engine/base/output_file.h"
#include "engine/base/types.h"

namespace ui {
namespace {

void put_u32(std::string& out, std::uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(v >> shift));
}

void put_chunk(std::string& out, const std::string& type, const std::string& data) {
  put_u32(out, static_cast<std::uint32_t>(data.size()));
  const std::string body = type + data;
  out += body;
  put_u32(out, static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                                                static_cast<uInt>(body.size()))));
}

}  // namespace

std::string png_of(std::span<const std::uint8_t> rgb,
                   int width,
                   int height,
                   const std::string& says) {
  engine::ensure(
      width > 0 && height > 0 && rgb.size() == static_cast<std::size_t>(width) * height * 3,
      "png_of needs width * height * 3 bytes");
  std::string raw;
  raw.reserve(rgb.size() + height);
  for (int y = 0; y < height; ++y) {
    raw.push_back(0);  // no filter
    const auto row =
        rgb.subspan(static_cast<std::size_t>(y) * width * 3, static_cast<std::size_t>(width) * 3);
    raw.append(reinterpret_cast<const char*>(row.data()), row.size());
  }
  uLongf n = compressBound(static_cast<uLong>(raw.size()));
  std::string packed(n, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &n, reinterpret_cast<const Bytef*>(raw.data()),
            static_cast<uLong>(raw.size()), 6);
  packed.resize(n);
  std::string out("\x89PNG\r\n\x1a\n", 8), head;
  put_u32(head, static_cast<std::uint32_t>(width));
  put_u32(head, static_cast<std::uint32_t>(height));
  head += std::string("\x08\x02\0\0\0", 5);  // 8 bits, RGB
  put_chunk(out, "IHDR", head);
  // The fields of iTXt: keyword, not compressed, no language, no translated keyword, text.
  if (!says.empty()) put_chunk(out, "iTXt", std::string("Description\0\0\0\0\0", 16) + says);
  put_chunk(out, "IDAT", packed);
  put_chunk(out, "IEND", "");
  return out;
}

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

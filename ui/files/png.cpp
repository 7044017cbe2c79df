#include "ui/files/png.h"

#include <zlib.h>

#include "engine/base/types.h"

namespace ui {

void put_u16(std::string& out, int v) {
  out.push_back(static_cast<char>(v >> 8));
  out.push_back(static_cast<char>(v));
}

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

std::string png_head(int width, int height) {
  std::string out("\x89PNG\r\n\x1a\n", 8), head;
  put_u32(head, static_cast<std::uint32_t>(width));
  put_u32(head, static_cast<std::uint32_t>(height));
  head += std::string("\x08\x02\0\0\0", 5);  // 8 bits, RGB
  put_chunk(out, "IHDR", head);
  return out;
}

std::string png_pixels(std::span<const std::uint8_t> rgb, int width, int height) {
  engine::ensure(
      width > 0 && height > 0 && rgb.size() == static_cast<std::size_t>(width) * height * 3,
      "a PNG needs width * height * 3 bytes");
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
  return packed;
}

void put_description(std::string& out, const std::string& says) {
  // The fields of iTXt: keyword, not compressed, no language, no translated keyword, text.
  put_chunk(out, "iTXt", std::string("Description\0\0\0\0\0", 16) + says);
}

std::string png_of(std::span<const std::uint8_t> rgb,
                   int width,
                   int height,
                   const std::string& says) {
  std::string out = png_head(width, height);
  if (!says.empty()) put_description(out, says);
  put_chunk(out, "IDAT", png_pixels(rgb, width, height));
  put_chunk(out, "IEND", "");
  return out;
}

}  // namespace ui

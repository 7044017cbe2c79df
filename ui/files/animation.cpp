#include "ui/files/animation.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <gif_lib.h>

#include "engine/base/text.h"
#include "engine/base/types.h"
#include "ui/files/png.h"

namespace ui {

void Animation::add(std::span<const std::uint8_t> rgb, int ms) {
  const std::size_t row = static_cast<std::size_t>(width_) * 3;
  engine::ensure(rgb.size() == row * height_ && ms >= 10,
                 "a frame has width * height * 3 bytes and lasts 10 ms");
  int left = width_, right = 0, top = height_, bottom = 0;
  if (last_.empty()) left = top = 0, right = width_, bottom = height_;
  for (int y = 0; y < height_ && !last_.empty(); ++y) {
    const std::uint8_t *now = rgb.data() + y * row, *was = last_.data() + y * row;
    if (std::memcmp(now, was, row) == 0) continue;
    top = std::min(top, y), bottom = y + 1;
    auto to = static_cast<std::ptrdiff_t>(row);
    while (now[to - 1] == was[to - 1]) --to;
    left = std::min(left, static_cast<int>((std::mismatch(now, now + row, was).first - now) / 3));
    right = std::max(right, static_cast<int>((to + 2) / 3));
  }
  if (bottom == 0) {
    next_.ms += ms;
    return;
  }
  if (!last_.empty()) put(next_);
  next_ = {left, top, right - left, bottom - top, ms, {}};
  next_.rgb.reserve(static_cast<std::size_t>(next_.width) * next_.height * 3);
  for (int y = top; y < bottom; ++y) {
    const auto begin = rgb.begin() + static_cast<std::ptrdiff_t>(y * row) + left * 3;
    next_.rgb.insert(next_.rgb.end(), begin, begin + next_.width * 3);
  }
  last_.assign(rgb.begin(), rgb.end());
}

std::string Animation::file() {
  engine::ensure(!last_.empty(), "an animation has at least one frame");
  put(next_);
  return end();
}

namespace {

// Animated PNG: the chunks of a PNG with acTL before the first frame, and fcTL before each.
class Apng : public Animation {
 public:
  Apng(int width, int height, std::string says)
      : Animation(width, height), says_(std::move(says)) {}

 private:
  void put(const Part& part) override {
    std::string control;
    put_u32(control, n_chunks_++);
    for (const int value : {part.width, part.height, part.left, part.top})
      put_u32(control, static_cast<std::uint32_t>(value));
    // The delay is a fraction of 16-bit numbers: ms of 1000, or for a long one seconds.
    const bool is_long = part.ms > 0xFFFF;
    put_u16(control, std::min(is_long ? part.ms / 1000 : part.ms, 0xFFFF));
    put_u16(control, is_long ? 1 : 1000);
    control += std::string(2, '\0');  // the frame stays, and replaces the pixels of its rectangle
    put_chunk(frames_, "fcTL", control);
    const std::string pixels = png_pixels(part.rgb, part.width, part.height);
    std::string data;
    if (n_frames_++ > 0) put_u32(data, n_chunks_++);
    put_chunk(frames_, data.empty() ? "IDAT" : "fdAT", data + pixels);
  }
  std::string end() override {
    std::string out = png_head(width_, height_), control;
    put_u32(control, n_frames_);
    put_u32(control, 0);  // repeats without end
    put_chunk(out, "acTL", control);
    if (!says_.empty()) put_description(out, says_);
    out += frames_;
    put_chunk(out, "IEND", "");
    return out;
  }

  const std::string says_;
  std::string frames_;
  std::uint32_t n_frames_ = 0, n_chunks_ = 0;  // n_chunks_: those with a sequence number
};

using Colour = std::uint32_t;  // 0xRRGGBB

constexpr std::size_t kColours = 256, kFrequent = 192;

int distance(Colour a, Colour b) {
  int sum = 0;
  for (const int shift : {0, 8, 16}) {
    const int d = static_cast<int>((a >> shift) & 255) - static_cast<int>((b >> shift) & 255);
    sum += d * d;
  }
  return sum;
}

// The colours of a frame, at most kColours, and the index of each pixel.
struct Indexed {
  std::vector<Colour> palette;
  std::vector<GifByteType> pixels;
};

// Adds colours until the palette is full, each time the one that is farthest from all in it.
void add_farthest(std::vector<Colour>& palette, std::span<const Colour> from) {
  std::vector<int> far(from.size(), std::numeric_limits<int>::max());
  std::size_t seen = 0;  // colours of the palette that `far` regards
  while (palette.size() < kColours) {
    for (; seen < palette.size(); ++seen)
      for (std::size_t i = 0; i < from.size(); ++i)
        far[i] = std::min(far[i], distance(from[i], palette[seen]));
    const auto farthest = std::ranges::max_element(far);
    if (farthest == far.end() || *farthest == 0) return;
    palette.push_back(from[static_cast<std::size_t>(farthest - far.begin())]);
  }
}

// The palette has the most frequent colours, then those that are farthest from them; every other colour becomes the nearest. Surfaces of a
// window have few colours and stay exact; the edges of its characters have many.
Indexed indexed(std::span<const std::uint8_t> rgb) {
  std::vector<Colour> pixels;
  pixels.reserve(rgb.size() / 3);
  std::unordered_map<Colour, int> count;
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    pixels.push_back(Colour{rgb[i]} << 16 | Colour{rgb[i + 1]} << 8 | rgb[i + 2]);
    ++count[pixels.back()];
  }
  std::vector<Colour> colours;
  colours.reserve(count.size());
  for (const auto& [colour, n] : count) colours.push_back(colour);
  std::ranges::sort(colours, [&](Colour a, Colour b) {
    return count[a] != count[b] ? count[a] > count[b] : a < b;
  });
  Indexed result;
  const std::size_t n_frequent =
      colours.size() <= kColours ? colours.size() : std::size_t{kFrequent};
  result.palette.assign(colours.begin(), colours.begin() + static_cast<std::ptrdiff_t>(n_frequent));
  add_farthest(result.palette, std::span(colours).subspan(n_frequent));
  std::unordered_map<Colour, GifByteType> index;
  for (const Colour colour : colours) {
    const auto nearest = std::ranges::min_element(
        result.palette, {}, [colour](Colour c) { return distance(c, colour); });
    index[colour] = static_cast<GifByteType>(nearest - result.palette.begin());
  }
  result.pixels.reserve(pixels.size());
  for (const Colour pixel : pixels) result.pixels.push_back(index[pixel]);
  return result;
}

// GIF, written by giflib into memory.
class Gif : public Animation {
 public:
  Gif(int width, int height, const std::string& says) : Animation(width, height) {
    int error = 0;
    gif_ = EGifOpen(&bytes_, append, &error);
    if (!gif_) fail(error);
    EGifSetGifVersion(gif_, true);
    check(EGifPutScreenDesc(gif_, width, height, 8, 0, nullptr));
    check(EGifPutExtensionLeader(gif_, APPLICATION_EXT_FUNC_CODE));
    check(EGifPutExtensionBlock(gif_, 11, "NETSCAPE2.0"));
    check(EGifPutExtensionBlock(gif_, 3, "\1\0\0"));  // repeats without end
    check(EGifPutExtensionTrailer(gif_));
    if (!says.empty()) check(EGifPutComment(gif_, says.c_str()));
  }
  ~Gif() override {
    if (gif_) EGifCloseFile(gif_, nullptr);
  }

 private:
  void put(const Part& part) override {
    // The format counts hundredths of a second; rounding the time since the start keeps the sum.
    const std::int64_t from = (ms_ + 5) / 10, to = (ms_ + part.ms + 5) / 10;
    ms_ += part.ms;
    const GraphicsControlBlock control{DISPOSE_DO_NOT, false,
                                       static_cast<int>(std::min<std::int64_t>(to - from, 0xFFFF)),
                                       NO_TRANSPARENT_COLOR};
    GifByteType block[4];
    EGifGCBToExtension(&control, block);
    check(EGifPutExtension(gif_, GRAPHICS_EXT_FUNC_CODE, sizeof block, block));
    Indexed frame = indexed(part.rgb);
    // A table of colours has a power of two of them.
    const int n_colours = std::max(2, static_cast<int>(std::bit_ceil(frame.palette.size())));
    frame.palette.resize(static_cast<std::size_t>(n_colours));
    std::vector<GifColorType> colours;
    for (const Colour c : frame.palette)
      colours.push_back({static_cast<GifByteType>(c >> 16), static_cast<GifByteType>(c >> 8),
                         static_cast<GifByteType>(c)});
    const std::unique_ptr<ColorMapObject, void (*)(ColorMapObject*)> table(
        GifMakeMapObject(n_colours, colours.data()), GifFreeMapObject);
    check(table ? EGifPutImageDesc(gif_, part.left, part.top, part.width, part.height, false,
                                   table.get())
                : GIF_ERROR);
    for (int y = 0; y < part.height; ++y)
      check(EGifPutLine(gif_, frame.pixels.data() + static_cast<std::ptrdiff_t>(y) * part.width,
                        part.width));
  }
  std::string end() override {
    int error = 0;
    if (EGifCloseFile(std::exchange(gif_, nullptr), &error) != GIF_OK) fail(error);
    return std::move(bytes_);
  }

  static int append(GifFileType* gif, const GifByteType* bytes, int n) {
    static_cast<std::string*>(gif->UserData)
        ->append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
    return n;
  }
  // Checks the result of a function of giflib.
  void check(int result) const {
    if (result != GIF_OK) fail(gif_->Error);
  }
  [[noreturn]] static void fail(int error) {
    const char* why = GifErrorString(error);
    throw engine::Error(engine::ErrorCode::Resources,
                        fmt::format("animation: giflib: {}", why ? why : "out of memory"));
  }

  std::string bytes_;
  GifFileType* gif_ = nullptr;
  std::int64_t ms_ = 0;  // since the start
};

}  // namespace

bool is_animation_name(const std::string& path) {
  return path.ends_with(".png") || path.ends_with(".gif");
}

std::unique_ptr<Animation> make_animation(const std::string& path,
                                          int width,
                                          int height,
                                          const std::string& says) {
  if (!is_animation_name(path))
    throw engine::Error(engine::ErrorCode::Usage,
                        engine::escaped(path) + ": an animation ends in .png (APNG) or .gif");
  if (path.ends_with(".png")) return std::make_unique<Apng>(width, height, says);
  if (std::max(width, height) > 0xFFFF)
    throw engine::Error(engine::ErrorCode::Resources,
                        fmt::format("animation: {} x {} pixels; a GIF has at most 65535 in each "
                                    "direction; choose a smaller scale",
                                    width, height));
  return std::make_unique<Gif>(width, height, says);
}

}  // namespace ui

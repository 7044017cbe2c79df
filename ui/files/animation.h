// Writes a sequence of drawn frames as one file: animated PNG (APNG) or GIF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ui {

/// A sequence of pictures of one size. A frame stores only the rectangle in which it differs from the one before; a frame without a difference
/// lengthens that one.
class Animation {
 public:
  virtual ~Animation() = default;
  Animation(const Animation&) = delete;
  Animation& operator=(const Animation&) = delete;

  /// Appends a frame.
  /// @param rgb  [height * width * 3], top row first
  /// @param ms   how long it is shown, at least 10
  void add(std::span<const std::uint8_t> rgb, int ms);
  /// Ends the animation and returns the whole file. Needs at least one frame; call once.
  std::string file();

 protected:
  /// A frame: the rectangle that it changes, and its pixels.
  struct Part {
    int left = 0, top = 0, width = 0, height = 0;
    int ms = 0;
    std::vector<std::uint8_t> rgb;  // [height * width * 3]
  };

  Animation(int width, int height) : width_(width), height_(height) {}
  /// Writes a frame.
  virtual void put(const Part& part) = 0;
  /// Ends the file and returns it.
  virtual std::string end() = 0;

  const int width_, height_;

 private:
  std::vector<std::uint8_t> last_;  // the frame before
  Part next_;  // not written yet, because a frame without a difference lengthens it
};

/// Returns true for the name of an animation: it ends in .png or .gif.
bool is_animation_name(const std::string& path);

/// Begins an animation that repeats without end. The name selects the format; a GIF frame has at most 256 colours, the others of the frame
/// become the nearest of these.
/// @param says  a description that the file contains
/// @throws Error(Usage)      the name ends neither in .png nor in .gif
/// @throws Error(Resources)  a GIF's side is longer than 65535 pixels
std::unique_ptr<Animation> make_animation(const std::string& path,
                                          int width,
                                          int height,
                                          const std::string& says);

}  // namespace ui

// A frame buffer of any size that no window shows: pictures are drawn anew into one, sharp at any
// scale, and not taken off the screen.
#pragma once

namespace ui {

/// While it lives, OpenGL draws into it. Needs the window's context.
class Offscreen {
 public:
  /// @throws Error(Device)  the driver has no room for one of this size
  Offscreen(int width, int height);
  ~Offscreen();
  Offscreen(const Offscreen&) = delete;
  Offscreen& operator=(const Offscreen&) = delete;

 private:
  unsigned frame_ = 0, colour_ = 0;
};

}  // namespace ui

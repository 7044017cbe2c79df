// An off-screen frame buffer of any size, so that pictures are sharp at any scale.
#pragma once

namespace ui {

/// While it exists, OpenGL draws into it. Needs the window's context.
class Offscreen {
 public:
  /// @throws Error(Device)  the driver does not support this size
  Offscreen(int width, int height);
  ~Offscreen();
  Offscreen(const Offscreen&) = delete;
  Offscreen& operator=(const Offscreen&) = delete;

 private:
  unsigned frame_ = 0, colour_ = 0;
};

}  // namespace ui

#include "ui/files/offscreen.h"

#define GLFW_INCLUDE_GLEXT
#include <GLFW/glfw3.h>
#include <fmt/format.h>

#include "engine/base/types.h"

namespace ui {
namespace {

template <typename F>
F function(const char* name) {
  const auto found = reinterpret_cast<F>(glfwGetProcAddress(name));
  if (found) return found;
  throw engine::Error(engine::ErrorCode::Device,
                      fmt::format("picture: the driver has no {}; update it", name));
}

// Functions of OpenGL 3.0 that its header does not declare.
struct Calls {
  PFNGLGENFRAMEBUFFERSPROC gen_frames = function<PFNGLGENFRAMEBUFFERSPROC>("glGenFramebuffers");
  PFNGLDELETEFRAMEBUFFERSPROC delete_frames =
      function<PFNGLDELETEFRAMEBUFFERSPROC>("glDeleteFramebuffers");
  PFNGLBINDFRAMEBUFFERPROC bind_frame = function<PFNGLBINDFRAMEBUFFERPROC>("glBindFramebuffer");
  PFNGLGENRENDERBUFFERSPROC gen_buffers = function<PFNGLGENRENDERBUFFERSPROC>("glGenRenderbuffers");
  PFNGLDELETERENDERBUFFERSPROC delete_buffers =
      function<PFNGLDELETERENDERBUFFERSPROC>("glDeleteRenderbuffers");
  PFNGLBINDRENDERBUFFERPROC bind_buffer = function<PFNGLBINDRENDERBUFFERPROC>("glBindRenderbuffer");
  PFNGLRENDERBUFFERSTORAGEPROC store =
      function<PFNGLRENDERBUFFERSTORAGEPROC>("glRenderbufferStorage");
  PFNGLFRAMEBUFFERRENDERBUFFERPROC attach =
      function<PFNGLFRAMEBUFFERRENDERBUFFERPROC>("glFramebufferRenderbuffer");
  PFNGLCHECKFRAMEBUFFERSTATUSPROC status =
      function<PFNGLCHECKFRAMEBUFFERSTATUSPROC>("glCheckFramebufferStatus");
};

}  // namespace

Offscreen::Offscreen(int width, int height) {
  const Calls gl;
  int most = 0;
  glGetIntegerv(GL_MAX_RENDERBUFFER_SIZE, &most);
  const auto refuse = [&] {
    throw engine::Error(
        engine::ErrorCode::Device,
        fmt::format("picture: the driver supports {0} x {0} pixels, the picture needs {1} x {2}; "
                    "choose a smaller scale",
                    most, width, height));
  };
  if (width > most || height > most) refuse();
  gl.gen_buffers(1, &colour_);
  gl.bind_buffer(GL_RENDERBUFFER, colour_);
  gl.store(GL_RENDERBUFFER, GL_RGBA8, width, height);
  gl.gen_frames(1, &frame_);
  gl.bind_frame(GL_FRAMEBUFFER, frame_);
  gl.attach(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, colour_);
  if (gl.status(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE) return;
  gl.bind_frame(GL_FRAMEBUFFER, 0);
  gl.delete_frames(1, &frame_);
  gl.delete_buffers(1, &colour_);
  refuse();
}

Offscreen::~Offscreen() {
  const Calls gl;
  gl.bind_frame(GL_FRAMEBUFFER, 0);
  gl.delete_frames(1, &frame_);
  gl.delete_buffers(1, &colour_);
}

}  // namespace ui

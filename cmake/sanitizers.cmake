# The one place where sanitizers are said. Every target that is compiled links it: ours through decoscope_warnings, Dear
# ImGui's by name. The presets asan and tsan set DECOSCOPE_SANITIZERS; it is no switch of the program.
set(DECOSCOPE_SANITIZERS "" CACHE STRING "Sanitizers to build with, as -fsanitize= takes them; none when empty")
mark_as_advanced(DECOSCOPE_SANITIZERS)
add_library(decoscope_sanitizers INTERFACE)
if(DECOSCOPE_SANITIZERS)
  target_compile_options(decoscope_sanitizers INTERFACE -fsanitize=${DECOSCOPE_SANITIZERS} -fno-sanitize-recover=all
                                                        -fno-omit-frame-pointer)
  if(DECOSCOPE_SANITIZERS MATCHES "undefined")
    # It asks a pipe whether memory can be read, and takes the answer of a process without descriptors for a fault.
    target_compile_options(decoscope_sanitizers INTERFACE -fno-sanitize=vptr)
  endif()
  target_link_options(decoscope_sanitizers INTERFACE -fsanitize=${DECOSCOPE_SANITIZERS})
endif()

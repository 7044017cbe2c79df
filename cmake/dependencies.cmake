# Third-party parts; docs/dependencies.md has the purpose of each.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
endif()
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)

find_package(dnnl REQUIRED)

# scripts/setup.sh unpacks source archives in $cache_home/decoscope.
if(DEFINED ENV{XDG_CACHE_HOME})
  set(cache_home "$ENV{XDG_CACHE_HOME}")
else()
  set(cache_home "$ENV{HOME}/.cache")
endif()
include(cmake/jinja.cmake)

if(WITH_UI)
  set(OpenGL_GL_PREFERENCE LEGACY)  # libGL.so.1, which every desktop has; libOpenGL.so.0 is a package of its own
  find_package(OpenGL REQUIRED)
  find_package(glfw3 REQUIRED)
  find_package(GIF REQUIRED)
  # The unpacked source archive of imgui-bundle: Dear ImGui, ImPlot, the test engine, fonts. scripts/setup.sh puts it
  # where the default points; packagers point elsewhere.
  set(DECOSCOPE_IMGUI_DIR "$ENV{DECOSCOPE_IMGUI_DIR}" CACHE PATH "Root of the unpacked imgui-bundle source archive")
  if(NOT DECOSCOPE_IMGUI_DIR)
    set(DECOSCOPE_IMGUI_DIR "${cache_home}/decoscope/imgui_bundle-1.92.801" CACHE PATH "" FORCE)
  endif()
  include(cmake/imgui.cmake)
endif()

# Dear ImGui in its own static targets, warnings off. `imgui` is what the program links; `imgui_test_engine` is the same
# library with the test engine's hooks, for tests alone. Code that only names ImGui's types links `imgui_headers`, so one
# compiled panel serves both.
set(imgui_src ${DECOSCOPE_IMGUI_DIR}/external/imgui/imgui)
set(implot_src ${DECOSCOPE_IMGUI_DIR}/external/implot/implot)
set(imgui_te_root ${DECOSCOPE_IMGUI_DIR}/external/imgui_test_engine/imgui_test_engine)
set(imgui_te_src ${imgui_te_root}/imgui_test_engine)
if(NOT EXISTS ${imgui_src}/imgui.h)
  message(FATAL_ERROR "DECOSCOPE_IMGUI_DIR: ${DECOSCOPE_IMGUI_DIR}: found no external/imgui/imgui/imgui.h; "
                      "run scripts/setup.sh, or configure with -DWITH_UI=OFF")
endif()

add_library(imgui_headers INTERFACE)
target_include_directories(imgui_headers SYSTEM INTERFACE ${imgui_src} ${imgui_src}/backends ${implot_src})
# 32-bit indices: a long text or a dense time line has more than 65,536 corners in one window.
# 32-bit characters: with 16 an emoji typed or pasted into the prompt becomes U+FFFD, or nothing.
target_compile_definitions(imgui_headers INTERFACE "ImDrawIdx=unsigned int" IMGUI_USE_WCHAR32 IMGUI_DISABLE_OBSOLETE_FUNCTIONS
                                                   IMPLOT_DISABLE_OBSOLETE_FUNCTIONS)
# The handler of assertions. All files that include imgui.h get the same one, so its inline functions have one definition.
target_include_directories(imgui_headers INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(imgui_headers INTERFACE "IMGUI_USER_CONFIG=\"ui/widgets/imgui_config.h\"")

set(imgui_sources imgui.cpp imgui_draw.cpp imgui_tables.cpp imgui_widgets.cpp backends/imgui_impl_glfw.cpp
                  backends/imgui_impl_opengl3.cpp)
if(EXISTS ${imgui_src}/imgui_stacklayout.cpp)
  list(APPEND imgui_sources imgui_stacklayout.cpp)
endif()
list(TRANSFORM imgui_sources PREPEND ${imgui_src}/)

add_library(imgui STATIC ${imgui_sources})
set_target_properties(imgui PROPERTIES UNITY_BUILD OFF)
target_link_libraries(imgui PUBLIC imgui_headers glfw OpenGL::GL PRIVATE ${CMAKE_DL_LIBS} decoscope_sanitizers)
target_compile_options(imgui PRIVATE -w $<$<CONFIG:RelWithDebInfo>:-O1>)

# ImPlot calls Dear ImGui and does not depend on which of the two is linked, so its objects become part of `ui_panels`.
add_library(implot OBJECT ${implot_src}/implot.cpp ${implot_src}/implot_items.cpp)
set_target_properties(implot PROPERTIES UNITY_BUILD OFF)
if(DECOSCOPE_SANITIZERS MATCHES "undefined")
  # With these checks GCC compiles ImPlot's templates for more than ten minutes. Options of a file come after those of the target.
  set_source_files_properties(${implot_src}/implot.cpp ${implot_src}/implot_items.cpp PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
endif()
target_link_libraries(implot PUBLIC imgui_headers PRIVATE decoscope_sanitizers)
target_compile_options(implot PRIVATE -w $<$<CONFIG:RelWithDebInfo>:-O1>)

add_library(imgui_test_engine STATIC EXCLUDE_FROM_ALL ${imgui_sources})
set_target_properties(imgui_test_engine PROPERTIES UNITY_BUILD OFF)
foreach(part capture_tool te_context te_coroutine te_engine te_exporters te_perftool te_ui te_utils)
  target_sources(imgui_test_engine PRIVATE ${imgui_te_src}/imgui_${part}.cpp)
endforeach()
target_include_directories(imgui_test_engine SYSTEM PUBLIC ${imgui_te_root} ${imgui_te_src})
target_compile_definitions(imgui_test_engine PUBLIC IMGUI_ENABLE_TEST_ENGINE IMGUI_TEST_ENGINE_ENABLE_COROUTINE_STDTHREAD_IMPL=1
                                                    IMGUI_TEST_ENGINE_ENABLE_STD_FUNCTION=1)
target_link_libraries(imgui_test_engine PUBLIC imgui_headers glfw OpenGL::GL Threads::Threads
                                        PRIVATE ${CMAKE_DL_LIBS} decoscope_sanitizers)
target_compile_options(imgui_test_engine PRIVATE -w -O1)

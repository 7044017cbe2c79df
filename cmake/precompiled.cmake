# precompiled(<target> <further headers>): headers that most of the target's files include, parsed once.
# Every file still names what it uses: the build without them (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON) compiles too.
function(precompiled target)
  # Lets ccache keep what GCC compiles with a precompiled header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <deque> <filesystem>
    <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <unordered_map> <variant> <vector> <fmt/format.h> ${ARGN})
endfunction()

# precompiled_as(<target> <other>): uses the precompiled headers of another target with the same compile options.
function(precompiled_as target other)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  target_precompile_headers(${target} REUSE_FROM ${other})
endfunction()

# joined(<target>): preset release compiles 8 files of the target at a time (CMake's unity build), because parsing and instantiating CLI11
# or JSON takes most of each file's time. Names in the files' unnamed namespaces must differ. The other presets compile every file alone.
option(DECOSCOPE_JOIN_FILES "Compile several files of some targets at a time" OFF)
function(joined target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${DECOSCOPE_JOIN_FILES} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

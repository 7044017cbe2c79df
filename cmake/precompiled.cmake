# precompiled(<target> <further headers>): headers that most of the target's files include, parsed once.
# Every file still names what it uses: the build without them (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON) compiles too.
function(precompiled target)
  # Lets ccache keep what GCC compiles with a precompiled header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <filesystem> <functional> <map> <memory> <optional> <span> <string> <variant>
    <vector> <fmt/format.h> ${ARGN})
endfunction()

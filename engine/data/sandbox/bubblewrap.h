// The bubblewrap command around a Python interpreter. Private to engine/data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/sandbox/python_paths.h"

namespace engine {

/// The folder that programs may write into, inside.
inline constexpr const char* kScratch = "/scratch";

struct BubblewrapOptions {
  std::string bwrap;  ///< its path
  bool as_root = false;
  bool has_seccomp = false;  ///< the filter is descriptor 3
  bool has_scratch = false;
  std::int64_t scratch_bytes = 0;
};

/// @return  bwrap and its arguments, up to the "--" before the command
std::vector<std::string> bubblewrap_command(const PythonPaths& python,
                                            const BubblewrapOptions& options);

/// Whether it can limit the size of a folder in memory (since 0.7).
bool bubblewrap_limits_size(const std::string& bwrap);

}  // namespace engine

// The bubblewrap command that isolates a Python interpreter. Only for engine/data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/sandbox/python_paths.h"

namespace engine {

/// The folder inside the sandbox that programs can write to.
inline constexpr const char* kScratch = "/scratch";

/// The choices that depend on the machine.
struct BubblewrapOptions {
  std::string bwrap;         ///< path of the program
  bool as_root = false;      ///< this process runs as root
  bool has_seccomp = false;  ///< descriptor 3 is the seccomp filter
  bool has_scratch = false;  ///< programs get the folder kScratch
  std::int64_t scratch_bytes = 0;
};

/// The command line of bwrap, up to the "--" before the isolated command.
std::vector<std::string> bubblewrap_command(const PythonPaths& python,
                                            const BubblewrapOptions& options);

/// True if this bwrap can limit the size of a folder in memory (version 0.7 or later).
bool bubblewrap_limits_size(const std::string& bwrap);

}  // namespace engine

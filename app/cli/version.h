// The tools and libraries that built this program, and the processors it runs on.
#pragma once

#include <string>

namespace app {

/// Returns the answer to --version: "decoscope 0.1.0", then a line each for revision, compiler, CUDA, emulation and window.
std::string version_text();

/// Returns why the program does not start on this processor; empty if it does.
/// @param missing  instruction sets that the processor lacks, "AVX2, FMA"; empty: none
/// @param cpu_ops  the environment's CPU_OPS; null: unset
std::string why_processor_is_refused(const std::string& missing, const char* cpu_ops);

}  // namespace app

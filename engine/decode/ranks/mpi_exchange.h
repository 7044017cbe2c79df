// An exchange between the processes that mpirun started. MPI is in a library of its own beside the program
// (mpi_library.cpp), which is opened on first use, so the program needs no MPI otherwise.
#pragma once

#include "engine/decode/ranks/exchange.h"

namespace engine {

/// The exchange of this process; the first call initialises MPI, and exit() ends it. One thread makes all calls. A program that
/// mpirun did not start is rank 0 of 1.
/// @throws Error(Usage)  if the library is missing or cannot be opened
Exchange& mpi_exchange();

/// Ends the processes of all ranks, this one with this exit code. For failures in the middle of a step, when the others wait.
[[noreturn]] void abort_mpi(int code);

}  // namespace engine

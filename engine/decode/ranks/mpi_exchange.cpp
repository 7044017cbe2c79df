#include "engine/decode/ranks/mpi_exchange.h"

#include <dlfcn.h>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "engine/base/types.h"

namespace engine {
namespace {

struct Library {
  Exchange* (*exchange)();
  void (*abort)(int code);
};

template <class Function>
Function* symbol(void* library, const char* name) {
  // POSIX guarantees that a function's address fits into void*.
  return reinterpret_cast<Function*>(dlsym(library, name));
}

Library open_library() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = program.parent_path() / "libdecoscope_mpi.so";
  // Open MPI's own plug-ins look for its symbols among the global ones.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    throw Error(ErrorCode::Usage,
                fmt::format("ranks=mpi: {}; build the program where Open MPI is installed "
                            "(libopenmpi-dev), or use ranks=N for devices of one process",
                            dlerror()));
  const Library found{symbol<Exchange*()>(library, "decoscope_mpi_exchange"),
                      symbol<void(int)>(library, "decoscope_mpi_abort")};
  ensure(found.exchange && found.abort, "libdecoscope_mpi.so belongs to another version");
  return found;
}

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

}  // namespace

Exchange& mpi_exchange() {
  return *library().exchange();
}

void abort_mpi(int code) {
  library().abort(code);
  std::exit(code);
}

}  // namespace engine

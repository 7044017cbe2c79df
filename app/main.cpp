// Turns every failure into one line on stderr and an exit code (0 ok, 2 usage, 3 bad
// input, 4 resources, 5 device, 6 cancelled, 70 our bug).
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/cli/version.h"
#include "engine/run/failure.h"
#include "kernels/cuda/cuda.h"
#include "kernels/error.h"
#include "kernels/processors.h"

namespace {

int code_of(int argc, char** argv) {
  try {
    return app::run_command_line(argc, argv);
  } catch (const app::OutputClosed&) {
    return static_cast<int>(kernels::ErrorCode::Resources);
  } catch (const std::bad_alloc&) {
    app::print_error("out of memory");
    return static_cast<int>(kernels::ErrorCode::Resources);
  } catch (...) {
    const engine::Failure failure = engine::current_failure();
    app::print_error(failure.message);
    return failure.code;
  }
}

/// Reports a cancellation by the CPU time limit as an error of resources (code 4).
int code_at_cpu_limit(int code) {
  const bool by_limit =
      code == static_cast<int>(kernels::ErrorCode::Cancelled) && app::cpu_time_is_over();
  if (!by_limit) return code;
  app::print_error("stopped by the limit of CPU time (ulimit -t); raise the limit");
  return static_cast<int>(kernels::ErrorCode::Resources);
}

}  // namespace

int main(int argc, char** argv) {
  app::fill_closed_streams();
  if (const std::string why =
          app::why_processor_is_refused(kernels::cpu::missing_features(), std::getenv("CPU_OPS"));
      !why.empty()) {
    app::print_error(why);
    return static_cast<int>(kernels::ErrorCode::Device);
  }
  app::install_signal_handlers();
  const int code = code_at_cpu_limit(code_of(argc, argv));
  for (const std::string& note : kernels::take_notes_of_closed()) app::print_error("note: " + note);
  return code;
}

#include "engine/run/failure.h"

#include <new>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include "engine/event/clock.h"

namespace engine {

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {static_cast<int>(error.code()), error.what()};
  } catch (const std::bad_alloc&) {
    return {static_cast<int>(ErrorCode::Resources), "out of memory; the runs so far are kept"};
  } catch (const std::system_error& error) {
    // std::thread throws this if the system has no thread left, and locks throw it if they lack
    // memory.
    const bool is_short = error.code() == std::errc::resource_unavailable_try_again ||
                          error.code() == std::errc::not_enough_memory;
    if (!is_short) return {70, fmt::format("internal error: {}; please report it", error.what())};
    return {static_cast<int>(ErrorCode::Resources),
            fmt::format("a thread cannot be started ({}): there is no memory for it, or there are "
                        "too many; close other programs, or raise the limit (ulimit -v, ulimit -u)",
                        error.code().message())};
  } catch (const std::exception& error) {
    return {70, fmt::format("internal error: {}; please report it", error.what())};
  } catch (...) {
    return {70, "internal error: an exception of unknown type; please report it"};
  }
}

RunFailed failed_event(const Failure& failure, RunId run) {
  return {now_ns(), run, failure.code, failure.message};
}

}  // namespace engine

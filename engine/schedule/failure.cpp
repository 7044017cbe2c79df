#include "engine/schedule/failure.h"

#include <new>
#include <stdexcept>

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
  } catch (const std::exception& error) {
    return {70, fmt::format("internal error: {}; please report it", error.what())};
  } catch (...) {
    return {70, "internal error: of no known kind; please report it"};
  }
}

RunFailed failed_event(const Failure& failure, RunId run) {
  return {now_ns(), run, failure.code, failure.message};
}

}  // namespace engine

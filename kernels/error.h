// How this project says that something went wrong: the one place where errors are typed.
//   ContractError  a bug of ours, found at a public entrance (ensure)
//   Error          the world refused: a file, memory, a device, a person's option
// Both end in two places only, the engine thread's loop and main().
#pragma once

#include <stdexcept>
#include <string>

namespace kernels {

/// What kind of thing refused. The values are the process's exit codes.
enum class ErrorCode {
  Usage = 2,      ///< an option or a combination of options that cannot be
  BadInput = 3,   ///< a file or text that is not what it should be
  Resources = 4,  ///< memory, disk, descriptors
  Device = 5,     ///< a device that is absent or failed
  Cancelled = 6,  ///< the person, or a time limit, ended it
};

/// The world refused. The message names the thing, what was found, what was needed, what to try.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

/// A bug of ours: a public function was called against its contract. Exit code 70.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_contract_error(const char* why);

/// Checks a contract at a public entrance, in release builds too.
/// @throws ContractError  saying `why` if `condition` does not hold
inline void ensure(bool condition, const char* why) {
  if (!condition) throw_contract_error(why);
}

}  // namespace kernels

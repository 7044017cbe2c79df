// The two kinds of exceptions of this project. Only the engine thread's loop and main() handle
// them.
//   ContractError  a bug in this program, found at a public function (ensure)
//   Error          a failure from outside: a file, memory, a device, an option
#pragma once

#include <stdexcept>
#include <string>

namespace kernels {

/// The cause of an Error. The values are the exit codes of the program.
enum class ErrorCode {
  Usage = 2,      ///< an impossible option or combination of options
  BadInput = 3,   ///< a file or text with wrong content
  Resources = 4,  ///< memory, disk or file descriptors
  Device = 5,     ///< a device that is absent or has failed
  Cancelled = 6,  ///< ended by the user or by a time limit
};

/// A failure whose cause lies outside the program. The message names the file, device or option,
/// the state that was found, the state that is needed, and a remedy.
class Error : public std::runtime_error {
 public:
  /// @param message  one line
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// The cause.
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

/// A bug in this program: a caller broke the contract of a public function. Exit code 70.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws ContractError(why).
[[noreturn]] void throw_contract_error(const char* why);

/// Checks the contract of a public function, also in release builds.
/// @throws ContractError  with the message `why` if `condition` is false
inline void ensure(bool condition, const char* why) {
  if (!condition) throw_contract_error(why);
}

}  // namespace kernels

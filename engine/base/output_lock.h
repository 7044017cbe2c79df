// A lock that keeps two processes from writing one output at once. It goes with the process that
// holds it, however that ends.
#pragma once

#include <string>

namespace engine {

class OutputLock {
 public:
  OutputLock() = default;  // holds nothing
  /// Locks a folder, or a file that is only appended to, which is made if it is not there.
  /// @throws Error(Usage)      another process holds the lock
  /// @throws Error(Resources)  the file cannot be made
  static OutputLock on(const std::string& path);
  /// Locks a file that is replaced as a whole, by "PATH.lock" beside it, which is removed at the end.
  /// @throws Error  as on()
  static OutputLock beside(const std::string& path);
  ~OutputLock();
  OutputLock(OutputLock&& other) noexcept;
  OutputLock& operator=(OutputLock&& other) noexcept;

 private:
  OutputLock(int fd, std::string to_remove);

  int fd_ = -1;
  std::string to_remove_;  // empty: nothing
};

}  // namespace engine

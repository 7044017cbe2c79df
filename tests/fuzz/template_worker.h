// A process that renders chat templates for the fuzzer, one after another: a process per input, as the program starts,
// would take most of the time, and its coverage would be lost.
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <cstdint>

namespace engine::test {

/// Inputs may end the process, exceed a limit of time or memory, or nest too deeply: the program contains these faults,
/// so they are no findings. A sanitizer's report is one.
class TemplateWorker {
 public:
  static constexpr std::size_t kMaxBytes = 4096;

  TemplateWorker();
  ~TemplateWorker();
  TemplateWorker(const TemplateWorker&) = delete;
  TemplateWorker& operator=(const TemplateWorker&) = delete;

  /// Renders a template of at most kMaxBytes and adds the coverage of this to that of the calling process. Aborts if a
  /// sanitizer reports a fault.
  void render(const std::uint8_t* data, std::size_t size);

 private:
  struct Shared;

  void start();
  void stop();
  bool has_answered() const;
  [[noreturn]] void serve(int from_parent) const;

  Shared* shared_ = nullptr;
  std::size_t shared_bytes_ = 0;
  pid_t child_ = -1;
  int to_child_ = -1;
  int n_rendered_ = 0;
};

}  // namespace engine::test

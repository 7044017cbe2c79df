// Entry point of libFuzzer for the target FUZZ_TARGET (targets.h). An input that takes more than 10 s of processor time
// is a finding. libFuzzer's own limit is of elapsed time, which other programs on the machine change.
#include <sys/time.h>
#include <csignal>
#include <cstdlib>

#include "tests/fuzz/targets.h"
#include "tests/fuzz/template_worker.h"

namespace engine::test {
namespace {

[[maybe_unused]] void fuzz_template_in_worker(const std::uint8_t* data, std::size_t size) {
  static TemplateWorker worker;
  if (size <= TemplateWorker::kMaxBytes) worker.render(data, size);
}

void limit_processor_time() {
  constexpr itimerval kLimit = {.it_interval = {}, .it_value = {.tv_sec = 10, .tv_usec = 0}};
  static const auto handler = std::signal(SIGPROF, [](int) { std::abort(); });
  if (handler == SIG_ERR || setitimer(ITIMER_PROF, &kLimit, nullptr) != 0) std::abort();
}

}  // namespace
}  // namespace engine::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  engine::test::limit_processor_time();
  engine::test::FUZZ_TARGET(data, size);
  return 0;
}

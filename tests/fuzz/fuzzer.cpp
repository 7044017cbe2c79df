// Entry point of libFuzzer for the target FUZZ_TARGET (targets.h).
#include "tests/fuzz/targets.h"
#include "tests/fuzz/template_worker.h"

namespace engine::test {
namespace {

[[maybe_unused]] void fuzz_template_in_worker(const std::uint8_t* data, std::size_t size) {
  static TemplateWorker worker;
  if (size <= TemplateWorker::kMaxBytes) worker.render(data, size);
}

}  // namespace
}  // namespace engine::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  engine::test::FUZZ_TARGET(data, size);
  return 0;
}

// Entry point of libFuzzer for the target FUZZ_TARGET (targets.h).
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  engine::test::FUZZ_TARGET(data, size);
  return 0;
}

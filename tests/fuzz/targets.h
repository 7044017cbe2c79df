// The readers of untrusted files that are fuzzed. Each takes the bytes of one file. A refusal (kernels::Error) is a
// correct result; every other exception, a crash, a sanitizer's report or a hang is a finding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace engine::test {

/// Opens a GGUF file, its configuration and tokenizer, and dequantises its tensors.
void fuzz_gguf(const std::uint8_t* data, std::size_t size);
/// Opens a tokenizer.json and tokenises and decodes a text.
void fuzz_tokenizer_json(const std::uint8_t* data, std::size_t size);
/// Opens a file in tiktoken's form or a tekken.json, and tokenises and decodes a text.
void fuzz_tiktoken(const std::uint8_t* data, std::size_t size);
/// Renders a chat template in its child process, as the program does: a fault of the Jinja engine ends the child alone.
void fuzz_template(const std::uint8_t* data, std::size_t size);

}  // namespace engine::test

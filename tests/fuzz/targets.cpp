#include "tests/fuzz/targets.h"

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/chat_template.h"
#include "engine/checkpoint/gguf/gguf_file.h"
#include "engine/checkpoint/model_files.h"
#include "engine/tokenizer/tokenizer_path.h"
#include "kernels/error.h"
#include "tests/fuzz/memory_file.h"

namespace engine::test {
namespace {

constexpr std::string_view kText =
    "Hello  world, 12345 \xC3\xA4\xE6\xBC\xA2\xF0\x9F\x98\x80 it's\n\n  <s> end";

void use(const Tokenizer& tokenizer) {
  const std::vector<TokenId> ids = tokenizer.encode(kText, {.symbols = true});
  static_cast<void>(tokenizer.decode(ids));
}

void open_tokenizer_file(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  try {
    std::vector<std::string> notices;
    use(*open_tokenizer_at(file.path(), {}, notices));
  } catch (const kernels::Error&) {
    return;
  }
}

void dequantise_all(const TensorSource& tensors) {
  constexpr std::int64_t kMost = 1 << 16;
  for (const std::string& name : tensors.names()) {
    try {
      const Tensor tensor = tensors.read(name);
      if (tensor.n_elements() <= kMost) static_cast<void>(f32_of(tensor));
    } catch (const kernels::Error&) {
      continue;
    }
  }
}

}  // namespace

void fuzz_gguf(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  try {
    std::vector<std::string> notices;
    use(*open_tokenizer_at(file.path(), {}, notices));
  } catch (const kernels::Error&) {
  }
  try {
    const ModelFiles files = open_model(file.path(), {.needs_tokenizer = false});
    dequantise_all(*files.tensors);
  } catch (const kernels::Error&) {
  }
}

void fuzz_tokenizer_json(const std::uint8_t* data, std::size_t size) {
  open_tokenizer_file(data, size);
}

void fuzz_tiktoken(const std::uint8_t* data, std::size_t size) {
  open_tokenizer_file(data, size);
}

void fuzz_template(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 4096;
  if (size > kMost) return;
  const ChatTemplate given{.text = std::string(reinterpret_cast<const char*>(data), size),
                           .place = "fuzz"};
  const std::vector<ChatMessage> messages = {
      {"system", "Be brief."}, {"user", "Hi <s>"}, {"assistant", "Hello."}, {"user", "2 + 2?"}};
  try {
    static_cast<void>(render_chat(given, messages, {.bos = "<s>", .eos = "</s>"},
                                  {.time = std::chrono::milliseconds(2000),
                                   .memory_bytes = 256 << 20,
                                   .output_bytes = 1 << 20}));
  } catch (const kernels::Error&) {
    return;
  }
}

}  // namespace engine::test

#include "tests/fuzz/targets.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/chat_template.h"
#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/gguf/gguf_file.h"
#include "engine/checkpoint/model_files.h"
#include "engine/tokenizer/gguf_tokenizer.h"
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
  const std::string& path = file_in_memory(data, size);
  try {
    std::vector<std::string> notices;
    use(*open_tokenizer_at(path, {}, notices));
  } catch (const kernels::Error&) {
    return;
  }
}

void read_all(const TensorSource& tensors) {
  for (const std::string& name : tensors.names()) {
    try {
      static_cast<void>(f32_of(tensors.read(name)));
      static_cast<void>(tensors.quantised(name));
    } catch (const kernels::Error&) {
      continue;
    }
  }
}

// Decodes every tensor, also those that no model has.
void decode_all(const GgufFile& file) {
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.type->readable) continue;
    const auto type = static_cast<GgmlType>(tensor.type->number);
    std::vector<float> values(static_cast<std::size_t>(tensor.n_elements()));
    dequantise(type, tensor.bytes, values.data());
    if (is_quantised(type)) static_cast<void>(unpack(type, tensor.bytes, tensor.shape));
  }
}

}  // namespace

void fuzz_gguf(const std::uint8_t* data, std::size_t size) {
  const std::string& path = file_in_memory(data, size);
  std::shared_ptr<const GgufFile> file;
  try {
    file = GgufFile::open(path);
    decode_all(*file);
  } catch (const kernels::Error&) {
    return;  // the readers below open the file in the same way
  }
  try {
    std::vector<std::string> notices;
    use(*open_gguf_tokenizer(*file, {}, notices));
  } catch (const kernels::Error&) {
  }
  try {
    read_all(*open_model(path, {.needs_tokenizer = false}).tensors);
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

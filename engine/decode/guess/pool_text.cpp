#include "engine/decode/guess/pool_text.h"

#include <system_error>

#include "engine/base/input_file.h"
#include "engine/base/types.h"
#include "engine/model/model.h"

namespace engine {
namespace {

/// Usually some 16 million tokens, whose index takes 2.5 GB.
constexpr std::uint64_t kMaxPoolBytes = 64'000'000;

}  // namespace

std::shared_ptr<const PoolFile> read_pool_text(const std::string& path, const Model& model) {
  if (!model.tokenizer())
    throw Error(ErrorCode::Usage,
                "--pool " + path + ": " + model.name() + " has no tokenizer, so it reads no text");
  const std::string text = read_text_input(path, Pipes::Read, kMaxPoolBytes);
  return std::make_shared<PoolFile>(input_name(path), model.tokenizer()->encode(text));
}

std::shared_ptr<const PoolFile> PoolTexts::of(const std::string& path,
                                              const Model& model,
                                              std::uint32_t id) {
  if (path.empty()) {
    read_.erase(id);
    return nullptr;
  }
  std::error_code ignored;
  const auto time = std::filesystem::last_write_time(path, ignored);
  Read& known = read_[id];
  if (known.path != path || known.time != time) known = {path, time, read_pool_text(path, model)};
  return known.file;
}

}  // namespace engine

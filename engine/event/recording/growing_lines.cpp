#include "engine/event/recording/growing_lines.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "engine/base/byte_source.h"
#include "engine/base/types.h"

namespace engine {
namespace {

// Number of bytes before the current offset that are compared to recognise the same file.
constexpr std::size_t kBefore = 256;

std::string bytes_at(ByteSource& file, std::uint64_t offset, std::size_t n) {
  std::string bytes(n, '\0');
  std::size_t filled = 0;
  while (filled < n) {
    const std::size_t more = file.read_at(offset + filled, std::span(bytes).subspan(filled));
    if (more == 0) break;  // another process truncated it
    filled += more;
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

GrowingLines::State GrowingLines::state() const {
  std::error_code none;
  State now;
  now.changed = std::filesystem::last_write_time(path_, none);
  if (none) return {};
  now.size = std::filesystem::file_size(path_, none);
  return none ? State{} : now;
}

bool GrowingLines::may_have_changed() const {
  return has_more_ || state() != seen_;
}

void GrowingLines::forget() {
  offset_ = 0;
  before_.clear();
  begun_.clear();
  n_lines_ = 0;
}

GrowingLines::Update GrowingLines::read(std::size_t max_bytes) {
  Update update;
  const State now = state();
  if (!has_more_ && now == seen_) return update;
  seen_ = now;
  has_more_ = false;
  if (std::error_code none; !std::filesystem::exists(path_, none)) {
    update.restarted = offset_ > 0;
    forget();
    return update;
  }
  const auto file = open_file(path_);
  const bool same = file->size() >= offset_ &&
                    bytes_at(*file, offset_ - before_.size(), before_.size()) == before_;
  if (!same) {
    update.restarted = true;
    forget();
  }
  const auto n_new = static_cast<std::size_t>(
      std::min<std::uint64_t>(file->size() - offset_, std::max<std::size_t>(1, max_bytes)));
  const std::string bytes = bytes_at(*file, offset_, n_new);
  offset_ += bytes.size();
  before_ += bytes;
  before_.erase(0, before_.size() - std::min(before_.size(), kBefore));
  update.more = has_more_ = offset_ < file->size() && !bytes.empty();
  std::size_t begin = 0;
  for (std::size_t end; (end = bytes.find('\n', begin)) != std::string::npos; begin = end + 1) {
    update.lines.push_back(begun_ + bytes.substr(begin, end - begin));
    begun_.clear();
    ++n_lines_;
  }
  begun_ += bytes.substr(begin);
  if (begun_.size() > kMaxLineBytes)
    throw Error(ErrorCode::BadInput,
                fmt::format("{}:{}: found a line of more than {} MiB, expected a record a line",
                            path_, n_lines_ + 1, kMaxLineBytes >> 20));
  return update;
}

}  // namespace engine

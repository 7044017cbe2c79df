#include "engine/event/recording/growing_lines.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "engine/base/byte_source.h"
#include "engine/base/types.h"

namespace engine {
namespace {

// So many bytes before the place where reading goes on tell whether it is still the same file.
constexpr std::size_t kBefore = 256;

std::string bytes_at(ByteSource& file, std::uint64_t offset, std::size_t n) {
  std::string bytes(n, '\0');
  std::size_t filled = 0;
  while (filled < n) {
    const std::size_t more = file.read_at(offset + filled, std::span(bytes).subspan(filled));
    if (more == 0) break;  // it was cut meanwhile
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

bool GrowingLines::may_have_news() const {
  return behind_ || state() != seen_;
}

void GrowingLines::forget() {
  offset_ = 0;
  before_.clear();
  begun_.clear();
  n_lines_ = 0;
}

GrowingLines::News GrowingLines::look(std::size_t max_bytes) {
  News news;
  const State now = state();
  if (!behind_ && now == seen_) return news;
  seen_ = now;
  behind_ = false;
  if (std::error_code none; !std::filesystem::exists(path_, none)) {
    news.anew = offset_ > 0;
    forget();
    return news;
  }
  const auto file = open_file(path_);
  const bool same = file->size() >= offset_ &&
                    bytes_at(*file, offset_ - before_.size(), before_.size()) == before_;
  if (!same) {
    news.anew = true;
    forget();
  }
  const auto left = static_cast<std::size_t>(
      std::min<std::uint64_t>(file->size() - offset_, std::max<std::size_t>(1, max_bytes)));
  const std::string bytes = bytes_at(*file, offset_, left);
  offset_ += bytes.size();
  before_ += bytes;
  before_.erase(0, before_.size() - std::min(before_.size(), kBefore));
  news.more = behind_ = offset_ < file->size() && !bytes.empty();
  std::size_t begin = 0;
  for (std::size_t end; (end = bytes.find('\n', begin)) != std::string::npos; begin = end + 1) {
    news.lines.push_back(begun_ + bytes.substr(begin, end - begin));
    begun_.clear();
    ++n_lines_;
  }
  begun_ += bytes.substr(begin);
  if (begun_.size() > kMaxLineBytes)
    throw Error(ErrorCode::BadInput,
                fmt::format("{}:{}: found a line of more than {} MiB, expected a record a line",
                            path_, n_lines_ + 1, kMaxLineBytes >> 20));
  return news;
}

}  // namespace engine

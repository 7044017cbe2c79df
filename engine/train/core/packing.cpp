#include "engine/train/core/packing.h"

#include <algorithm>
#include <cstring>

namespace engine {
namespace {

template <typename T>
void put(std::string& bytes, const std::vector<T>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  bytes.append(reinterpret_cast<const char*>(&n), sizeof n);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

struct Reader {
  const std::string& bytes;
  const std::string& where;
  std::size_t at = 0;

  template <typename T>
  std::vector<T> take(std::int64_t expected) {
    std::int64_t n = 0;
    read(&n, sizeof n);
    if (n < 0 || (expected >= 0 && n != expected) ||
        static_cast<std::size_t>(n) > (bytes.size() - at) / sizeof(T)) {
      throw Error(ErrorCode::BadInput, where + ": packed rows do not fit the recipe's context");
    }
    std::vector<T> values(static_cast<std::size_t>(n));
    read(values.data(), values.size() * sizeof(T));
    return values;
  }

  void read(void* to, std::size_t size) {
    if (bytes.size() - at < size) {
      throw Error(ErrorCode::BadInput, where + ": packed rows end early; is the file whole?");
    }
    if (size) std::memcpy(to, bytes.data() + at, size);
    at += size;
  }
};

void put_row(std::string& bytes, const PackedRow& row) {
  put(bytes, row.token);
  put(bytes, row.target);
  put(bytes, row.weight);
  put(bytes, row.pos);
  put(bytes, row.length);
}

PackedRow take_row(Reader& reader, int context) {
  PackedRow row;
  row.token = reader.take<TokenId>(context);
  row.target = reader.take<TokenId>(context);
  row.weight = reader.take<float>(context);
  row.pos = reader.take<std::int32_t>(context);
  row.length = reader.take<std::int32_t>(-1);
  for (const std::int32_t n : row.length) row.n_used += n;
  if (row.n_used > context) {
    throw Error(ErrorCode::BadInput, reader.where + ": a packed row is longer than the context");
  }
  return row;
}

}  // namespace

PackedRow Packer::open_row() const {
  PackedRow row;
  const auto n = static_cast<std::size_t>(context_);
  row.token.assign(n, 0);
  row.target.assign(n, 0);
  row.weight.assign(n, 0);
  row.pos.assign(n, 0);
  return row;
}

float Packer::weight_of(const TokenText& text, int token) const {
  if (token < text.n_prompt) return weights_.prompt;
  return token >= text.answer_begin && token < text.answer_end ? weights_.answer : 1.0f;
}

void Packer::close(std::size_t index) {
  n_closed_++;
  n_tokens_ += open_[index].n_used;
  ready_.push_back(std::move(open_[index]));
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Packer::add(const TokenText& text) {
  const int full = static_cast<int>(text.tokens.size()) - 1;
  if (full < 1) return;
  const int n = std::min(full, context_);
  if (n < full) n_cut_++;

  constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t best = kNone, fullest = 0;
  for (std::size_t i = 0; i < open_.size(); i++) {
    if (open_[i].n_used > open_[fullest].n_used) fullest = i;
    if (open_[i].n_used + n > context_) continue;
    if (best == kNone || open_[i].n_used > open_[best].n_used) best = i;
  }
  if (best == kNone) {
    if (static_cast<int>(open_.size()) >= max_open_) close(fullest);
    open_.push_back(open_row());
    best = open_.size() - 1;
  }

  PackedRow& row = open_[best];
  for (int i = 0; i < n; i++) {
    const auto at = static_cast<std::size_t>(row.n_used + i), from = static_cast<std::size_t>(i);
    row.token[at] = text.tokens[from];
    row.target[at] = text.tokens[from + 1];
    row.weight[at] = weight_of(text, i + 1);
    row.pos[at] = i;
  }
  row.length.push_back(n);
  row.n_used += n;
  if (row.n_used == context_) close(best);
}

PackedRow Packer::take() {
  ensure(!ready_.empty(), "no packed row is ready");
  PackedRow row = std::move(ready_.front());
  ready_.pop_front();
  return row;
}

std::string Packer::save() const {
  std::string bytes;
  put(bytes, std::vector<std::int64_t>{n_cut_, n_closed_, n_tokens_,
                                       static_cast<std::int64_t>(open_.size()),
                                       static_cast<std::int64_t>(ready_.size())});
  for (const PackedRow& row : open_) put_row(bytes, row);
  for (const PackedRow& row : ready_) put_row(bytes, row);
  return bytes;
}

void Packer::load(const std::string& bytes, const std::string& where) {
  Reader reader{bytes, where};
  const auto counts = reader.take<std::int64_t>(5);
  n_cut_ = counts[0];
  n_closed_ = counts[1];
  n_tokens_ = counts[2];
  open_.clear();
  ready_.clear();
  for (std::int64_t i = 0; i < counts[3]; i++) open_.push_back(take_row(reader, context_));
  for (std::int64_t i = 0; i < counts[4]; i++) ready_.push_back(take_row(reader, context_));
}

std::vector<Segment> segments_of(const std::vector<PackedRow>& rows, int context) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < rows.size(); i++) {
    auto at = static_cast<std::int32_t>(i) * context;
    for (const std::int32_t n : rows[i].length) {
      segments.push_back({at, at + n});
      at += n;
    }
  }
  return segments;
}

}  // namespace engine

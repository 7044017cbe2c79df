#include "engine/train/core/text_queue.h"

#include <system_error>
#include <utility>

namespace engine {

TextQueue::~TextQueue() {
  if (coming_.valid()) coming_.wait();
}

std::vector<TokenText> TextQueue::make(std::int64_t first) const {
  std::vector<TokenText> texts(kAtOnce);
  workers_.run(kAtOnce, [&](int i) { texts[static_cast<std::size_t>(i)] = texts_(first + i); });
  return texts;
}

std::vector<TokenText> TextQueue::take() {
  if (coming_.valid()) coming_.get();
  std::vector<TokenText> texts;
  if (ready_.empty()) {
    texts = make(next);
  } else {
    texts = std::move(ready_.front());
    ready_.pop_front();
  }
  next += kAtOnce;
  n_taken_++;
  return texts;
}

void TextQueue::make_ahead() {
  if (coming_.valid()) return;
  const int n = std::exchange(n_taken_, 0);
  // The prefetching thread owns `ready_` and `next` until it ends.
  const auto make_more = [this, n] {
    for (int i = 0; i < n; i++)
      ready_.push_back(make(next + static_cast<std::int64_t>(ready_.size()) * kAtOnce));
  };
  try {
    coming_ = std::async(std::launch::async, make_more);
  } catch (const std::system_error&) {
    // The system has no thread left. The next take() generates the texts itself.
  }
}

}  // namespace engine

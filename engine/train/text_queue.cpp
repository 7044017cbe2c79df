#include "engine/train/text_queue.h"

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
  if (coming_.valid()) ready_ = coming_.get();
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
  coming_ = std::async(std::launch::async, [this, n, kept = std::move(ready_)]() mutable {
    for (int i = 0; i < n; i++)
      kept.push_back(make(next + static_cast<std::int64_t>(kept.size()) * kAtOnce));
    return std::move(kept);
  });
  ready_.clear();
}

}  // namespace engine

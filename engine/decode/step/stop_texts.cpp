#include "engine/decode/step/stop_texts.h"

#include <algorithm>
#include <utility>

namespace engine {
namespace {

/// [text.size()] Knuth-Morris-Pratt failure function: length of the longest proper prefix of
/// text[0..i] that is also its suffix.
std::vector<std::size_t> borders_of(const std::string& text) {
  std::vector<std::size_t> border(text.size(), 0);
  for (std::size_t i = 1, n = 0; i < text.size(); i++) {
    while (n > 0 && text[i] != text[n]) n = border[n - 1];
    n += text[i] == text[n];
    border[i] = n;
  }
  return border;
}

}  // namespace

struct StopScanner::Tables {
  std::vector<std::string> stops;
  std::vector<std::vector<std::size_t>> borders;  // of each
};

StopScanner::StopScanner(std::vector<std::string> stops) : matched_(stops.size(), 0) {
  Tables tables{std::move(stops), {}};
  for (const std::string& stop : tables.stops) {
    ensure(!stop.empty(), "a stop string must have at least one byte");
    tables.borders.push_back(borders_of(stop));
  }
  tables_ = std::make_shared<const Tables>(std::move(tables));
}

std::optional<StopFound> StopScanner::push(std::string_view text) {
  for (const char c : text) {
    n_read_++;
    std::optional<std::size_t> complete;
    for (std::size_t i = 0; i < matched_.size(); i++) {
      const std::string& stop = tables_->stops[i];
      const std::vector<std::size_t>& border = tables_->borders[i];
      std::size_t n = matched_[i];
      while (n > 0 && stop[n] != c) n = border[n - 1];
      n += stop[n] == c;
      if (n == stop.size()) {
        if (!complete || n > tables_->stops[*complete].size()) complete = i;
        n = border[n - 1];
      }
      matched_[i] = n;
    }
    if (complete) return StopFound{*complete, n_read_ - tables_->stops[*complete].size()};
  }
  return std::nullopt;
}

std::size_t StopScanner::held() const {
  return matched_.empty() ? 0 : std::ranges::max(matched_);
}

const std::vector<std::string>& StopScanner::stops() const {
  return tables_->stops;
}

std::string TextBeforeStop::push(std::string_view text) {
  if (stopped_) return "";
  const std::optional<StopFound> found = scanner_.push(text);
  held_ += text;
  if (found) {
    stopped_ = true;
    held_.resize(found->begin - n_shown_);
    return std::exchange(held_, {});
  }
  std::string shown = held_.substr(0, held_.size() - scanner_.held());
  held_.erase(0, shown.size());
  n_shown_ += shown.size();
  return shown;
}

std::string TextBeforeStop::finish() {
  return std::exchange(held_, {});
}

int StopReader::read(std::span<const TokenId> emitted) {
  for (std::size_t i = 0; i < emitted.size(); i++) {
    found_ = scanner_.push(stream_.push(emitted.subspan(i, 1)));
    if (found_) return static_cast<int>(i) + 1;
  }
  return 0;
}

const std::string& StopReader::stop() const {
  ensure(found_.has_value(), "no stop string was found");
  return scanner_.stops()[found_->which];
}

}  // namespace engine

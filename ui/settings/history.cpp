#include "ui/settings/history.h"

#include <utility>

namespace ui {
namespace {

std::optional<Arrangement> moved(std::optional<Arrangement>& now,
                                 std::vector<Arrangement>& from,
                                 std::vector<Arrangement>& to) {
  if (from.empty()) return std::nullopt;
  to.push_back(std::move(*now));
  now = std::move(from.back());
  from.pop_back();
  return now;
}

}  // namespace

std::string changed_words(const Arrangement& a, const Arrangement& b) {
  std::string words;
  const auto add = [&words](bool differs, const char* what) {
    if (differs) words += (words.empty() ? "" : " and ") + std::string(what);
  };
  add(a.settings != b.settings, "settings");
  add(a.notes != b.notes, "notes");
  add(a.layout != b.layout, "layout");
  return words;
}

void History::take(Arrangement now) {
  if (now_ == now) return;
  if (now_) {
    before_.push_back(std::move(*now_));
    if (before_.size() > kMost) before_.erase(before_.begin());
    after_.clear();
  }
  now_ = std::move(now);
}

void History::know_layout(const std::string& layout) {
  for (Arrangement& one : before_)
    if (one.layout.empty()) one.layout = layout;
  if (now_ && now_->layout.empty()) now_->layout = layout;
}

std::optional<Arrangement> History::undo() {
  return moved(now_, before_, after_);
}

std::optional<Arrangement> History::redo() {
  return moved(now_, after_, before_);
}

void History::forget() {
  now_.reset();
  before_.clear();
  after_.clear();
}

}  // namespace ui

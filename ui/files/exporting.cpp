#include "ui/files/exporting.h"

#include <chrono>
#include <utility>

namespace ui {

Exporting::Exporting(std::string path, Work work)
    : path_(std::move(path)),
      writer_(std::async(std::launch::async, [this, work = std::move(work)] {
        return work([this](double fraction) {
          fraction_ = fraction;
          return !given_up_;
        });
      })) {}

Exporting::~Exporting() {
  if (writer_.valid()) writer_.wait();
}

bool Exporting::ended() const {
  return writer_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace ui

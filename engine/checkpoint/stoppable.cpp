#include "engine/checkpoint/stoppable.h"

#include <utility>

#include "engine/base/refuse.h"

namespace engine {
namespace {

class StoppableTensors : public TensorSource {
 public:
  StoppableTensors(std::shared_ptr<const TensorSource> tensors,
                   std::function<bool()> stop,
                   std::string left)
      : tensors_(std::move(tensors)), stop_(std::move(stop)), left_(std::move(left)) {}

  bool has(const std::string& name) const override { return tensors_->has(name); }
  std::vector<std::string> names() const override { return tensors_->names(); }
  std::string path() const override { return tensors_->path(); }
  void check() const override { tensors_->check(); }

  Tensor read(const std::string& name) const override {
    if (stop_()) throw Error(ErrorCode::Cancelled, escaped(path()) + ": cancelled; " + left_);
    return tensors_->read(name);
  }

 private:
  std::shared_ptr<const TensorSource> tensors_;
  std::function<bool()> stop_;
  std::string left_;
};

}  // namespace

std::shared_ptr<const TensorSource> stoppable(std::shared_ptr<const TensorSource> tensors,
                                              std::function<bool()> stop,
                                              std::string left) {
  return std::make_shared<StoppableTensors>(std::move(tensors), std::move(stop), std::move(left));
}

}  // namespace engine

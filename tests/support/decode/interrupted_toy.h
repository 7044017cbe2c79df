// A toy model during whose run something else happens, such as the end of another run.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/models/toy_model.h"

namespace engine::test {

class InterruptedToy : public ToyModel {
 public:
  /// @param n_before  number of forwards after which `call` is called, once
  InterruptedToy(const ToyShape& shape, int n_before, std::function<void()> call)
      : ToyModel(shape), n_before_(n_before), call_(std::move(call)) {}
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override {
    if (n_forwards == n_before_) call_();
    return ToyModel::forward(items, wants);
  }

 private:
  int n_before_;
  std::function<void()> call_;
};

}  // namespace engine::test

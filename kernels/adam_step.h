// AdamW with decoupled weight decay: Loshchilov and Hutter 2019 (arXiv:1711.05101).
#pragma once

namespace kernels {

/// The constants of one update.
struct AdamStep {
  float lr = 0;  // learning rate
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float eps = 1e-8f;
  float weight_decay = 0;
  float gradient_scale = 1;  // factor of every gradient, for clipping
  float correction1 = 1;     // 1 / (1 - beta1^t)
  float correction2 = 1;     // 1 / (1 - beta2^t)
};

}  // namespace kernels

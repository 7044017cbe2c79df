#include "engine/checkpoint/gguf/gguf_implied.h"

#include <algorithm>
#include <cmath>

namespace engine {

std::vector<double> llama3_divisors(const RopeConfig& rope, std::int64_t head_dim) {
  std::vector<double> divisors;
  for (std::int64_t i = 0; i < head_dim / 2; i++) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    const double wavelength = 2 * M_PI * std::pow(rope.theta, exponent);
    const double smooth = (rope.original_max_seq_len / wavelength - rope.low_freq_factor) /
                          (rope.high_freq_factor - rope.low_freq_factor);
    const double share = std::clamp(smooth, 0.0, 1.0);
    divisors.push_back(1 / ((1 - share) / rope.factor + share));
  }
  return divisors;
}

double longrope_attention_factor(double extension, double original_length) {
  return extension > 1 ? std::sqrt(1 + std::log(extension) / std::log(original_length)) : 1;
}

double yarn_attention_factor(double factor, double scale) {
  return 0.1 * scale * std::log(factor) + 1;
}

std::int64_t gemma_query_scalar(const std::string& model_type,
                                std::int64_t n_layers,
                                std::int64_t dim,
                                std::int64_t n_heads,
                                std::int64_t head_dim) {
  const bool is_27b = n_layers == (model_type == "gemma2" ? 46 : 62);
  return is_27b ? dim / n_heads : head_dim;
}

std::int64_t usual_window_period(const std::string& model_type) {
  if (model_type == "gemma2") return 2;
  return model_type == "gemma3_text" ? 6 : 0;
}

}  // namespace engine

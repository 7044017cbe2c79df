// Commits of staged rows of several layers into pages, against loops over layers, rows and values.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {

struct CommitShape {
  int n_layers, n_kv_heads, head_dim;
  int n;  // committed rows; twice as many are staged
};

/// Four pages per layer with a gap after each; every byte is equal before ask().
class Commit {
 public:
  Commit(Device& device, const CommitShape& shape, DType dtype)
      : device_(device),
        shape_(shape),
        dtype_(dtype),
        width_(shape.n_kv_heads * shape.head_dim),
        page_bytes_(device.ops().page_bytes(dtype, shape.n_kv_heads, shape.head_dim)) {
    choose_rows();
    for (int of = 0; of < 2 * shape.n_layers; of++) {  // keys and values in turn
      pages_.emplace_back(device, std::size_t(kPages * (page_bytes_ + kGap)), 64);
      pages_.back().write(untouched().data());
      rows_.push_back(normal_values(2 * std::size_t(shape.n) * std::size_t(width_), of + 1));
      for (float& x : rows_.back()) x = stored(x, dtype);
      stage(rows_.back());
    }
    for (std::size_t l = 0; l < std::size_t(shape.n_layers); l++) {
      layers_.push_back({pages_[2 * l].data(), pages_[2 * l + 1].data(), page_bytes_ + kGap,
                         shape.n_kv_heads, shape.head_dim, dtype});
      staged_layers_.push_back({staged_[2 * l].data(), staged_[2 * l + 1].data()});
    }
  }

  /// Commits, then destroys the staged rows and the index lists at once.
  void ask() {
    device_.ops().kv_commit(device_, layers_.data(), staged_layers_.data(), shape_.n_layers,
                            src_.data(), page_.data(), slot_.data(), shape_.n);
    staged_.clear();
    staged_layers_.clear();
    src_told_ = std::exchange(src_, {});
  }

  /// Checks that every row arrived and that every other byte is unchanged; of many layers only some
  /// are read, to save time.
  void expect_done() const {
    std::vector<float> k(kPositions * std::size_t(width_)), v(k.size());
    const std::vector<int> pages = {0, 1, 2, 3};
    for (int l = 0; l < shape_.n_layers; l++) {
      if (l > 1 && l < shape_.n_layers - 2 && l != shape_.n_layers / 2) continue;
      device_.ops().kv_read(device_, layers_[std::size_t(l)], pages.data(), int(kPositions),
                            k.data(), v.data());
      expect_done(2 * l, k);
      expect_done(2 * l + 1, v);
    }
  }

 private:
  static constexpr int kPages = 4, kGap = 64;
  static constexpr std::size_t kPositions = std::size_t{kPages} * kPageSize;
  static constexpr unsigned char kUntouched = 0x3c;

  /// @param read  keys or values of a layer, every position of every page
  void expect_done(int of, const std::vector<float>& read) const {
    std::vector<float> expected(kPositions * std::size_t(width_), untouched_value());
    for (std::size_t i = 0; i < src_told_.size(); i++)
      for (int at = 0; at < width_; at++)
        expected[std::size_t((page_[i] * kPageSize + slot_[i]) * width_ + at)] =
            rows_[std::size_t(of)][std::size_t(src_told_[i] * width_ + at)];
    ASSERT_EQ(read, expected) << "layer " << of / 2 << (of % 2 ? " values" : " keys");
    std::vector<unsigned char> bytes(untouched());
    pages_[std::size_t(of)].read(bytes.data());
    for (int page = 0; page < kPages; page++)
      for (std::int64_t at = page_bytes_; at < page_bytes_ + kGap; at++)
        ASSERT_EQ(bytes[std::size_t(page * (page_bytes_ + kGap) + at)], kUntouched)
            << "after page " << page;
  }

  // Half of the rows go to consecutive slots across a page boundary, the other half anywhere.
  void choose_rows() {
    std::mt19937 random(unsigned(shape_.n));
    src_.resize(2 * std::size_t(shape_.n));
    std::iota(src_.begin(), src_.end(), 0);
    std::shuffle(src_.begin(), src_.end(), random);
    src_.resize(std::size_t(shape_.n));
    std::vector<int> places(kPositions);
    std::iota(places.begin(), places.end(), 0);
    std::rotate(places.begin(), places.begin() + kPageSize - shape_.n / 4, places.end());
    std::shuffle(places.begin() + shape_.n / 2, places.end(), random);
    for (std::size_t i = 0; i < src_.size(); i++) {
      page_.push_back(places[i] / kPageSize);
      slot_.push_back(places[i] % kPageSize);
    }
  }

  void stage(const std::vector<float>& rows) {
    staged_.emplace_back(device_, rows.size() * std::size_t(bytes_of(dtype_)), 64);
    if (dtype_ == DType::F32) return staged_.back().write(rows.data());
    std::vector<std::uint16_t> halves;
    for (const float x : rows)
      halves.push_back(dtype_ == DType::F16 ? f16_from_f32(x) : bf16_from_f32(x));
    staged_.back().write(halves.data());
  }

  std::vector<unsigned char> untouched() const {
    return std::vector<unsigned char>(std::size_t(kPages * (page_bytes_ + kGap)), kUntouched);
  }
  float untouched_value() const {
    const auto half = std::uint16_t(kUntouched << 8 | kUntouched);
    if (dtype_ == DType::F16) return f32_from_f16(half);
    if (dtype_ == DType::BF16) return f32_from_bf16(half);
    return std::bit_cast<float>(std::uint32_t{half} << 16 | half);
  }

  Device& device_;
  CommitShape shape_;
  DType dtype_;
  int width_;
  std::int64_t page_bytes_;
  std::vector<int> src_, page_, slot_, src_told_;
  std::vector<std::vector<float>> rows_;      // [2 n_layers]
  std::vector<DeviceMemory> pages_, staged_;  // [2 n_layers]
  std::vector<KvLayer> layers_;
  std::vector<StagedLayer> staged_layers_;
};

}  // namespace kernels::test

// Memory that ends at a protected page: a read or write past the end stops the test in any build,
// including masked loads, tiles and hand-written assembly, which sanitizers may not see.
#pragma once

#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <new>
#include <utility>

namespace kernels::test {

class Fenced {
 public:
  Fenced() = default;
  /// @param bytes  size, filled with zeros
  /// @param align  alignment of data(); if `bytes` is a multiple of it, the last byte is next to
  ///   the protected page
  explicit Fenced(std::size_t bytes, std::size_t align = 4) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable = (bytes + page - 1) / page * page;
    mapped_ = usable + page;
    void* all = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<char*>(all);
    if (mprotect(begin_ + usable, page, PROT_NONE) != 0) throw std::bad_alloc();
    data_ = begin_ + (usable - bytes) / align * align;
  }
  Fenced(Fenced&& other) noexcept { *this = std::move(other); }
  Fenced& operator=(Fenced&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(data_, other.data_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~Fenced() {
    if (begin_) munmap(begin_, mapped_);
  }
  char* data() const { return data_; }

 private:
  char* begin_ = nullptr;
  char* data_ = nullptr;
  std::size_t mapped_ = 0;
};

}  // namespace kernels::test

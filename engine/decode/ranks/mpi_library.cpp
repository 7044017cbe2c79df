// libdecoscope_mpi.so: the exchange of mpi_exchange.h. A message has a frame of 64 numbers, its length first; what does not fit
// follows in a second call, so most messages take one.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "engine/decode/ranks/exchange.h"

namespace engine {
namespace {

constexpr int kFrame = 64, kFirst = kFrame - 1;  // numbers of a message in its frame
using Frame = std::array<std::int32_t, kFrame>;

Frame frame_of(std::span<const std::int32_t> numbers) {
  Frame frame{static_cast<std::int32_t>(numbers.size())};
  const auto first = numbers.first(std::min<std::size_t>(numbers.size(), kFirst));
  std::ranges::copy(first, frame.begin() + 1);
  return frame;
}

/// The numbers of a frame; those after the first kFirst are 0.
Numbers numbers_of(std::span<const std::int32_t, kFrame> frame) {
  Numbers numbers(static_cast<std::size_t>(frame[0]));
  std::ranges::copy(frame.subspan(1, std::min<std::size_t>(numbers.size(), kFirst)),
                    numbers.begin());
  return numbers;
}

int n_more(std::size_t n) {
  return std::max(0, static_cast<int>(n) - kFirst);
}

class MpiExchange final : public Exchange {
 public:
  MpiExchange() {
    int given = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks_);
  }
  ~MpiExchange() override { MPI_Finalize(); }
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  int rank() const override { return rank_; }
  int n_ranks() const override { return n_ranks_; }

  void broadcast(int from, Numbers& numbers) override {
    Frame frame{};
    if (from == rank_) frame = frame_of(numbers);
    MPI_Bcast(frame.data(), kFrame, MPI_INT32_T, from, MPI_COMM_WORLD);
    if (from != rank_) numbers = numbers_of(frame);
    if (const int n = n_more(numbers.size()); n > 0)
      MPI_Bcast(numbers.data() + kFirst, n, MPI_INT32_T, from, MPI_COMM_WORLD);
  }

  std::vector<Numbers> all_gather(std::span<const std::int32_t> own) override {
    const Frame frame = frame_of(own);
    const auto n_ranks = static_cast<std::size_t>(n_ranks_);
    std::vector<Frame> frames(n_ranks);
    MPI_Allgather(frame.data(), kFrame, MPI_INT32_T, frames.data(), kFrame, MPI_INT32_T,
                  MPI_COMM_WORLD);
    std::vector<Numbers> all;
    std::vector<int> counts, begins{0};
    for (const Frame& of_rank : frames) {
      all.push_back(numbers_of(of_rank));
      counts.push_back(n_more(all.back().size()));
      begins.push_back(begins.back() + counts.back());
    }
    if (begins.back() == 0) return all;
    const auto more = own.subspan(std::min<std::size_t>(own.size(), kFirst));
    Numbers rest(static_cast<std::size_t>(begins.back()));
    MPI_Allgatherv(more.data(), static_cast<int>(more.size()), MPI_INT32_T, rest.data(),
                   counts.data(), begins.data(), MPI_INT32_T, MPI_COMM_WORLD);
    for (std::size_t rank = 0; rank < n_ranks; rank++)
      std::copy_n(rest.begin() + begins[rank], counts[rank], all[rank].end() - counts[rank]);
    return all;
  }

 private:
  int rank_ = 0, n_ranks_ = 1;
};

}  // namespace
}  // namespace engine

extern "C" engine::Exchange* decoscope_mpi_exchange() {
  static engine::MpiExchange exchange;
  return &exchange;
}

extern "C" void decoscope_mpi_abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
}

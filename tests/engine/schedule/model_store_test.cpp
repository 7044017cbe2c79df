// Which models stay in memory, and which go for another.
#include "engine/schedule/model_store.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/schedule/memory_plan.h"

namespace engine {
namespace {

/// While it lives, this process may take so many bytes more, and no more.
class MemoryLeft {
 public:
  explicit MemoryLeft(std::int64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + bytes);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLeft() { setrlimit(RLIMIT_AS, &before_); }
  MemoryLeft(const MemoryLeft&) = delete;
  MemoryLeft& operator=(const MemoryLeft&) = delete;

 private:
  rlimit before_{};
};

TEST(ModelStore, where_memory_is_short_a_model_held_for_later_goes_for_the_one_asked_for) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's address space cannot be limited";
#endif
  if (!std::filesystem::exists(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target/config.json")) {
    FAIL() << "assets/models/demo-target is not in this tree";
  }
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const ModelRequest held{.scale = "4x1"}, asked{.scale = "4x1", .dtype = "f16"};
  const LoadedModel& first = store.get(held);
  const std::uint32_t id = first.id;
  const double needed = memory_plan(first.model->config(), first.model->dtype()).needed();
  {
    const MemoryLeft left(static_cast<std::int64_t>(needed) - (std::int64_t{8} << 20));
    EXPECT_EQ(store.get(asked).id, id + 1);
    // Even without what is held there is no room for this one: what is held stays.
    EXPECT_THROW(store.get({.scale = "4x8"}), Error);
    EXPECT_EQ(store.get(asked).id, id + 1);
  }
  EXPECT_EQ(store.get(held).id, id + 2);  // loaded anew
}

TEST(ModelStore, where_memory_is_not_short_models_stay) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const std::uint32_t id = store.get({}).id;
  EXPECT_EQ(store.get({.dtype = "f32"}).id, id + 1);
  EXPECT_EQ(store.get({}).id, id);
}

}  // namespace
}  // namespace engine

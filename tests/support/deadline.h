// A time limit for tests whose threads could wait for each other forever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace engine::test {

/// Ends the process with a message that names the test if this object lives longer than `allowed`.
class Deadline {
 public:
  /// @param allowed  must be longer than any wait of a test that works correctly
  explicit Deadline(std::chrono::seconds allowed = std::chrono::seconds(90))
      : allowed_(allowed), watching_([this] { watch(); }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    bell_.notify_one();
    watching_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (bell_.wait_for(lock, allowed_, [this] { return over_; })) return;
    std::fprintf(stderr, "%s: its threads have not finished within %lld s\n", name_.c_str(),
                 static_cast<long long>(allowed_.count()));
    std::fflush(nullptr);
    std::_Exit(EXIT_FAILURE);
  }

  static std::string name_of_test() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return test ? std::string(test->test_suite_name()) + "." + test->name() : "a test";
  }

  const std::chrono::seconds allowed_;
  const std::string name_ = name_of_test();
  std::mutex mutex_;  // guards over_
  std::condition_variable bell_;
  bool over_ = false;
  std::thread watching_;  // declared last: it uses the members above
};

}  // namespace engine::test

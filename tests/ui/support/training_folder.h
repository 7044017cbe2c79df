// The folder of a training run with reports and probes, without a training.
#pragma once

#include <unistd.h>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/event/recording/training_report.h"

namespace training_folder {

namespace fs = std::filesystem;

/// Returns the report of a step of 400.
inline engine::TrainingReport report_of(std::int64_t step) {
  const double s = static_cast<double>(step);
  engine::TrainingReport report{.step = step,
                                .tokens = step * 4096,
                                .seconds = s / 4,
                                .seconds_left = (400 - s) / 4,
                                .tokens_per_second = 16'000 + 500 * std::sin(s),
                                .lr = 0.0004 * (1 - s / 500),
                                .gradient_norm = 1 + 5 / (s + 1),
                                .loss = 0.4 + 4 / (1 + s / 20),
                                .losses = {},
                                .probes = {}};
  report.losses = {{"ar", report.loss * 0.6}, {"consistency", report.loss * 0.3}};
  if (step % 100 == 0)
    report.probes = {{"tokens per step, block", 1.2 + s / 150}, {"accuracy", 0.8 - s / 4000}};
  return report;
}

/// The folder of a training run, removed at the end of the test.
class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() / ("decoscope-training" + std::to_string(getpid())) /
              "demo-run") {
    fs::remove_all(path_.parent_path());
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_.parent_path()); }
  std::string path(const char* file = "") const {
    return *file ? (path_ / file).string() : path_.string();
  }
  void append(const char* file, const std::string& text) const {
    std::ofstream(path_ / file, std::ios::app) << text;
  }
  void report(std::int64_t step) const {
    append("training.jsonl", engine::to_json_line(report_of(step)) + "\n");
  }
  /// A block of four tokens that converges in fewer iterations at later probes.
  void probe(std::int64_t step, int n_iterations) const {
    static const std::vector<std::string> kWords{"Anna", " has", " 14", ".\\n"};
    std::string states = R"(["Tom"," has","3","3"])";
    for (int t = 1; t <= n_iterations; ++t) {
      states += ",[";
      const int n_right = 4 * t / n_iterations;
      for (int i = 0; i < 4; ++i)
        states += (i ? ",\"" : "\"") +
                  (i < n_right || i == 1 ? kWords[i] : "x" + std::to_string(t)) + "\"";
      states += "]";
    }
    append("probe_trajectories.jsonl",
           R"({"step":)" + std::to_string(step) +
               R"(,"prompt":"USER: How many?","ends":["</s>"],"blocks":[[)" + states +
               R"(],[["x","y"],["</s>","y"]]]})" + "\n");
  }
  void fill() const {
    for (int step = 10; step <= 300; step += 10) report(step);
    probe(0, 4);
    probe(100, 3);
    probe(200, 2);
    probe(300, 1);
  }

 private:
  fs::path path_;
};

}  // namespace training_folder

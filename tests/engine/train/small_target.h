// A target of a few thousand weights with the bundled tokenizer.
#pragma once

#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "engine/checkpoint/model_files.h"
#include "engine/model/model.h"
#include "engine/train/core/training.h"
#include "engine/train/run/own_outputs.h"
#include "kernels/device.h"
#include "tests/support/assets_folder.h"
#include "tests/support/files.h"
#include "tests/support/request_data.h"

namespace engine::test {

/// Callbacks that store the completion loss of the first step and of the latest one. They outlive neither variable.
inline TrainCallbacks loss_recorder(double& first, double& last) {
  TrainCallbacks callbacks;
  callbacks.progress = [&](const TrainProgress& p) {
    if (p.step == 1) first = p.completion_loss;
    last = p.completion_loss;
  };
  return callbacks;
}

/// A fixture with such a target in a folder of its own.
class SmallTarget : public testing::Test {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '_');
    directory_ =
        (fs::temp_directory_path() / ("own_test_" + std::to_string(::getpid()) + "_" + name))
            .string();
    fs::remove_all(directory_);
    const std::string bundled = assets_folder() + "/models/demo-target";
    ModelConfig c;
    c.model_type = "llama";
    c.dim = 32;
    c.hidden_dim = 64;
    c.n_layers = 1;
    c.n_heads = c.n_kv_heads = 1;
    c.head_dim = 32;
    c.vocab_size = open_model(bundled).config.vocab_size;
    c.max_seq_len = 512;
    c.tied_embeddings = true;
    c.bos_id = 1;
    c.eos_ids = {2};
    write_model(target_dir(), c, *random_tensors(c, 7), kernels::DType::F32, bundled);
    files_ = open_model(target_dir());
    device_ = kernels::open_cpu(1);
    model_ = Model::load(*device_, files_, {.dtype = kernels::DType::F32, .scale = {}});
  }
  void TearDown() override {
    model_.reset();
    files_ = {};
    std::filesystem::remove_all(directory_);
  }

  /// Gives the target a chat template and the folder data() with requests.
  void make_chat_model() {
    write_file(target_dir() + "/chat_template.jinja",
               "{% for m in messages %}[{{ m.role }}] {{ m.content }}</s>{% endfor %}"
               "{% if add_generation_prompt %}[assistant]{% endif %}");
    files_ = open_model(target_dir());
    model_ = Model::load(*device_, files_, {.dtype = kernels::DType::F32, .scale = {}});
    write_request_data(data());
  }
  std::string data() const { return path("data"); }
  std::string target_dir() const { return directory_ + "/target"; }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  NamedTarget target(const std::string& hash = "0123") const { return {*model_, "small", hash}; }
  static OutputsPlan plan(int count) {
    OutputsPlan plan;
    plan.mixture = R"({"arith": {"weight": 1, "levels": [1, 0, 0]}, "kb": {"weight": 1}})";
    plan.count = count;
    plan.max_tokens = 12;
    plan.lanes = 4;
    return plan;
  }

  std::string directory_;
  ModelFiles files_;
  std::unique_ptr<kernels::Device> device_;
  std::unique_ptr<Model> model_;
};

}  // namespace engine::test

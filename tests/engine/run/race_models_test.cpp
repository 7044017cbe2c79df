// The models that the lanes of a race decode with.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/race_models.h"

namespace engine {
namespace {

std::vector<RunModels> raced(ModelStore& store,
                             const std::vector<LaneRequest>& lanes,
                             bool several_texts) {
  const auto silent = [](const std::string&) { return LoadProgress{}; };
  return models_of_lanes(store, {}, {}, lanes, silent, {}, several_texts);
}

TEST(RaceModels, a_batch_lane_drafts_on_its_own_threads) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const auto models =
      raced(store, {{.decoder = "ar"}, {.decoder = "mcsd"}, {.decoder = "seed"}}, true);
  ASSERT_EQ(models.size(), 3u);
  const LoadedModel& target = models[0].target;
  for (const RunModels& lane : models)
    EXPECT_EQ(&lane.target, &target) << "the lanes must share the weights";
  ASSERT_NE(models[1].draft, nullptr);
  ASSERT_NE(models[2].draft, nullptr);
  EXPECT_EQ(&models[1].draft->model->device(), &target.model->device());
  EXPECT_NE(&models[2].draft->model->device(), &target.model->device());
  EXPECT_EQ(models[1].draft->files.name, models[2].draft->files.name);
}

TEST(RaceModels, a_further_draft_is_loaded_only_for_other_lanes) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const auto models = raced(store, {{.decoder = "ar"}, {.decoder = "seed"}}, true);
  EXPECT_EQ(models[0].draft, nullptr);
  ASSERT_NE(models[1].draft, nullptr);
}

TEST(RaceModels, single_prompt_lanes_share_one_device) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const auto models = raced(store, {{.decoder = "ar"}, {.decoder = "seed"}}, false);
  ASSERT_NE(models[1].draft, nullptr);
  EXPECT_EQ(&models[1].draft->model->device(), &models[0].target.model->device());
}

TEST(RaceModels, models_of_a_lane_stay_while_others_load) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const auto models = raced(store,
                            {{.decoder = "seed"},
                             {.decoder = "mcsd"},
                             {.decoder = "ar", .model = "demo-cllm"},
                             {.decoder = "ar", .model = "demo-draft"}},
                            true);
  ASSERT_EQ(models.size(), 4u) << "five models loaded; the store keeps three";
  EXPECT_EQ(models[0].target.model->name(), "demo-target");
  EXPECT_EQ(models[0].draft->model->name(), "demo-draft");
  EXPECT_EQ(models[1].draft->model->name(), "demo-draft");
  EXPECT_EQ(models[2].target.model->name(), "demo-cllm");
}

}  // namespace
}  // namespace engine

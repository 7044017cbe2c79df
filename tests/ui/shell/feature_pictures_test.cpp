// The features that docs/window.md lists: each is shown, and its picture is taken. With DECOSCOPE_PICTURES=FOLDER the pictures
// are written there.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "engine/event/timeline/timeline.h"
#include "tests/support/files.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/set_stream.h"
#include "ui/files/prompt_file.h"
#include "ui/lesson/progress.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/layout.h"

namespace {

namespace fs = std::filesystem;

using namespace scripted;
using ui::Action;
using ui::Screen;

const std::string kAssets = DECOSCOPE_SOURCE_DIR "/assets/";

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Takes pictures of one window.
class Camera {
 public:
  Camera(ImGuiTestContext* ctx, Stage& stage) : ctx_(ctx), stage_(stage) {
    if (const char* folder = std::getenv("DECOSCOPE_PICTURES"))
      folder_ = fs::absolute(folder).string();
  }
  ui::Shell& shell() { return *stage_.shell; }

  // Opens a copy of a recording, because the window writes notes beside it.
  void open(const std::string& recording, Screen screen) {
    const std::string copy = own_ / fs::path(recording).filename().string();
    fs::copy_file(kAssets + recording, copy, fs::copy_options::overwrite_existing);
    shell().open(copy);
    ctx_->Yield(2);
    wait_until(ctx_, [&] { return !shell().reads(); });
    shell().show(screen);
    ctx_->Yield(4);
  }
  // Selects the first run of a decoder.
  void select(const std::string& decoder) {
    for (const engine::RunRecord& run : shell().session().shown().timeline.runs()) {
      if (run.started.decoder != decoder) continue;
      shell().selection().run = run.id();
      return ctx_->Yield(3);
    }
    ctx_->LogError("no run of %s", decoder.c_str());
  }
  // Selects a step of the selected run, and moves the playhead there.
  void go_to_step(std::size_t step) {
    const engine::RunRecord* run = run_of(stage_);
    IM_CHECK(run != nullptr && step < run->steps.size());
    const double end = static_cast<double>(run->steps.head(run->steps.size() - 1).begun.compute);
    shell().playhead().go_to(static_cast<double>(run->steps.head(step).begun.compute), end);
    shell().selection().locked = {.run = run->id(), .step = run->steps.head(step).begun.step};
    ctx_->Yield(3);
  }
  // Selects the first accepted token of a step of the selected run, and moves the playhead after the step.
  void select_token(std::size_t step) {
    go_to_step(step + 1);
    const engine::RunRecord* run = run_of(stage_);
    IM_CHECK(run != nullptr && step < run->steps.size());
    const engine::StepId id = run->steps.head(step).begun.step;
    for (const engine::TokenRecord& token : run->tokens) {
      if (token.step != id || token.status != engine::TokenStatus::Accepted) continue;
      shell().selection().locked = {.run = run->id(), .step = id, .position = token.pos};
      return ctx_->Yield(3);
    }
    ctx_->LogError("no accepted token");
  }
  void perform(Action action) {
    shell().perform(action);
    ctx_->Yield(3);
  }
  // Chooses an entry of the palette.
  void choose(const char* entry) {
    perform(Action::Palette);
    ctx_->KeyChars(entry);
    key(ImGuiKey_Enter);
    ctx_->Yield(6);
  }
  void key(ImGuiKeyChord chord) {
    ctx_->KeyPress(chord);
    ctx_->Yield(3);
  }

  // Opens a sheet, types, takes its picture, and closes it.
  void take_sheet(Action action, const std::string& name, const char* typed = "") {
    perform(action);
    if (*typed) ctx_->KeyChars(typed);
    ctx_->Yield(4);
    take(name);
    key(ImGuiKey_Escape);
  }
  // Takes the picture NAME.png of a panel (empty: of the window), and checks that it is neither empty nor like the one before.
  void take(const std::string& name, const std::string& panel = "") {
    put_mouse_away(ctx_);
    take_as_is(name, panel);
  }
  void take_as_is(const std::string& name, const std::string& panel = "") {
    const std::string path = folder_ + "/" + name + ".png";
    fs::remove(path);
    shell().ask_picture(path, panel, 1);
    wait_until(ctx_, [&] { return !shell().wants_picture(); });
    const std::string png = bytes_of(path);
    if (png.size() < 3000 || png == before_) ctx_->LogError("%s: no picture", name.c_str());
    before_ = png;
  }

 private:
  ImGuiTestContext* ctx_;
  Stage& stage_;
  engine::test::Folder own_;
  std::string folder_ = own_.path();
  std::string before_;
};

struct Size {
  int width, height;
};
constexpr Size kOfPanels{1600, 1000}, kOfWindows{1120, 700};

// Returns a catalog with the titles of the decoders in the bundled recordings.
ui::Catalog catalog_with_titles() {
  ui::Catalog catalog = streams::catalog();
  catalog.decoders.push_back({.name = "suffix", .title = "Suffix decoding"});
  catalog.decoders.push_back({.name = "seed", .title = "SEED"});
  return catalog;
}

void film(const char* name,
          const Size& size,
          const std::function<void(ImGuiTestContext*, Camera&, Stage&)>& script,
          const ui::Catalog& catalog = catalog_with_titles()) {
  ui::WindowOptions options;
  options.width = size.width, options.height = size.height;
  play(
      name,
      [&](ImGuiTestContext* ctx, Stage& stage) {
        Camera camera(ctx, stage);
        script(ctx, camera, stage);
      },
      options, catalog);
}

TEST(FeaturePictures, windows) {
  film("pictures_windows", kOfWindows, [](ImGuiTestContext* ctx, Camera& camera, Stage&) {
    camera.open("recordings/smollm2_race.pdrun", Screen::Compare);
    camera.take("race");
    camera.shell().show(Screen::Live);
    ctx->Yield(4);
    camera.select("lookahead");
    camera.choose("layout: watching");
    camera.take("docking");
    camera.choose("layout: standard");
    ctx->MouseMove("**/###marks_text");
    ctx->Yield(3);
    camera.take_as_is("tokens");
    camera.shell().show(Screen::Lab);
    ctx->Yield(6);
    camera.take("laboratory");
    camera.open("lessons/6_lookahead.pdrun", Screen::Live);
    camera.select("lookahead");
    ctx->WindowFocus("//Mask###live.mask");
    camera.select_token(11);
    camera.take("linked");
    const ImGuiWindow* text =
        ImGui::FindWindowByName(ui::window_name(Screen::Live, "text", "").c_str());
    IM_CHECK(text != nullptr);
    ctx->MouseMoveToPos({text->InnerRect.Min.x + ui::px(40), text->InnerRect.Min.y + ui::px(88)});
    ctx->SleepNoSkip(1, 0.1f);
    camera.take_as_is("tooltip");
    camera.perform(Action::Find);
    ctx->KeyChars("the");
    camera.key(ImGuiKey_Enter);
    camera.take("find");
  });
}

TEST(FeaturePictures, panels) {
  film("pictures_panels", kOfPanels, [](ImGuiTestContext* ctx, Camera& camera, Stage&) {
    camera.open("recordings/smollm2_race.pdrun", Screen::Compare);
    camera.perform(Action::AlignLanes);
    camera.take("aligned", "lanes");
    camera.take("baseline", "difference");
    camera.shell().show(Screen::Live);
    ctx->Yield(4);
    camera.select("lookahead");
    camera.take("numbers", "numbers");
    camera.take("agreement", "agreement");
    camera.take("machine", "machine");
    camera.shell().set_theme(ui::ThemeName::Monochrome);
    ctx->Yield(4);
    camera.take("monochrome", "text");
    camera.shell().set_theme(ui::ThemeName::HighContrast);
    ctx->Yield(4);
    camera.take("high_contrast", "text");
    camera.shell().set_theme(ui::ThemeName::Dark);
    camera.open("lessons/6_lookahead.pdrun", Screen::Live);
    camera.select("lookahead");
    camera.go_to_step(12);
    camera.take("pool", "pool");
    camera.open("lessons/5_consistency_models.pdrun", Screen::Live);
    camera.select("jacobi");
    camera.take("trajectory", "trajectory");
    camera.open("lessons/7_trees.pdrun", Screen::Live);
    camera.select("medusa");
    camera.go_to_step(4);
    camera.take("tree", "tree");
    camera.take("mask", "mask");
  });
}

TEST(FeaturePictures, time) {
  film("pictures_time", kOfPanels, [](ImGuiTestContext* ctx, Camera& camera, Stage&) {
    camera.open("lessons/2_draft_and_verify.pdrun", Screen::Live);
    camera.select("speculative");
    camera.perform(Action::FitAll);
    camera.take("fit", "gantt");
    camera.go_to_step(6);
    camera.take("playhead", "gantt");
    camera.perform(Action::RangeIn);
    camera.go_to_step(12);
    camera.perform(Action::RangeOut);
    camera.take("range", "numbers");
    camera.perform(Action::Bookmark);
    camera.go_to_step(3);
    camera.perform(Action::KeepMark);
    camera.take("bookmarks", "gantt");
    const ImGuiWindow* gantt =
        ImGui::FindWindowByName(ui::window_name(Screen::Live, "gantt", "").c_str());
    IM_CHECK(gantt != nullptr);
    ctx->MouseMoveToPos(gantt->InnerRect.GetCenter());
    for (int i = 0; i < 8; ++i) ctx->MouseWheelY(1);
    camera.take("zoom", "gantt");
  });
}

TEST(FeaturePictures, sheets) {
  film("pictures_sheets", kOfWindows, [](ImGuiTestContext* ctx, Camera& camera, Stage&) {
    camera.open("recordings/smollm2_race.pdrun", Screen::Compare);
    camera.take_sheet(Action::Palette, "palette", "step");
    camera.take_sheet(Action::Help, "keys");
    camera.take_sheet(Action::Settings, "settings");
    camera.take_sheet(Action::Export, "export");
    camera.take_sheet(Action::Open, "recents");
    camera.shell().set_theme(ui::ThemeName::Light);
    ctx->Yield(4);
    camera.take("light");
    camera.shell().set_theme(ui::ThemeName::Dark);
    camera.shell().settings().scale_percent = 150;
    ctx->Yield(6);
    camera.take("scale");
    camera.shell().settings().scale_percent = 100;
    ctx->Yield(6);
    const engine::test::Folder folder;
    std::string bytes = bytes_of(kAssets + "recordings/first_race.pdrun");
    bytes.at(bytes.size() / 2) ^= 0x40;
    std::ofstream(folder / "damaged.pdrun", std::ios::binary) << bytes;
    camera.shell().open(folder / "damaged.pdrun");
    wait_until(ctx, [&] { return !camera.shell().reads(); });
    ctx->Yield(4);
    camera.take("error");
  });
}

TEST(FeaturePictures, a_run_and_its_settings) {
  film("pictures_run", kOfWindows, [](ImGuiTestContext* ctx, Camera& camera, Stage& stage) {
    camera.shell().show(Screen::Live);
    ctx->Yield(4);
    camera.take("setup", "setup");
    camera.perform(Action::Run);
    ctx->Yield(20);
    camera.take("stop");
    stage.replay->pace = 200;
    wait_until(ctx, [&] { return run_of(stage) && run_of(stage)->over(); });
  });
}

// Returns a run whose decoder chose the sizes of its steps.
std::vector<engine::Event> run_with_choices() {
  std::vector<engine::Event> events = streams::one_run("prompt-lookup", 300);
  for (engine::Event& event : events)
    if (auto* drafted = std::get_if<engine::Drafted>(&event); drafted && drafted->step >= 2)
      drafted->decision = {.size = 1 + drafted->step % 5, .tokens = 1.5f, .ms = 5, .plain_ms = 4};
  return events;
}

TEST(FeaturePictures, measurements) {
  film("pictures_measurements", kOfPanels, [](ImGuiTestContext* ctx, Camera& camera, Stage&) {
    const std::vector<std::string> decoders{"ar", "jacobi", "lookahead"};
    camera.shell().show(Screen::Compare);
    camera.shell().take(
        streams::set_of_races({.decoders = decoders, .n_prompts = 6, .n_repeats = 3}));
    ctx->Yield(6);
    camera.take("repeats", "difference");
    camera.take("prompts", "prompts");
  });
  film("pictures_decisions", kOfPanels, [](ImGuiTestContext* ctx, Camera& camera, Stage&) {
    camera.shell().take(run_with_choices());
    camera.shell().show(Screen::Lab);
    ctx->Yield(4);
    camera.take("decisions", "decisions");
  });
}

// Changes the working folder for its lifetime.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) { fs::current_path(folder); }
  ~WorkingFolder() { fs::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  fs::path before_ = fs::current_path();
};

TEST(FeaturePictures, a_dropped_file) {
  const engine::test::Folder folder;
  std::ofstream(folder / "questions.jsonl") << "{}";
  const WorkingFolder working(folder.path());  // the picture has the name alone
  ui::Catalog catalog = streams::catalog();
  catalog.read_prompts = [](const std::string&) -> ui::CatalogPromptFile {
    return {.prompts = {{"a", "one", "kb"}, {"b", "two", "arith"}, {"c", "three", "kb"}}};
  };
  film(
      "pictures_drop", kOfPanels,
      [](ImGuiTestContext* ctx, Camera& camera, Stage&) {
        camera.shell().open("questions.jsonl");
        ctx->Yield(4);
        camera.take("drop", "setup");
      },
      catalog);
}

// The page of features has a picture of its own for each.
TEST(FeaturePictures, no_two_features_share_one) {
  const std::string page = bytes_of(DECOSCOPE_SOURCE_DIR "/docs/window.md");
  const std::regex link("\\]\\((pictures/window/[a-z0-9_]+\\.png)\\)");
  std::set<std::string> found;
  for (std::sregex_iterator it(page.begin(), page.end(), link), end; it != end; ++it) {
    EXPECT_TRUE(found.insert((*it)[1]).second) << (*it)[1];
    EXPECT_TRUE(fs::exists(std::string(DECOSCOPE_SOURCE_DIR "/docs/") + (*it)[1].str()))
        << (*it)[1];
  }
  EXPECT_GE(found.size(), 34u);
}

TEST(FeaturePictures, a_lesson) {
  ui::Catalog catalog = streams::catalog();
  catalog.lessons.push_back({.path = kAssets + "lessons/2_draft_and_verify.json"});
  film(
      "pictures_lesson", kOfWindows,
      [](ImGuiTestContext* ctx, Camera& camera, Stage&) {
        IM_CHECK(camera.shell().open_lesson(kAssets + "lessons/2_draft_and_verify.json"));
        ctx->Yield(6);
        const ui::LessonProgress& lesson = *camera.shell().lesson();
        // To the prediction of the speed-up over the number of proposals, whose answer shows What if.
        const auto shows_what_if = [&] { return lesson.view().panels.front() == "what_if"; };
        while (!shows_what_if() && !lesson.at_end() && !ctx->IsError()) {
          if (lesson.asks()) camera.key(ImGuiKey_8);
          camera.key(ImGuiKey_Enter);
        }
        IM_CHECK(shows_what_if());
        camera.take("lesson");
      },
      catalog);
}

}  // namespace

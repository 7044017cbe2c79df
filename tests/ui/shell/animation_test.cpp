// Animations of the view: the files are decoded again, by giflib and by zlib, and compared with the frames that were drawn.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gif_lib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_te_context.h>
#include <zlib.h>

#include "kernels/error.h"
#include "tests/support/files.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/replay.h"
#include "ui/files/animating.h"
#include "ui/files/animation.h"
#include "ui/prepare/time/animation_frames.h"

namespace {

using namespace scripted;
using engine::test::Folder;
using testing::ElementsAre;
using testing::HasSubstr;
using ui::AnimationFrame;

using Pixels = std::vector<std::uint8_t>;  // RGB rows

// A decoded animation: every frame as the viewer sees it.
struct Decoded {
  int width = 0, height = 0;
  std::vector<Pixels> frames;
  std::vector<int> ms;
  std::string says;
};

// Puts a rectangle into the picture before it, and adds the result as a frame.
void add_part(Decoded& to, int left, int top, int width, int height, const Pixels& rgb) {
  Pixels whole = to.frames.empty() ? Pixels(static_cast<std::size_t>(to.width) * to.height * 3)
                                   : to.frames.back();
  for (int y = 0; y < height; ++y)
    std::memcpy(whole.data() + (static_cast<std::size_t>(top + y) * to.width + left) * 3,
                rgb.data() + static_cast<std::size_t>(y) * width * 3,
                static_cast<std::size_t>(width) * 3);
  to.frames.push_back(std::move(whole));
}

std::uint32_t number_at(const std::string& bytes, std::size_t at, int n = 4) {
  std::uint32_t number = 0;
  for (int i = 0; i < n; ++i) number = number << 8 | static_cast<std::uint8_t>(bytes.at(at + i));
  return number;
}

// Inflates pixels in rows without a filter.
Pixels inflated(const std::string& data, int width, int height) {
  const auto row = static_cast<std::size_t>(width) * 3;
  Pixels raw((row + 1) * height), rgb;
  uLongf n = raw.size();
  EXPECT_EQ(uncompress(raw.data(), &n, reinterpret_cast<const Bytef*>(data.data()), data.size()),
            Z_OK);
  EXPECT_EQ(n, raw.size());
  for (int y = 0; y < height; ++y) {
    EXPECT_EQ(raw[(row + 1) * y], 0);
    const auto begin = raw.begin() + static_cast<std::ptrdiff_t>((row + 1) * y + 1);
    rgb.insert(rgb.end(), begin, begin + static_cast<std::ptrdiff_t>(row));
  }
  return rgb;
}

Decoded decoded_apng(const std::string& bytes) {
  Decoded result;
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  std::uint32_t n_frames = 0, sequence = 0;
  int left = 0, top = 0, width = 0, height = 0;
  for (std::size_t at = 8; at < bytes.size();) {
    const std::size_t n = number_at(bytes, at);
    const std::string type = bytes.substr(at + 4, 4);
    std::string data = bytes.substr(at + 8, n);
    const std::string body = type + data;
    EXPECT_EQ(number_at(bytes, at + 8 + n),
              crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())))
        << type;
    if (type == "IHDR") {
      result.width = static_cast<int>(number_at(data, 0));
      result.height = static_cast<int>(number_at(data, 4));
    } else if (type == "acTL") {
      n_frames = number_at(data, 0);
      EXPECT_EQ(number_at(data, 4), 0u) << "repeats";
    } else if (type == "iTXt") {
      result.says = data.substr(data.rfind('\0') + 1);
    } else if (type == "fcTL") {
      EXPECT_EQ(number_at(data, 0), sequence++);
      width = static_cast<int>(number_at(data, 4)), height = static_cast<int>(number_at(data, 8));
      left = static_cast<int>(number_at(data, 12)), top = static_cast<int>(number_at(data, 16));
      result.ms.push_back(static_cast<int>(1000 * number_at(data, 20, 2) / number_at(data, 22, 2)));
    } else if (type == "IDAT" || type == "fdAT") {
      if (type == "fdAT") {
        EXPECT_EQ(number_at(data, 0), sequence++);
        data.erase(0, 4);
      }
      add_part(result, left, top, width, height, inflated(data, width, height));
    }
    at += 12 + n;
  }
  EXPECT_EQ(result.frames.size(), n_frames);
  return result;
}

struct Memory {
  const std::string& bytes;
  std::size_t at = 0;
};

int read_memory(GifFileType* gif, GifByteType* into, int n) {
  auto& from = *static_cast<Memory*>(gif->UserData);
  const std::size_t some = std::min(static_cast<std::size_t>(n), from.bytes.size() - from.at);
  std::memcpy(into, from.bytes.data() + from.at, some);
  from.at += some;
  return static_cast<int>(some);
}

Decoded decoded_gif(const std::string& bytes) {
  Memory memory{bytes};
  int error = 0;
  GifFileType* gif = DGifOpen(&memory, read_memory, &error);
  EXPECT_NE(gif, nullptr) << error;
  if (!gif) return {};
  EXPECT_EQ(DGifSlurp(gif), GIF_OK);
  Decoded result{.width = gif->SWidth, .height = gif->SHeight};
  for (int i = 0; i < gif->ImageCount; ++i) {
    const SavedImage& image = gif->SavedImages[i];
    const GifImageDesc& part = image.ImageDesc;
    Pixels rgb;
    for (int p = 0; p < part.Width * part.Height; ++p) {
      const GifColorType colour = part.ColorMap->Colors[image.RasterBits[p]];
      rgb.insert(rgb.end(), {colour.Red, colour.Green, colour.Blue});
    }
    add_part(result, part.Left, part.Top, part.Width, part.Height, rgb);
    GraphicsControlBlock control{};
    EXPECT_EQ(DGifSavedExtensionToGCB(gif, i, &control), GIF_OK);
    EXPECT_EQ(control.DisposalMode, DISPOSE_DO_NOT);
    result.ms.push_back(control.DelayTime * 10);
    for (int e = 0; e < image.ExtensionBlockCount; ++e)
      if (image.ExtensionBlocks[e].Function == COMMENT_EXT_FUNC_CODE)
        result.says.append(reinterpret_cast<const char*>(image.ExtensionBlocks[e].Bytes),
                           static_cast<std::size_t>(image.ExtensionBlocks[e].ByteCount));
  }
  DGifCloseFile(gif, &error);
  return result;
}

Decoded decoded(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return path.ends_with(".gif") ? decoded_gif(bytes) : decoded_apng(bytes);
}

constexpr int kWidth = 9, kHeight = 7;

Pixels plain(std::uint8_t grey) {
  return Pixels(static_cast<std::size_t>(kWidth) * kHeight * 3, grey);
}

Pixels with_dot(Pixels rgb, int x, int y) {
  std::uint8_t* at = rgb.data() + (static_cast<std::size_t>(y) * kWidth + x) * 3;
  at[0] = 200, at[1] = 10, at[2] = 30;
  return rgb;
}

std::string written(const std::string& name,
                    const std::vector<Pixels>& frames,
                    const std::string& says = "") {
  const auto animation = ui::make_animation(name, kWidth, kHeight, says);
  for (const Pixels& frame : frames) animation->add(frame, 100);
  return animation->file();
}

TEST(Animation, decoded_frames_equal_the_drawn_ones) {
  const Pixels one = plain(40), two = with_dot(one, 0, 0), three = with_dot(two, 8, 6),
               four = plain(90);
  const std::vector<Pixels> frames{one, two, three, four, one};
  for (const char* name : {"a.png", "a.gif"}) {
    const std::string bytes = written(name, frames, "a race of two decoders");
    const Decoded read = std::string(name) == "a.gif" ? decoded_gif(bytes) : decoded_apng(bytes);
    EXPECT_EQ(read.width, kWidth);
    EXPECT_EQ(read.height, kHeight);
    EXPECT_EQ(read.frames, frames) << name;
    EXPECT_THAT(read.ms, ElementsAre(100, 100, 100, 100, 100)) << name;
    EXPECT_EQ(read.says, "a race of two decoders") << name;
  }
}

TEST(Animation, an_unchanged_frame_lengthens_the_one_before) {
  const Pixels one = plain(40), two = with_dot(one, 3, 3);
  for (const char* name : {"a.png", "a.gif"}) {
    const std::string bytes = written(name, {one, one, one, two, two});
    const Decoded read = std::string(name) == "a.gif" ? decoded_gif(bytes) : decoded_apng(bytes);
    EXPECT_THAT(read.ms, ElementsAre(300, 200)) << name;
    EXPECT_EQ(read.frames, (std::vector<Pixels>{one, two})) << name;
  }
}

TEST(Animation, a_gif_keeps_the_frequent_colours_exactly) {
  constexpr int kSide = 40;  // 1600 pixels: 600 of one colour, the others all different
  Pixels rgb;
  for (int i = 0; i < kSide * kSide; ++i)
    rgb.insert(rgb.end(), {static_cast<std::uint8_t>(i < 600 ? 22 : i % 200),
                           static_cast<std::uint8_t>(i < 600 ? 24 : i / 8), 29});
  const auto animation = ui::make_animation("a.gif", kSide, kSide, "");
  animation->add(rgb, 100);
  const Decoded read = decoded_gif(animation->file());
  ASSERT_EQ(read.frames.size(), 1u);
  const Pixels& got = read.frames[0];
  EXPECT_TRUE(std::equal(rgb.begin(), rgb.begin() + 600 * 3, got.begin()));
  double error = 0;
  int most = 0;
  for (std::size_t i = 0; i < rgb.size(); ++i)
    most = std::max(most, std::abs(int{rgb[i]} - int{got[i]}));
  EXPECT_LT(most, 40) << "a rare colour has a near one in the table";
  for (std::size_t i = 0; i < rgb.size(); ++i) error += std::abs(int{rgb[i]} - int{got[i]});
  EXPECT_LT(error / static_cast<double>(rgb.size()), 12);
}

TEST(Animation, another_ending_is_refused) {
  EXPECT_THROW(ui::make_animation("a.mp4", 4, 4, ""), kernels::Error);
  EXPECT_THROW(ui::Animating("a.mp4", {{0, 100}}), kernels::Error);
}

TEST(AnimationFrames, follow_the_steps_or_the_time) {
  const auto timeline = timeline_of(streams::one_run("jacobi"));
  const ui::RunTimes times = times_of(timeline.runs()[0]);
  const ui::RunTimes* const runs[] = {&times};
  ui::AnimationPlan plan{
      .from = times.steps[1].compute1, .to = times.steps[4].compute1, .ms_per_step = 200};
  const std::vector<AnimationFrame> steps = ui::animation_frames(runs, plan);
  ASSERT_EQ(steps.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(steps[i].at, times.steps[i + 1].compute1);
  EXPECT_EQ(steps[1].ms, 200);
  EXPECT_EQ(steps[3].ms, 200 + ui::kLastFrameMs);
  plan.pace = ui::Pace::Time;
  plan.seconds = 2;
  const std::vector<AnimationFrame> even = ui::animation_frames(runs, plan);
  ASSERT_EQ(even.size(), 20u);
  EXPECT_EQ(even.front().at, plan.from);
  EXPECT_EQ(even.back().at, plan.to);
  EXPECT_NEAR(even[10].at - even[9].at, (plan.to - plan.from) / 19, 1);
  plan.fps = 25;
  const std::vector<AnimationFrame> fast = ui::animation_frames(runs, plan);
  ASSERT_EQ(fast.size(), 50u);
  EXPECT_EQ(fast[0].ms, 40);
  plan.seconds = 120;
  EXPECT_EQ(ui::animation_frames(runs, plan).size(), ui::kMaxAnimationFrames);
}

TEST(AnimationFrames, of_many_steps_some_are_left_out) {
  ui::RunTimes times;
  for (int i = 0; i < 1500; ++i)
    times.steps.push_back({.step = i, .compute0 = i * 10.0, .compute1 = (i + 1) * 10.0});
  const ui::RunTimes* const runs[] = {&times};
  const auto frames = ui::animation_frames(runs, {.from = 0, .to = 15'000, .ms_per_step = 100});
  EXPECT_EQ(frames.size(), 501u);
  EXPECT_EQ(frames[5].ms, 300) << "three steps";
  EXPECT_EQ(frames.back().at, 15'000);
}

TEST(Animating, estimates_the_size_and_then_writes) {
  const Folder folder;
  std::vector<AnimationFrame> frames;
  for (int i = 0; i < 40; ++i) frames.push_back({static_cast<double>(i), 50});
  ui::Animating animating(folder / "a.gif", frames);
  const auto drawn = [&] {
    return with_dot(plain(30), static_cast<int>(animating.at()) % kWidth,
                    static_cast<int>(animating.at()) % kHeight);
  };
  int n_samples = 0;
  for (; animating.state() == ui::Animating::State::Sampling; ++n_samples)
    animating.take(drawn(), kWidth, kHeight, "");
  EXPECT_LT(n_samples, 12) << "few frames are drawn for the estimate";
  const auto expected = static_cast<double>(animating.n_bytes());
  EXPECT_THAT(animating.words(), HasSubstr("40 frames, 2.0 s, about"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.gif"));
  animating.begin();
  while (animating.state() == ui::Animating::State::Writing)
    animating.take(drawn(), kWidth, kHeight, "");
  EXPECT_EQ(decoded(folder / "a.gif").frames.size(), 40u);
  const auto real = static_cast<double>(std::filesystem::file_size(folder / "a.gif"));
  EXPECT_EQ(static_cast<double>(animating.n_bytes()), real);
  EXPECT_GT(expected, 0.5 * real);
  EXPECT_LT(expected, 2 * real);
}

TEST(Animating, the_window_writes_a_panel_step_by_step) {
  const Folder folder;
  for (const char* name : {"steps.gif", "steps.png"}) {
    const std::string path = folder / name;
    play("animation", [&](ImGuiTestContext* ctx, Stage& stage) {
      stage.shell->take(streams::one_run("jacobi", 40));
      ctx->Yield(3);
      const double before = stage.shell->playhead().at;
      const ui::RunTimes times = times_of(*run_of(stage));
      stage.shell->ask_animation(path, "text", 1, {.to = times.end_compute(), .ms_per_step = 100},
                                 true);
      wait_until(ctx, [&] { return !stage.shell->wants_frames(); });
      IM_CHECK_EQ(stage.shell->message().find("Animation: "), std::size_t{0});
      IM_CHECK_EQ(stage.shell->playhead().at, before);
      IM_CHECK(stage.shell->playhead().follows());
      const Decoded read = decoded(path);
      // Each step changes the text.
      IM_CHECK_EQ(read.frames.size(), times.steps.size() + 1);
      IM_CHECK_EQ(read.ms.back(), 100 + ui::kLastFrameMs);
      for (std::size_t i = 1; i < read.frames.size(); ++i)
        IM_CHECK(read.frames[i] != read.frames[i - 1]);
      IM_CHECK(read.says.find("demo-target") != std::string::npos);
    });
  }
}

TEST(Animating, the_dialog_shows_the_size_before_it_writes) {
  const Folder folder;
  play("animation_dialog", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->take(streams::one_run("lookahead", 24));
    ctx->Yield(3);
    stage.shell->perform(ui::Action::Export);
    ctx->Yield(3);
    ctx->ItemInputValue("//##export/##path", (folder / "mine.gif").c_str());
    ctx->ItemClick("//##export/###do_gif");
    wait_until(ctx, [&] { return ctx->ItemExists("//##export/###write_animation"); });
    IM_CHECK(stage.shell->message().find("about") != std::string::npos);
    IM_CHECK(!std::filesystem::exists(folder / "mine.gif"));
    // A picture, and a moved playhead, leave the estimate as it is.
    stage.shell->perform(ui::Action::ToStart);
    ctx->ItemClick("//##export/###do_picture");
    wait_until(ctx, [&] { return std::filesystem::exists(folder / "window.png"); });
    IM_CHECK_EQ(stage.shell->playhead().at, 0.0);
    stage.shell->perform(ui::Action::Export);
    ctx->Yield(3);
    ctx->ItemInputValue("//##export/##path", (folder / "mine.gif").c_str());
    ctx->ItemClick("//##export/###write_animation");
    wait_until(ctx, [&] { return std::filesystem::exists(folder / "mine.gif"); });
    IM_CHECK_GT(decoded(folder / "mine.gif").frames.size(), std::size_t{5});
  });
}

TEST(Animating, esc_cancels_and_leaves_no_file) {
  const Folder folder;
  play("animation_cancel", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->take(streams::one_run("jacobi", 96));
    ctx->Yield(3);
    stage.shell->ask_animation(folder / "a.gif", "", 1,
                               {.to = 1e15, .pace = ui::Pace::Time, .seconds = 60}, true);
    ctx->Yield(30);
    IM_CHECK(stage.shell->wants_frames());
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK(!stage.shell->wants_frames());
    IM_CHECK(stage.shell->playhead().follows());
    IM_CHECK(!std::filesystem::exists(folder / "a.gif"));
  });
}

}  // namespace

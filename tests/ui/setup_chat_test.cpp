// Chat templates in Setup: chat or raw prompts, the system message, the rendered prompt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/queue.h"
#include "engine/event/recording/recording.h"
#include "engine/event/timeline/timeline.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/streams.h"
#include "ui/files/setup_form.h"
#include "ui/prepare/recorded_setup.h"
#include "ui/prepare/use_again.h"
#include "ui/shell/catalog.h"

namespace {

using namespace ui;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A catalog whose first model has a template.
Catalog chatty(int* n_rendered = nullptr) {
  Catalog catalog = streams::catalog();
  catalog.models.front().chat = [n_rendered](const std::string& prompt, const std::string& system,
                                             bool always) {
    if (n_rendered) ++*n_rendered;
    if (always)
      return ChatPreview{.stretches = {}, .note = "always; --raw takes the prompt as it is"};
    return ChatPreview{.stretches = {{"<|im_start|>", true},
                                     {"user\n" + system + prompt, false},
                                     {"<|im_end|>", true}},
                       .note = ""};
  };
  return catalog;
}

TEST(SetupChat, command_has_mode_and_system_message) {
  const Catalog catalog = chatty();
  SetupForm form = first_form(catalog, catalog.models.front().name);
  form.system = "Be short.";
  EXPECT_EQ(command_of(form, false).chat, engine::ChatMode::Auto);
  EXPECT_EQ(command_of(form, false).system, "Be short.");
  EXPECT_EQ(chat_model(form, catalog), &catalog.models.front());
  form.chat = engine::ChatMode::Raw;
  EXPECT_EQ(command_of(form, false).chat, engine::ChatMode::Raw);
  EXPECT_EQ(command_of(form, false).system, "");
  EXPECT_EQ(chat_model(form, catalog), nullptr);
}

/// A window on the screen Live.
class Window {
 public:
  explicit Window(const Catalog& catalog) : shell(catalog, commands_, "") {
    ImGui::GetIO().DisplaySize = {1600, 2000};  // all of Setup is seen
    shell.show(Screen::Live);
    shell.form().model = catalog.models.front().name;
    shell.form().prompt = "Hello";
    frames(3);
  }
  void frames(int n) {
    for (int i = 0; i < n; ++i) gui_.frame(shell);
  }
  std::string said() { return gui_.said(shell); }

 private:
  headless::Headless gui_;
  engine::CommandQueue commands_;

 public:
  Shell shell;
};

constexpr auto kUnknown = engine::ReadAs::Unknown, kChat = engine::ReadAs::Chat,
               kRaw = engine::ReadAs::Raw;

/// A race whose two lanes read the prompt as given.
engine::Timeline recorded(engine::ReadAs first, engine::ReadAs second, const std::string& system) {
  engine::Timeline timeline;
  int lane = 0;
  for (engine::Event& event : streams::race({"ar", "jacobi"})) {
    if (auto* started = std::get_if<engine::RunStarted>(&event)) {
      started->read_as = lane++ == 0 ? first : second;
      if (started->read_as == kChat) started->system = system;
    }
    timeline.apply(event);
  }
  return timeline;
}

/// The form after "Use these settings" for the last lane.
SetupForm reused(const engine::Timeline& timeline, const Catalog& catalog) {
  SetupForm form = first_form(catalog, catalog.models.front().name);
  form.chat = engine::ChatMode::Raw;
  form.system = "mine";
  use_again(form, catalog, timeline, timeline.runs()[1]);
  return form;
}

TEST(SetupChat, reuse_copies_how_the_prompt_was_read) {
  const SetupForm chat = reused(recorded(kChat, kChat, "Be short."), chatty());
  EXPECT_EQ(chat.chat, engine::ChatMode::Chat) << "also if the prompt names special tokens";
  EXPECT_EQ(chat.system, "Be short.");
  const SetupForm raw = reused(recorded(kRaw, kRaw, ""), chatty());
  EXPECT_EQ(raw.chat, engine::ChatMode::Raw);
  EXPECT_EQ(raw.system, "");
  const SetupForm both = reused(recorded(kChat, kRaw, "Be short."), chatty());
  EXPECT_EQ(both.chat, engine::ChatMode::Auto) << "the model of one lane has no template";
  EXPECT_EQ(both.system, "Be short.");
  EXPECT_EQ(reused(recorded(kRaw, kRaw, ""), streams::catalog()).chat, engine::ChatMode::Auto)
      << "without a template every prompt is read as it is";
}

TEST(SetupChat, another_model_without_a_template_is_read_raw) {
  const Catalog catalog = chatty();
  SetupForm form = reused(recorded(kChat, kChat, ""), catalog);
  choose_model(form, catalog, catalog.models.back().name);
  EXPECT_EQ(command_of(form, false).chat, engine::ChatMode::Auto);
}

std::vector<std::string> rows_of(const engine::Timeline& timeline) {
  std::vector<std::string> rows;
  for (const RecordedRow& row : recorded_setup(timeline, timeline.race(1), chatty()).rows)
    if (row.label.ends_with("read as") || row.label == "system")
      rows.push_back(row.label + ": " + row.value);
  return rows;
}

TEST(SetupChat, the_recorded_setup_has_how_the_prompt_was_read) {
  EXPECT_THAT(rows_of(recorded(kChat, kChat, "Be\nshort.")),
              ElementsAre("read as: chat", "system: Be\nshort."));
  EXPECT_THAT(rows_of(recorded(kRaw, kChat, "Be short.")),
              ElementsAre("read as: raw", "B read as: chat", "system: Be short."));
}

// Recorded before the fields existed.
TEST(SetupChat, an_old_recording_opens_as_before) {
  engine::EventList events;
  const engine::RecordingReport report = engine::read_recording(
      DECOSCOPE_SOURCE_DIR "/tests/fixtures/recordings/without_chat_fields.pdrun", events);
  EXPECT_EQ(report.notices(), std::vector<std::string>{});
  engine::Timeline timeline;
  for (const engine::Event& event : events.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  EXPECT_THAT(rows_of(timeline), IsEmpty());
  const SetupForm form = reused(timeline, chatty());
  EXPECT_EQ(form.chat, engine::ChatMode::Raw) << "as it was";
  EXPECT_EQ(form.system, "mine");
  EXPECT_EQ(reused(recorded(kUnknown, kUnknown, ""), chatty()).system, "mine");
}

TEST(SetupChat, models_without_a_template_show_nothing) {
  const Catalog catalog = streams::catalog();
  EXPECT_THAT(Window(catalog).said(), Not(HasSubstr("read as")));
}

TEST(SetupChat, the_rendered_prompt_is_shown) {
  int n_rendered = 0;
  const Catalog catalog = chatty(&n_rendered);
  Window window(catalog);
  EXPECT_THAT(window.said(), HasSubstr("<|im_start|> user Hello <|im_end|>"));
  EXPECT_EQ(n_rendered, 1);
  window.shell.form().chat = engine::ChatMode::Raw;
  window.frames(2);
  EXPECT_THAT(window.said(), Not(HasSubstr("<|im_start|>")));
}

TEST(SetupChat, symbols_as_text_make_a_message_of_every_prompt) {
  const Catalog catalog = chatty();
  Window window(catalog);
  window.shell.form().no_special = true;
  window.frames(40);
  EXPECT_THAT(window.said(), HasSubstr("always; raw in Setup takes the prompt as it is"));
}

TEST(SetupChat, a_prompt_is_rendered_when_typing_pauses) {
  int n_rendered = 0;
  const Catalog catalog = chatty(&n_rendered);
  Window window(catalog);
  for (const char* typed : {"Hello y", "Hello yo", "Hello you"}) {
    window.shell.form().prompt = typed;
    window.frames(6);  // 0.1 s
  }
  EXPECT_EQ(n_rendered, 1);
  window.frames(40);
  EXPECT_EQ(n_rendered, 2);
  EXPECT_THAT(window.said(), HasSubstr("user Hello you <|im_end|>"));
}

}  // namespace

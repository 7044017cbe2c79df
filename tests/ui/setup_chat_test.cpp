// Chat templates in Setup: chat or raw prompts, the system message, the rendered prompt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/queue.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/streams.h"
#include "ui/files/setup_form.h"
#include "ui/shell/catalog.h"

namespace {

using namespace ui;
using testing::HasSubstr;
using testing::Not;

/// A catalog whose first model has a template.
Catalog chatty(int* n_rendered = nullptr) {
  Catalog catalog = streams::catalog();
  catalog.models.front().chat = [n_rendered](const std::string& prompt, const std::string& system) {
    if (n_rendered) ++*n_rendered;
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

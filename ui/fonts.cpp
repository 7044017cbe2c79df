#include "ui/fonts.h"

#include <imgui.h>

// The files themselves, as bytes between two symbols; the build says where they are.
// clang-format off
#define EMBED(name, file)                                        \
  __asm__(".section .rodata\n"                                   \
          ".balign 16\n"                                         \
          "ui_font_" #name "_begin:\n.incbin \"" file "\"\n"     \
          "ui_font_" #name "_end:\n.byte 0\n"                    \
          ".global ui_font_" #name "_begin\n"                    \
          ".global ui_font_" #name "_end\n"                      \
          ".previous\n");                                        \
  extern "C" const char ui_font_##name##_begin[];                \
  extern "C" const char ui_font_##name##_end[]
// clang-format on

EMBED(regular, UI_FONT_REGULAR);
EMBED(bold, UI_FONT_BOLD);
EMBED(mono, UI_FONT_MONO);

namespace ui {
namespace {

Fonts loaded;

ImFont* add(const char* begin, const char* end, float size, const ImFontConfig& config) {
  // The atlas only reads the bytes and does not own them.
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(const_cast<char*>(begin),
                                                    static_cast<int>(end - begin), size, &config);
}

}  // namespace

void load_fonts() {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  loaded.regular = add(ui_font_regular_begin, ui_font_regular_end, kTextSize, config);
  loaded.bold = add(ui_font_bold_begin, ui_font_bold_end, kTextSize, config);
  loaded.mono = add(ui_font_mono_begin, ui_font_mono_end, kMonoSize, config);
  // What Inconsolata lacks (other scripts, signs) is taken from Roboto where it has it.
  config.MergeMode = true;
  add(ui_font_regular_begin, ui_font_regular_end, kMonoSize, config);
}

const Fonts& fonts() {
  return loaded;
}

}  // namespace ui

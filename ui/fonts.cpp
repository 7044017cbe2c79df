#include "ui/fonts.h"

#include <imgui.h>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

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

// The first font file of this machine whose name begins so; empty: there is none.
std::string system_font(std::string_view begin) {
  namespace fs = std::filesystem;
  for (const char* root : {"/usr/share/fonts", "/usr/local/share/fonts"}) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(root, error), end; it != end && !error;
         it.increment(error))
      if (it->path().filename().string().starts_with(begin)) return it->path().string();
  }
  return {};
}

// Glyphs the font before it lacks are read from these, one at a time, when a text needs them.
void merge_system_fonts(float size) {
  static const std::array<std::string, 3> paths{system_font("DejaVuSans.ttf"),
                                                system_font("NotoSansCJK-Regular"),
                                                system_font("NotoSans-Regular")};
  ImFontConfig config;
  config.MergeMode = true;
  for (const std::string& path : paths)
    if (!path.empty()) ImGui::GetIO().Fonts->AddFontFromFileTTF(path.c_str(), size, &config);
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
  // Texts in other scripts stand in the mono font only.
  merge_system_fonts(kMonoSize);
}

const Fonts& fonts() {
  return loaded;
}

}  // namespace ui

#include "ui/widgets/fonts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <imgui.h>

#include "ui/widgets/font_file.h"

// Embeds a font file as bytes between two symbols; the build defines the paths.
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
std::string loaded_path;  // of the chosen font

ImFont* add(const char* begin, const char* end, float size, const ImFontConfig& config) {
  // The atlas reads the bytes but does not own them.
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(const_cast<char*>(begin),
                                                    static_cast<int>(end - begin), size, &config);
}

// A font file, mapped so that only the needed pages stay in memory: a Chinese font has 20 MB.
class FontFile {
 public:
  explicit FontFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat facts {};
    if (fstat(file, &facts) == 0 && facts.st_size > 0 && facts.st_size < (1 << 30)) {
      n_bytes_ = static_cast<std::size_t>(facts.st_size);
      void* mapped = mmap(nullptr, n_bytes_, PROT_READ, MAP_PRIVATE, file, 0);
      if (mapped != MAP_FAILED) bytes_ = static_cast<char*>(mapped);
    }
    close(file);
  }
  ~FontFile() {
    if (bytes_) munmap(bytes_, n_bytes_);
  }
  FontFile(FontFile&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), n_bytes_(other.n_bytes_) {}
  FontFile(const FontFile&) = delete;
  FontFile& operator=(const FontFile&) = delete;
  const char* begin() const { return bytes_; }
  const char* end() const { return bytes_ + n_bytes_; }
  explicit operator bool() const { return bytes_ != nullptr; }

 private:
  char* bytes_ = nullptr;
  std::size_t n_bytes_ = 0;
};

// Prefixes of the names of font files in Linux distributions, one row per script; the first usable file is used.
constexpr std::array<std::array<std::string_view, 7>, 4> kWanted{{
    {"DejaVuSans.ttf", "NotoSans-Regular", "LiberationSans-Regular", "FreeSans.ttf"},
    {"NotoSansCJK-Regular", "NotoSansCJKjp-Regular", "NotoSansCJKsc-Regular", "SourceHanSans",
     "wqy-microhei", "wqy-zenhei", "DroidSansFallback"},
    {"ipag", "TakaoGothic", "VL-Gothic", "NanumGothic", "uming"},
    {"NotoEmoji", "Symbola", "NotoSansSymbols2", "unifont"},
}};

std::vector<std::filesystem::path> folders_of_fonts() {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders{"/usr/share/fonts", "/usr/local/share/fonts"};
  if (const char* home = std::getenv("HOME"); home && *home) {
    folders.push_back(fs::path(home) / ".local/share/fonts");
    folders.push_back(fs::path(home) / ".fonts");
  }
  return folders;
}

// Merges system fonts into the font added last; glyphs that it lacks are loaded when a text needs them.
void merge_system_fonts(float size) {
  static const std::vector<FontFile> files = [] {
    std::vector<FontFile> list;
    for (const std::string& path : system_fonts(folders_of_fonts()))
      if (FontFile file(path); file) list.push_back(std::move(file));
    return list;
  }();
  ImFontConfig config;
  config.MergeMode = true;
  config.FontDataOwnedByAtlas = false;
  for (const FontFile& file : files) add(file.begin(), file.end(), size, config);
}

// Returns the mapped file of a font, which stays mapped because the atlas reads it later; nullptr if it cannot be used.
const FontFile* chosen_font(const std::string& path) {
  static std::map<std::string, FontFile> files;
  if (path.empty() || !why_not_font(path).empty()) return nullptr;
  const FontFile& file = files.try_emplace(path, path).first->second;
  return file ? &file : nullptr;
}

}  // namespace

std::vector<std::string> system_fonts(const std::vector<std::filesystem::path>& folders) {
  namespace fs = std::filesystem;
  std::array<std::array<std::string, kWanted[0].size()>, kWanted.size()> found;
  for (const fs::path& root : folders) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(root, error), end; it != end && !error;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      const std::string kind = it->path().extension().string();
      if (kind != ".ttf" && kind != ".otf" && kind != ".ttc") continue;
      for (std::size_t row = 0; row < kWanted.size(); ++row)
        for (std::size_t i = 0; i < kWanted[row].size(); ++i)
          if (!kWanted[row][i].empty() && name.starts_with(kWanted[row][i]) &&
              (found[row][i].empty() || it->path().string() < found[row][i]))
            found[row][i] = it->path().string();
    }
  }
  std::vector<std::string> paths;
  for (const auto& row : found)
    for (const std::string& path : row)
      if (!path.empty() && why_not_system_font(path).empty()) {
        paths.push_back(path);
        break;
      }
  return paths;
}

void load_fonts(const std::string& text_font) {
  constexpr ImWchar kEllipsis = 0x2026;
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  ImFontConfig merged = config;
  merged.MergeMode = true;
  const FontFile* chosen = chosen_font(text_font);
  loaded_path = chosen ? text_font : "";
  // Adds a font of the interface, after the chosen one if there is one.
  const auto add_text_font = [&](const char* begin, const char* end) {
    ImFont* font = chosen ? add(chosen->begin(), chosen->end(), kTextSize, config) : nullptr;
    ImFont* own = add(begin, end, kTextSize, chosen ? merged : config);
    // File names, model names, notices and tooltips may be in any script.
    merge_system_fonts(kTextSize);
    // Without an ellipsis Dear ImGui makes one of three points and asserts that the font's point is visible.
    if (font && std::exchange(font->EllipsisAutoBake, false))
      font->EllipsisChar = font->IsGlyphInFont(kEllipsis) ? kEllipsis : '.';
    return font ? font : own;
  };
  loaded.regular = add_text_font(ui_font_regular_begin, ui_font_regular_end);
  loaded.bold = add_text_font(ui_font_bold_begin, ui_font_bold_end);
  loaded.mono = add(ui_font_mono_begin, ui_font_mono_end, kMonoSize, config);
  // Glyphs that Inconsolata lacks come from Roboto.
  add(ui_font_regular_begin, ui_font_regular_end, kMonoSize, merged);
  merge_system_fonts(kMonoSize);
}

const std::string& loaded_text_font() {
  return loaded_path;
}

const Fonts& fonts() {
  return loaded;
}

}  // namespace ui

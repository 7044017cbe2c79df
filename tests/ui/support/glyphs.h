// The characters of a drawn frame as rectangles: which are cut by the part of the window they are in, and which cover each other.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <imgui.h>
#include <imgui_internal.h>

namespace glyphs {

/// A drawn character.
struct Glyph {
  std::string window;  // name of the window that drew it
  ImRect box;          // where it was drawn
  ImRect seen;         // the part inside its clip rectangle
  ImVec2 texture;      // the upper left corner of its texture
};

/// Returns the characters of the last frame that are at least partly visible.
inline std::vector<Glyph> drawn() {
  std::vector<Glyph> all;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (!window->WasActive || window->Hidden) continue;
    const ImDrawList* list = window->DrawList;
    for (const ImDrawCmd& command : list->CmdBuffer) {
      const ImRect clip(command.ClipRect.x, command.ClipRect.y, command.ClipRect.z,
                        command.ClipRect.w);
      // A character is two triangles over four vertices with texture coordinates that differ in both directions.
      for (unsigned i = 0; i + 6 <= command.ElemCount; ++i) {
        const ImDrawIdx* index = list->IdxBuffer.Data + command.IdxOffset + i;
        if (index[3] != index[0] || index[4] != index[2] || index[5] != index[0] + 3) continue;
        const ImDrawVert &a = list->VtxBuffer[static_cast<int>(command.VtxOffset + index[0])],
                         &c = list->VtxBuffer[static_cast<int>(command.VtxOffset + index[2])];
        if (a.uv.x == c.uv.x || a.uv.y == c.uv.y) continue;
        Glyph glyph{window->Name, {a.pos, c.pos}, {a.pos, c.pos}, a.uv};
        glyph.seen.ClipWith(clip);
        if (glyph.seen.GetWidth() > 0.5f && glyph.seen.GetHeight() > 0.5f) all.push_back(glyph);
        i += 5;
      }
    }
  }
  return all;
}

/// Returns the ASCII characters of the last frame that lie in a part of the screen, in the order of drawing, without blanks.
inline std::string text_in(const ImRect& part) {
  std::map<std::pair<float, float>, char> letters;
  ImFontAtlasBuilder* builder = ImGui::GetIO().Fonts->Builder;
  for (int i = 0; i < builder->BakedPool.Size; ++i)
    for (const ImFontGlyph& glyph : builder->BakedPool[i].Glyphs)
      if (glyph.Visible && glyph.Codepoint < 128)
        letters[{glyph.U0, glyph.V0}] = static_cast<char>(glyph.Codepoint);
  std::string text;
  for (const Glyph& glyph : drawn()) {
    const auto letter = letters.find({glyph.texture.x, glyph.texture.y});
    if (letter != letters.end() && part.Contains(glyph.seen)) text += letter->second;
  }
  return text;
}

/// Returns true if a character is cut at the left or the right by more than its own margin.
inline bool is_cut_sideways(const Glyph& glyph) {
  return glyph.box.GetWidth() - glyph.seen.GetWidth() > 1.5f;
}

/// Returns true if a character is cut at the top or the bottom by more than its own margin.
inline bool is_cut_in_height(const Glyph& glyph) {
  return glyph.box.GetHeight() - glyph.seen.GetHeight() > 1.5f;
}

/// Returns pairs of windows whose visible characters cover each other, as "A over B"; each pair once.
inline std::vector<std::string> covering(std::vector<Glyph> all) {
  std::vector<std::string> found;
  std::ranges::sort(all, {}, [](const Glyph& g) { return g.seen.Min.x; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size() && all[j].seen.Min.x < all[i].seen.Max.x; ++j) {
      ImRect both = all[i].seen;
      both.ClipWith(all[j].seen);
      constexpr float kTouch = 0.5f;  // neighbours in a word may share this many pixels
      if (both.GetWidth() <= kTouch || both.GetHeight() <= kTouch) continue;
      const float least = std::min(all[i].seen.GetArea(), all[j].seen.GetArea());
      if (both.GetArea() < 0.4f * least) continue;
      const std::string pair = all[i].window + " over " + all[j].window;
      if (std::ranges::find(found, pair) == found.end()) found.push_back(pair);
    }
  }
  return found;
}

}  // namespace glyphs

// The vertices of one colour in a drawn frame.
#pragma once

#include <string_view>

#include <imgui.h>
#include <imgui_internal.h>

namespace inks {

/// The number of corners of triangles of a colour that a window drew, and the number of these outside their clip rectangle.
struct Drawn {
  int n = 0, n_cut = 0;
};
/// Counts them in the last frame. A corner may lie half a pixel outside: ImPlot widens lines by a transparent pixel on each side to smooth them.
inline Drawn drawn(std::string_view window_name, ImU32 ink) {
  constexpr float kSmoothing = 0.5f;
  Drawn found;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (!window->WasActive || window->Hidden || window_name != window->Name) continue;
    const ImDrawList* list = window->DrawList;
    for (const ImDrawCmd& command : list->CmdBuffer) {
      ImRect clip(command.ClipRect.x, command.ClipRect.y, command.ClipRect.z, command.ClipRect.w);
      clip.Expand(kSmoothing);
      for (unsigned i = 0; i < command.ElemCount; ++i) {
        const ImDrawIdx index = list->IdxBuffer.Data[command.IdxOffset + i];
        const ImDrawVert& corner = list->VtxBuffer[static_cast<int>(command.VtxOffset + index)];
        if (corner.col != ink) continue;
        ++found.n;
        found.n_cut += !clip.Contains(corner.pos);
      }
    }
  }
  return found;
}

}  // namespace inks

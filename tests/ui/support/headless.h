// Draws frames of the shell without a window.
#pragma once

#include <functional>
#include <sstream>
#include <string>

#include <imgui.h>
#include <imgui_internal.h>
#include <implot.h>

#include "engine/event/queue.h"
#include "ui/shell/shell.h"
#include "ui/widgets/fonts.h"

namespace headless {

// A Dear ImGui context with no display and no renderer.
class Headless {
 public:
  Headless() {
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {1600, 1000};
    io.IniFilename = nullptr;
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    ui::load_fonts();
  }
  ~Headless() {
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) settle(texture, true);
    ImPlot::DestroyContext();
    ImGui::DestroyContext();
  }

  /// Draws one frame. @return the number of vertices drawn
  int frame(ui::Shell& shell) {
    draw([&] { shell.draw(1.0 / 60); });
    return ImGui::GetDrawData()->TotalVtxCount;
  }
  /// Returns the words of a frame in the order in which they are drawn, separated by spaces, without the text of
  /// token cells.
  std::string said(ui::Shell& shell) {
    return said([&] { shell.draw(1.0 / 60); });
  }
  std::string said(const std::function<void()>& panel) {
    std::string text;
    draw([&] {
      ImGui::LogToBuffer(0);
      panel();
      std::istringstream in(ImGui::GetCurrentContext()->LogBuffer.c_str());
      for (std::string word; in >> word;) text += (text.empty() ? "" : " ") + word;
      ImGui::LogFinish();
    });
    return text;
  }

 private:
  static void draw(const std::function<void()>& panels) {
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    ImGui::NewFrame();
    panels();
    ImGui::Render();
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) settle(texture, false);
  }
  static void settle(ImTextureData* texture, bool all) {
    if (texture->Status == ImTextureStatus_WantDestroy || all) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    } else if (texture->Status != ImTextureStatus_OK) {
      texture->SetTexID(1);
      texture->SetStatus(ImTextureStatus_OK);
    }
  }
};

}  // namespace headless

// Frames of the shell without a window.
#pragma once

#include <imgui.h>

#include "ui/fonts.h"
#include "ui/shell.h"

namespace headless {

// A Dear ImGui context with no display and no renderer.
class Headless {
 public:
  Headless() {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {1600, 1000};
    io.IniFilename = nullptr;
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    ui::load_fonts();
  }
  ~Headless() {
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) settle(texture, true);
    ImGui::DestroyContext();
  }

  /// @return corners drawn
  int frame(ui::Shell& shell) {
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    ImGui::NewFrame();
    shell.draw(1.0 / 60);
    ImGui::Render();
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) settle(texture, false);
    return ImGui::GetDrawData()->TotalVtxCount;
  }

 private:
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

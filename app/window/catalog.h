// The choices that the window offers in Setup.
#pragma once

namespace ui {
struct Catalog;
}

namespace app {

struct WindowCommandOptions;

/// Returns all choices except devices, which WindowDevices adds.
ui::Catalog window_catalog(const WindowCommandOptions& options);

}  // namespace app

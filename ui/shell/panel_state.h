// The state that panels keep between frames: choices of the user, and data prepared for drawing. A panel defines its own type; the
// shell owns one object of each type and notifies them all when the document changes.
#pragma once

#include <map>
#include <memory>

namespace ui {

/// Base of a panel's state.
class PanelState {
 public:
  PanelState() = default;
  virtual ~PanelState() = default;
  PanelState(const PanelState&) = delete;
  PanelState& operator=(const PanelState&) = delete;
  /// Another session or recording is shown: forget everything that refers to runs of the previous one.
  virtual void document_changed() {}
  /// Another training run is shown: forget everything prepared from the previous one.
  virtual void training_changed() {}
  /// The style of durations has changed: forget prepared texts that contain any.
  virtual void units_changed() {}
};

/// Owns one state object of each type.
class PanelStates {
 public:
  /// Returns the object of this type; it is created at the first call.
  template <class State>
  State& get() {
    std::unique_ptr<PanelState>& slot = slots_[&key_of<State>];
    if (!slot) slot = std::make_unique<State>();
    return static_cast<State&>(*slot);
  }
  /// Notifies every state.
  void document_changed() {
    for (const auto& [key, state] : slots_) state->document_changed();
  }
  /// Notifies every state.
  void training_changed() {
    for (const auto& [key, state] : slots_) state->training_changed();
  }
  /// Notifies every state.
  void units_changed() {
    for (const auto& [key, state] : slots_) state->units_changed();
  }

 private:
  template <class State>
  static inline char key_of = 0;  // its address identifies the type
  std::map<const void*, std::unique_ptr<PanelState>> slots_;
};

}  // namespace ui

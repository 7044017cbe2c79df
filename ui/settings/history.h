// Undo and redo of what the user arranges: settings, notes on a document, the layout of panels.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ui/files/notes.h"
#include "ui/files/settings.h"

namespace ui {

/// The state that undo restores.
struct Arrangement {
  std::string settings;         // to_text(chosen_part())
  Notes notes;                  // without temporary marks
  std::string layout;           // layout_text(); empty: not changed so far
  bool is_of_document = false;  // the layout is that of the document, and not the user's own
  /// Compares what the user sees.
  bool operator==(const Arrangement& other) const {
    return settings == other.settings && notes == other.notes && layout == other.layout;
  }
};

/// Returns the parts that differ, in words: "settings and layout".
std::string changed_words(const Arrangement& a, const Arrangement& b);

/// The arrangements before and after the present one.
class History {
 public:
  static constexpr std::size_t kMost = 200;  // steps that can be undone

  /// Takes the present arrangement. If it differs from the last one, undo returns to that one, and nothing can be redone.
  void take(Arrangement now);
  /// Fills in the layout of all arrangements that have none yet, without adding a step.
  void know_layout(const std::string& layout);
  /// Makes the arrangement before the last change the present one and returns it; nullopt if there is none.
  std::optional<Arrangement> undo();
  /// Makes the arrangement that the last undo() left the present one and returns it; nullopt if there is none.
  std::optional<Arrangement> redo();
  /// Returns the present arrangement, or nullptr before the first take().
  const Arrangement* now() const { return now_ ? &*now_ : nullptr; }
  /// Forgets every step, because another document is shown.
  void forget();

 private:
  std::optional<Arrangement> now_;
  std::vector<Arrangement> before_, after_;  // the nearest is last
};

}  // namespace ui

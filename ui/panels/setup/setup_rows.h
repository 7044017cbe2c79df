// Rows of the Setup panel: a label at the left, a field at the right, what is wrong below.
#pragma once

#include <string>

#include "engine/event/reasoning_bounds.h"
#include "ui/shell/catalog.h"
#include "ui/files/setup_form.h"

namespace ui {

/// The label, explained while it is pointed at; the next item takes the right part of the row.
void row_label(const char* label, const std::string& help);
/// A tick for what a value below 0 stands for, and room for a field beside it where it is not
/// ticked. @return whether there is a field to draw
bool below_zero_tick(const std::string& meaning, std::string& value);
int within(int value, engine::Bounds of);
/// A whole number.
void whole_row(
    const char* label, const char* id, int& value, engine::Bounds of, const std::string& help);
/// A file's path, a line of its own, with a way to look for it; what is wrong with it stands below.
void file_row(const char* label,
              const char* id,
              const char* hint,
              std::string& path,
              const std::string& help);
/// An option of a decoder in the field of its kind; a tree with what it comes to,
/// or why it is none.
/// @param why_idle  the option has nothing to do here; empty: it has
void option_row(LaneForm& lane,
                const Catalog& catalog,
                const CatalogOption& option,
                const std::string& why_idle);
/// What cannot be set here, and why.
void greyed_row(const char* label, const std::string& value, const std::string& why);

}  // namespace ui

// Rows of the panel Setup: a label at the left, a field at the right, problems below.
#pragma once

#include <string>
#include <string_view>

#include "engine/event/reasoning_bounds.h"
#include "ui/shell/catalog.h"

namespace ui {

struct LaneForm;

/// Draws the label with `help` as its tooltip; the next item takes the right part of the row.
void row_label(const char* label, const std::string& help);
/// Draws a checkbox for the special meaning of negative values.
/// @return true if it is not ticked and the caller has to draw a field beside it
bool below_zero_tick(const std::string& meaning, std::string& value);
/// Returns the value, clamped to the bounds.
int within(int value, engine::Bounds of);
/// Draws a row for an integer.
void whole_row(
    const char* label, const char* id, int& value, engine::Bounds of, const std::string& help);
/// Draws a row for a file: a button to browse, the path on a line of its own, and below it why the file cannot be used.
/// @param ending  lists only files whose names end so
void file_row(const char* label,
              const char* id,
              const char* hint,
              std::string& path,
              const std::string& help,
              std::string_view ending = ".jsonl");
/// Draws a row for an option of a decoder, with its label and, if there is room, its name; for a tree also its size, or why it is invalid.
/// @param why_idle  why the option has no effect here; empty if it has one
void option_row(LaneForm& lane,
                const Catalog& catalog,
                const CatalogOption& option,
                const std::string& why_idle);
/// Draws a row whose value cannot be set here, with the reason as its tooltip.
void greyed_row(const char* label, const std::string& value, const std::string& why);

}  // namespace ui

// Checks the outlines of an OpenType font with the table CFF (Adobe Technical Notes 5176 and 5177). The reader in Dear ImGui follows the offsets
// of the table up to 512 MB after its beginning, also after the end of the file, and runs its subroutines without a limit of time.
#pragma once

#include <cstdint>
#include <string_view>

namespace ui {

/// Returns true if the reader uses only bytes of the table, draws each glyph after a bounded number of operators, no glyph extends farther than
/// `most`, and few are that large. A glyph whose operators the reader does not know is blank, which is no fault.
/// @param cff   the table CFF
/// @param most  in units of the font
bool are_cff_outlines_safe(std::string_view cff, std::uint32_t n_glyphs, int most);

}  // namespace ui

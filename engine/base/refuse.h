// The one shape of a refusal: "file: field: found X, expected Y". What came out of a file is shown
// escaped and cut, so that no terminal or log ever receives its raw bytes.
#pragma once

#include <string>
#include <string_view>

namespace engine {

/// `text` without control characters, bidirectional overrides or invalid UTF-8 (written \xNN or
/// \u{N}), cut after 120 code points with "...".
std::string escaped(std::string_view text);
/// The same between double quotes.
std::string in_quotes(std::string_view text);

/// @throws Error(BadInput)  always
[[noreturn]] void refuse(const std::string& file,
                         const std::string& field,
                         const std::string& found,
                         const std::string& expected);

}  // namespace engine

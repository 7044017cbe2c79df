// Strings and times as trace files want them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace engine {

/// "text" with quotes: raw UTF-8 above U+007F (Perfetto refuses escaped surrogates), control
/// characters escaped, bytes that are no UTF-8 as <0xF0>.
std::string json_quoted(std::string_view bytes);

/// Nanoseconds as microseconds with at most 3 decimals: 10500 -> "10.5".
std::string as_microseconds(std::int64_t ns);

}  // namespace engine

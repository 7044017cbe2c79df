// The one shape of a refusal: "file: field: found X, expected Y". Callers pass text from a file
// through escaped() or in_quotes() first.
#pragma once

#include <string>

#include "engine/base/text.h"

namespace engine {

/// @param file  shown escaped, as a whole; the other texts as they are
/// @throws Error(BadInput)  always
[[noreturn]] void refuse(const std::string& file,
                         const std::string& field,
                         const std::string& found,
                         const std::string& expected);

}  // namespace engine

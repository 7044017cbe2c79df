#include "engine/base/refuse.h"

#include "engine/base/types.h"

namespace engine {

void refuse(const std::string& file,
            const std::string& field,
            const std::string& found,
            const std::string& expected) {
  constexpr int kMaxPathCharacters = 4096;  // the caller named the path, so it is shown whole
  throw Error(ErrorCode::BadInput, escaped(file, kMaxPathCharacters) + ": " + field + ": found " +
                                       found + ", expected " + expected);
}

}  // namespace engine

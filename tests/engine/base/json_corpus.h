// Odd and malformed JSON texts by category, for every reader of JSON there is here. What the
// grammar of RFC 8259 says of each is noted; where it leaves a choice, only that nothing crashes
// counts.
#pragma once

#include <string>
#include <vector>

namespace engine::test {

enum class Verdict { Accept, Reject, Either };

struct OddJson {
  std::string category;
  std::string text;
  Verdict verdict = Verdict::Reject;
};

std::vector<OddJson> odd_json();
/// The text for a message: printable, at most 60 bytes.
std::string shown(const OddJson& odd);

}  // namespace engine::test

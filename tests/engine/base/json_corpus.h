// Odd and malformed JSON texts by category, for every JSON reader of the program. Each entry says
// whether RFC 8259's grammar accepts it; where the RFC leaves a choice, readers must only not
// crash.
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
/// Formats the entry for a message: its category and the first 60 bytes, made printable.
std::string shown(const OddJson& odd);

}  // namespace engine::test

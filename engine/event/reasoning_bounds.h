// Ranges of the settings of reasoning (StartReasoning in engine/event/command.h), for the window's
// form and the command line.
#pragma once

#include <cstdint>

namespace engine {

/// The range low..high, both included.
struct Bounds {
  std::int64_t low, high;
};

namespace reasoning {

inline constexpr Bounds kLevel{1, 3};                      // of a generated task
inline constexpr Bounds kStart{0, std::int64_t{1} << 50};  // number of the first question
inline constexpr Bounds kCount{1, 1'000'000};              // questions
inline constexpr Bounds kActions{0, 40};                   // actions of a plan; 0: any
inline constexpr Bounds kShots{0, 100};                    // worked examples; -1: as many as fit
inline constexpr Bounds kBatch{1, 64};                     // texts in one forward
inline constexpr Bounds kMaxTokens{1, 100'000};            // tokens of a rationale
inline constexpr Bounds kDepth{1, 100};                    // levels of a tree
inline constexpr Bounds kThoughts{1, 64};                  // thoughts below each node
inline constexpr Bounds kBeam{1, 64};                      // nodes kept in each level

}  // namespace reasoning
}  // namespace engine

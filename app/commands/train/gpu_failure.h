// What a training says when its GPU fails: what was kept, and how to go on from there.
#pragma once

#include <string>
#include <vector>

#include "kernels/error.h"

namespace app {

/// What --resume goes on from where this file is there: "the last checkpoint".
struct KeptFile {
  std::string path, words;
};

/// The error with the way on, if it is this device's; any other as it is.
/// @param device  as a person named it
/// @param kept    the first that is there is told
kernels::Error with_the_way_on(const kernels::Error& error,
                               const std::string& device,
                               const std::vector<KeptFile>& kept);

/// Work on a device, whose errors are told so.
template <class Work>
auto or_the_way_on(const std::string& device, const std::vector<KeptFile>& kept, const Work& work) {
  try {
    return work();
  } catch (const kernels::Error& error) {
    throw with_the_way_on(error, device, kept);
  }
}

}  // namespace app

// The error message of a training after a GPU failure: names the saved file and how to resume.
#pragma once

#include <string>
#include <vector>

#include "kernels/error.h"

namespace app {

/// A file that --resume can continue from, and its description: "the last checkpoint".
struct KeptFile {
  std::string path, description;
};

/// Adds a remedy to the message of an error of this device; returns any other error unchanged.
/// @param device  as given on the command line
/// @param kept    files to resume from; the message names the first one that exists
kernels::Error with_advice(const kernels::Error& error,
                           const std::string& device,
                           const std::vector<KeptFile>& kept);

/// Runs `work`, which computes on a device, and adds the remedy to its errors.
template <class Work>
auto with_advice_on_failure(const std::string& device,
                            const std::vector<KeptFile>& kept,
                            const Work& work) {
  try {
    return work();
  } catch (const kernels::Error& error) {
    throw with_advice(error, device, kept);
  }
}

}  // namespace app

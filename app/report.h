// Results as the command line gives them: the JSON contract other programs read, and tables for
// people.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/schedule/run.h"

namespace app {

/// One result (docs/contracts.md). Unset comparisons are null.
nlohmann::json to_json(const engine::RunResult& result, const engine::LoadedModel& loaded);
/// {"cpu", "threads", "ops", ...} of the machine and device.
nlohmann::json machine_json(const kernels::Device& device);
/// Two-space indented text with a newline; invalid UTF-8 becomes U+FFFD.
std::string dumped(const nlohmann::json& document);

/// Left-aligned first column, the others right-aligned, two spaces between.
std::string table(const std::vector<std::vector<std::string>>& rows);

double median(std::vector<double> values);

}  // namespace app

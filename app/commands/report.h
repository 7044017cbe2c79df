// Results as the command line gives them: the JSON contract other programs read.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace engine {
struct RunModels;
struct RunRequest;
struct RunResult;
}  // namespace engine
namespace kernels {
class Device;
}

namespace app {

/// One result (docs/contracts.md). Unset comparisons are null.
nlohmann::json to_json(const engine::RunResult& result, const engine::RunModels& models);
/// {"decoder", "model", "scale", "device", "dtype"}, and "draft" and "heads" where it needs them.
nlohmann::json models_json(const engine::RunModels& models, const std::string& decoder);
/// Whether what this request writes has the distribution of plain decoding.
bool is_lossless(const engine::RunRequest& request);
/// What a report says of a run that has not: ", NOT lossless with these options".
extern const char* const kNotLossless;
/// A whole number without a point: 40, not 40.0.
nlohmann::json number_json(double value);
/// {"cpu", "threads", "ops", ...} of the machine and device.
nlohmann::json machine_json(const kernels::Device& device);
/// Two-space indented text with a newline; invalid UTF-8 becomes U+FFFD.
std::string dumped(const nlohmann::json& document);

double median(std::vector<double> values);
/// "12:05".
std::string minutes_and_seconds(double seconds);

}  // namespace app

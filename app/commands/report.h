// Converts results to the JSON documents of docs/contracts.md.
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

/// The result of a run. The fields of comparisons that were not made are null.
nlohmann::json to_json(const engine::RunResult& result, const engine::RunModels& models);
/// {"decoder", "model", "scale", "device", "dtype"}, and "draft" and "heads" if the decoder needs
/// them.
nlohmann::json models_json(const engine::RunModels& models, const std::string& decoder);
/// True if the output of this request has the same distribution as that of plain decoding.
bool is_lossless(const engine::RunRequest& request);
/// The words that a summary adds if is_lossless() is false: ", NOT lossless with these options".
extern const char* const kNotLossless;
/// A number; whole numbers without a decimal point.
nlohmann::json number_json(double value);
/// {"cpu", "threads", "ops", ...}: describes the machine and device.
nlohmann::json machine_json(const kernels::Device& device);
/// Indented text with a final newline; invalid UTF-8 becomes U+FFFD.
std::string dumped(const nlohmann::json& document);

/// The median; 0 if there are no values.
double median(std::vector<double> values);
/// A duration as minutes and seconds: "12:05"; "0:00" for a negative one.
std::string minutes_and_seconds(double seconds);

}  // namespace app

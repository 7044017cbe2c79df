#include "app/commands/report.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/measure/spread.h"
#include "engine/event/drafted_by.h"
#include "engine/run/run.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/cpu/probe.h"
#include "kernels/device.h"
#include "kernels/thread_sharing.h"

namespace app {

using nlohmann::json;

namespace {

/// The part of a result's text that each token adds. The joined parts are the text.
std::vector<std::string> text_by_token(const engine::RunResult& result,
                                       const engine::Model& model) {
  std::vector<std::string> parts;
  engine::TextStream stream(*model.tokenizer(), result.request.prompt_tokens);
  // number of bytes of the text that are left; the text excludes a stop string
  std::size_t n_left = result.text.size();
  for (std::size_t i = 0; i < result.tokens.size(); i++) {
    std::string part = stream.push(std::span(result.tokens).subspan(i, 1));
    if (i + 1 == result.tokens.size()) part += stream.finish();
    part.resize(std::min(part.size(), n_left));
    n_left -= part.size();
    parts.push_back(std::move(part));
  }
  return parts;
}

json token_info(const engine::RunResult& result, const engine::Model& model) {
  json list = json::array();
  const std::vector<std::string> text = text_by_token(result, model);
  for (std::size_t i = 0; i < result.tokens.size(); i++) {
    const engine::TokenFacts& facts = result.facts.at(i);
    list.push_back(
        {{"id", result.tokens[i]},
         {"text", text[i]},
         {"logp", std::isfinite(facts.logp) ? json(facts.logp) : json(nullptr)},
         {"drafted_by", engine::drafted_by(result.request.decoder, facts.status, facts.origin)}});
  }
  return list;
}

}  // namespace

json to_json(const engine::RunResult& result, const engine::RunModels& models) {
  json out = models_json(models, result.request.decoder);
  out["id"] = result.request.prompt_id;
  out["lossless"] = is_lossless(result.request);
  out["seed"] = result.request.sampling.seed;
  out["prompt_tokens"] = result.request.prompt_tokens;
  if (!result.request.rendered_prompt.empty())
    out["rendered_prompt"] = result.request.rendered_prompt;
  out["tokens"] = result.tokens;
  out["text"] = result.text;
  out["token_info"] = token_info(result, *models.target.model);
  out["stop_reason"] = result.stop_reason;
  if (result.stop_reason == "stop_string") out["stop_string"] = result.stop_string;
  if (result.stop_reason == "stop_id") out["stop_id"] = result.tokens.back();
  if (!result.approximate.empty()) {
    out["approximate_tokens"] = result.approximate;
    out["approximate"] = result.approximate_text;
  }
  out["steps"] = result.n_steps;
  out["tokens_per_step"] = result.tokens_per_step();
  out["prefill_ms"] = result.prefill_ms;
  out["decode_ms"] = result.decode_ms;
  out["tokens_per_second"] = result.tokens_per_second();
  out["identical_to_ar"] = result.identical_to_ar ? json(*result.identical_to_ar) : json(nullptr);
  if (const auto& difference = result.difference) {
    const auto lead = [](std::optional<float> margin) {
      return margin ? json(*margin) : json(nullptr);
    };
    out["difference"] = {{"token", difference->at},
                         {"margin", lead(difference->margin)},
                         {"margin_of_ar", lead(difference->margin_of_ar)}};
  }
  out["speedup"] = result.speedup ? json(*result.speedup) : json(nullptr);
  if (result.repetition) {
    out["identical_to_recording"] = result.repetition->same_tokens;
    out["steps_as_recorded"] = result.repetition->same_steps;
  }
  out["metrics"] = json::object();
  for (const auto& [name, value] : result.metrics) out["metrics"][name] = number_json(value);
  return out;
}

json models_json(const engine::RunModels& models, const std::string& decoder) {
  const engine::Model& model = *models.target.model;
  json out = {{"decoder", decoder},
              {"model", model.name()},
              {"scale", engine::name_of(model.scale())},
              {"device", model.device().name()},
              {"dtype", model.weight_type()}};
  if (engine::decoder_named(decoder).needs_draft && models.draft)
    out["draft"] = models.draft->model->name();
  if (const engine::LoadedHeads* heads = models.heads_of(decoder)) out["heads"] = heads->files.name;
  return out;
}

const char* const kNotLossless = ", NOT lossless with these options";

bool is_lossless(const engine::RunRequest& request) {
  const engine::DecoderInfo& decoder = engine::decoder_named(request.decoder);
  return engine::is_lossless(decoder, request.options, request.sampling);
}

json number_json(double value) {
  // 2^53; up to it every whole number has an exact double
  constexpr double kWholeBelow = 9007199254740992;
  const bool whole = std::trunc(value) == value && std::abs(value) < kWholeBelow;
  return whole ? json(static_cast<std::int64_t>(value)) : json(value);
}

json machine_json(const kernels::Device& device) {
  return {{"cpu", kernels::cpu::processor_name()},
          {"gpu", device.title().empty() ? json(nullptr) : json(device.title())},
          {"threads", kernels::active_threads(device)},
          {"ops", device.ops().name}};
}

std::string dumped(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

double median(std::vector<double> values) {
  return values.empty() ? 0 : engine::spread_of(std::move(values)).median;
}

std::string minutes_and_seconds(double seconds) {
  // A negative duration, or one that is not a number, becomes 0:00.
  const auto whole = seconds > 0 ? static_cast<std::int64_t>(std::min(seconds, 1e12)) : 0;
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace app

// Prints the speed-up that a decoder has if steps take known times: a model decodes real prompts, and only the
// times are given. So the result has no noise of the machine. Not a test; docs/decoders have its figures.
//   simulate_speed MODEL PROMPTS DECODER[:NAME=VALUE,...] TIMES
//     PROMPTS  output of `decoscope compare --json`, whose prompts are decoded
//     TIMES    "1:11,2:11.4,8:12.3,32:28": ms of a step by rows, linear between and beyond them
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/decode/control/step_control.h"
#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/step/stepper.h"
#include "engine/store/model_store.h"

namespace engine {
namespace {

constexpr int kMaxTokens = 96;

/// The parts of a text between separators.
std::vector<std::string> split(const std::string& text, char separator) {
  std::istringstream stream(text);
  std::vector<std::string> parts;
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// ms of a step by rows.
class Times {
 public:
  explicit Times(const std::string& text) {
    for (const std::string& pair : split(text, ','))
      ms_[std::stoi(pair)] = std::stod(pair.substr(pair.find(':') + 1));
    if (ms_.size() < 2 || ms_.begin()->first != 1)
      throw Error(ErrorCode::Usage, "TIMES begin with 1 row");
  }
  double operator()(int n_rows) const {
    auto above = ms_.lower_bound(std::max(n_rows, 2));
    if (above == ms_.end()) --above;
    const auto below = std::prev(above);
    const double slope = (above->second - below->second) / (above->first - below->first);
    return below->second + slope * (n_rows - below->first);
  }

 private:
  std::map<int, double> ms_;
};

/// The different prompts of a comparison.
std::vector<std::vector<TokenId>> prompts_of(const std::string& path) {
  std::ifstream file(path);
  std::set<std::string> seen;
  std::vector<std::vector<TokenId>> prompts;
  const nlohmann::json document = nlohmann::json::parse(file);
  for (const auto& run : document.at("results"))
    if (seen.insert(run.at("id").get<std::string>()).second)
      prompts.push_back(run.at("prompt_tokens").get<std::vector<TokenId>>());
  if (prompts.empty()) throw Error(ErrorCode::BadInput, path + ": no results with prompts");
  return prompts;
}

/// The time of plain decoding / the time of the decoder's steps.
double speedup_of(LanguageModel& model, Lane& lane, const Times& times) {
  prefill(model, lane.sequence);
  lane.decoder->begin(lane.sequence);
  Stepper stepper(model, nullptr);
  Lane* lanes[] = {&lane};
  double ms = 0;
  while (!lane.sequence.finished()) {
    stepper.step(lanes);
    ms += times(lane.tree.n_rows());
  }
  return times(1) * static_cast<double>(lane.sequence.generated().size()) / ms;
}

void simulate(const std::string& name,
              const std::string& prompts,
              const std::string& decoder,
              const Times& times) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 0);
  Model& model = *store.get({.model = name}).model;
  OptionValues options;
  if (const auto colon = decoder.find(':'); colon != std::string::npos)
    for (const std::string& option : split(decoder.substr(colon + 1), ','))
      options[option.substr(0, option.find('='))] = option.substr(option.find('=') + 1);
  StepControl control{CostModel(times)};
  const auto texts = std::make_shared<EarlierTexts>();
  double sum = 0, worst = 1e9;
  int n = 0;
  for (const std::vector<TokenId>& prompt : prompts_of(prompts)) {
    const DecoderContext context{
        .target = model,
        .sampling = {},
        .limits = {.max_tokens = kMaxTokens, .eos_ids = model.config().eos_ids},
        .control = &control,
        .trees_dir = DECOSCOPE_SOURCE_DIR "/assets/trees",
        .texts = texts};
    Lane lane = make_lane(static_cast<RunId>(n + 1), model, prompt, split(decoder, ':')[0], context,
                          options);
    const double speedup = speedup_of(model, lane, times);
    if (const int n_kept = lane.options->n_kept_tokens(); n_kept > 0)
      texts->add(lane.run, lane.sequence.tokens(), prompt.size(), n_kept);
    std::printf("%.3f (%d steps, %.2f rows)\n", speedup, lane.n_steps,
                static_cast<double>(lane.n_rows) / lane.n_steps);
    sum += std::log(speedup), worst = std::min(worst, speedup), n++;
  }
  std::printf("%s: geometric mean %.3f, worst %.3f, %d prompts\n", decoder.c_str(),
              std::exp(sum / n), worst, n);
}

}  // namespace
}  // namespace engine

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: simulate_speed MODEL PROMPTS DECODER[:NAME=VALUE,...] TIMES\n");
    return 2;
  }
  try {
    engine::simulate(argv[1], argv[2], argv[3], engine::Times(argv[4]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulate_speed: %s\n", error.what());
    return 1;
  }
}

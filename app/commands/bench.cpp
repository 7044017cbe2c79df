// Measures this machine and this engine: `bench probe|step|decode|kernels`.
#include <sys/resource.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "app/commands/generation.h"
#include "app/commands/notes.h"
#include "app/commands/report.h"
#include "app/commands/step_times.h"
#include "engine/base/table.h"
#include "engine/run/run.h"
#include "engine/store/memory_plan.h"
#include "kernels/cpu/probe.h"

namespace app {
namespace {

using nlohmann::json;

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024LL;
}

/// The exit code: 0, or Cancelled after Ctrl+C.
int exit_code() {
  return interrupted() ? static_cast<int>(engine::ErrorCode::Cancelled) : 0;
}

/// Prints a document, marked as interrupted after Ctrl+C; values not measured are null or absent.
void print_document(json document) {
  if (interrupted()) document["stopped"] = true;
  print(dumped(document));
}

/// Memory bandwidth in GB/s; null after Ctrl+C.
json read_probe(kernels::Device& device) {
  const std::optional<double> gbps = read_gbps(device);
  return gbps ? json(*gbps) : json(nullptr);
}
json multiply_probe(kernels::Device& device, kernels::DType dtype) {
  if (interrupted() || !kernels::cpu::has_probes(device)) return nullptr;
  return kernels::cpu::multiply_gflops(device, dtype);
}

/// A number with its unit, or "not measured".
std::string measured(const json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>())
                           : std::string("not measured");
}

/// The name of the library that multiplies the full blocks of a prompt; null: the same kernels as
/// for steps.
json prompts_json(const kernels::Device& device) {
  const std::string products = device.prompt_products();
  return products.empty() ? json(nullptr) : json(products);
}

json probe_json(kernels::Device& device, kernels::DType dtype) {
  json machine = machine_json(device);
  machine["read_gbps"] = read_probe(device);
  machine["gflops"] = multiply_probe(device, dtype);
  machine["gflops_f32"] = multiply_probe(device, kernels::DType::F32);
  return machine;
}

int bench_probe(const BenchOptions& options) {
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  kernels::Device& device = store.device(options.model.device);
  json out = machine_json(device);
  out["read_gbps"] = read_probe(device);
  out["gflops"] = json::object();
  for (const kernels::DType dtype :
       {kernels::DType::F32, kernels::DType::BF16, kernels::DType::F16}) {
    out["gflops"][kernels::name_of(dtype)] = multiply_probe(device, dtype);
  }
  const bool probed = kernels::cpu::has_probes(device);
  const std::string reason =
      device.name() +
      ": the probes run on the CPU only; `bench step` and `bench kernels` measure this device";
  out["reason"] = probed ? json(nullptr) : json(reason);
  if (options.json) {
    print_document(out);
  } else if (!probed) {
    print(reason + "\n");
  } else {
    print(fmt::format(
        "{}, {} threads, kernels {}\n  memory read   {}\n  f32 multiply  {}\n  bf16 "
        "multiply {}\n",
        out["cpu"].get<std::string>(), device.n_threads(), device.ops().name,
        measured(out["read_gbps"], "{:.1f} GB/s"), measured(out["gflops"]["f32"], "{:.0f} GFLOP/s"),
        measured(out["gflops"]["bf16"], "{:.0f} GFLOP/s")));
  }
  return exit_code();
}

/// Checks that the model has room for the context.
/// @param n_after  positions needed after the context
/// @throws Error(Resources)  the model has too few positions; the message has the range of
///                           --context
void check_context(const BenchOptions& options, const engine::Model& model, int n_after) {
  const int most = model.max_seq_len() - n_after;
  if (options.context <= most) return;
  throw engine::Error(
      engine::ErrorCode::Resources,
      fmt::format("--context: found {}, expected a whole number from 1 to {}: the context length "
                  "of {} is {} tokens, {} of which are needed after it",
                  options.context, std::max(most, 1), model.name(), model.max_seq_len(), n_after));
}

std::vector<engine::TokenId> context_tokens(int n, int vocab_size) {
  std::vector<engine::TokenId> tokens;
  for (std::int64_t i = 0; i < n; i++)
    tokens.push_back(static_cast<engine::TokenId>((5 * i + 1) % vocab_size));
  return tokens;
}

/// Decodes a few tokens after `context` others, to measure the memory that `generate` needs.
void generate_a_little(engine::LoadedModel& loaded, int context) {
  engine::RunRequest run{
      .prompt_id = "bench", .decoder = "ar", .max_tokens = 16, .ignore_eos = true};
  run.prompt_tokens = context_tokens(context, loaded.model->vocab_size());
  engine::run_to_end(loaded, run, 0, nullptr, interrupted);
}

/// The least work of attention in a step of n_texts sequences, each after `context` positions.
struct AttentionWork {
  double read_bytes = 0;     // keys and values, each read once for all rows
  double flops_per_row = 0;  // of one row per text
};
AttentionWork attention_work(const engine::ModelConfig& config,
                             kernels::DType dtype,
                             int context,
                             int n_texts) {
  double positions = 0;  // over all layers
  for (int layer = 0; layer < config.n_layers; layer++) {
    const int window = config.window_of(layer);
    positions += window > 0 ? std::min(window, context) : context;
  }
  positions *= n_texts;
  return {.read_bytes = 2.0 * positions * config.n_kv_heads *
                        static_cast<double>(kernels::cache_bytes(dtype, config.head_dim)),
          .flops_per_row = 4.0 * positions * config.n_heads * config.head_dim};
}

/// The time of each row count, with its roofline if both probes have results.
json step_rows(const engine::Model& model,
               const json& machine,
               const BenchOptions& options,
               const std::vector<double>& ms) {
  const auto weight_bytes = static_cast<double>(model.weight_bytes());
  const double flops = 2 * static_cast<double>(model.n_multiplied()) * options.n_texts;
  const AttentionWork attention =
      attention_work(model.config(), model.cache_type(), options.context, options.n_texts);
  json rows = json::array();
  for (std::size_t i = 0; i < ms.size(); i++) {
    const int n_rows = options.rows[i];
    json row = {{"rows", n_rows},
                {"ms", ms[i]},
                {"ratio", ms[i] / ms[0]},
                {"roofline_ms", nullptr},
                {"roofline_fraction", nullptr}};
    if (machine["read_gbps_after"].is_number()) {
      const double gbps =
          (machine["read_gbps"].get<double>() + machine["read_gbps_after"].get<double>()) / 2;
      const double memory_ms = (weight_bytes + attention.read_bytes) / gbps * 1e-6;
      const double compute_ms =
          n_rows * 1e-6 *
          (flops / machine["gflops"].get<double>() +
           attention.flops_per_row / machine["gflops_f32"].get<double>());  // scores are f32
      const double roofline_ms = std::max(memory_ms, compute_ms);
      row["roofline_ms"] = roofline_ms;
      row["roofline_fraction"] = roofline_ms / ms[i];
    }
    rows.push_back(row);
  }
  return rows;
}

/// The rows as a table. The ratio to the memory roofline is meaningless for weights in cache.
std::string step_table(const json& rows, std::int64_t weight_bytes, std::int64_t cache_bytes) {
  std::vector<std::vector<std::string>> text = {
      {"rows", "ms", "vs first", "roofline ms", "reached"}};
  bool any_above = false;
  for (const json& row : rows) {
    const json& reached = row["roofline_fraction"];
    const bool above = reached.is_number() && is_faster_than_memory(reached.get<double>());
    any_above = any_above || above;
    text.push_back(
        {fmt::format("{}", row["rows"].get<int>()), fmt::format("{:.3f}", row["ms"].get<double>()),
         fmt::format("{:.2f}x", row["ratio"].get<double>()), measured(row["roofline_ms"], "{:.3f}"),
         above ? ">1" : measured(reached, "{:.2f}")});
  }
  return engine::aligned_table(text) +
         (any_above ? why_above_roofline(weight_bytes, cache_bytes) : "");
}

/// Adds the times of the first steps after a prompt to each of the rows.
void add_race_steps(json& rows, const std::vector<std::vector<MeanSteps>>& times, bool drafts) {
  for (std::size_t i = 0; i < rows.size(); i++) {
    rows[i]["first_steps"] = json::array();
    if (i >= times.size()) continue;  // absent values were not measured because of Ctrl+C
    for (const MeanSteps& mean : times[i])
      rows[i]["first_steps"].push_back(
          {{"steps", mean.steps},
           {"ms", mean.ms},
           {"draft_ms", drafts ? json(mean.draft_ms) : json(nullptr)}});
  }
}

/// These times as a table.
std::string race_step_table(const json& rows) {
  std::vector<std::vector<std::string>> text = {
      {"rows", "first steps", "ms", "vs steady", "draft ms a step"}};
  for (const json& row : rows)
    for (const json& mean : row["first_steps"])
      text.push_back({fmt::format("{}", row["rows"].get<int>()),
                      fmt::format("{}", mean["steps"].get<int>()),
                      fmt::format("{:.3f}", mean["ms"].get<double>()),
                      fmt::format("{:.2f}x", mean["ms"].get<double>() / row["ms"].get<double>()),
                      measured(mean["draft_ms"], "{:.3f}")});
  return engine::aligned_table(text);
}

/// Adds the mean time of each kind of operation to each of the rows. "waiting" is the share of the threads' time in which
/// they did none of the work, and "between" the time between operations.
void add_breakdown(json& rows, const std::vector<StepBreakdown>& each, int n_threads) {
  for (std::size_t i = 0; i < rows.size(); i++) {
    if (i >= each.size()) {
      rows[i]["breakdown"] = nullptr;
      continue;
    }
    json kinds = json::object();
    double between_ms = each[i].ms, waiting_ms = 0;
    for (int k = 0; k < kernels::cpu::kOpKinds; k++) {
      const kernels::cpu::OpTime& time = each[i].ops[static_cast<std::size_t>(k)];
      kinds[kernels::cpu::name_of(static_cast<kernels::cpu::OpKind>(k))] = {
          {"ms", time.ms}, {"waiting_ms", time.waiting_ms}, {"operations", time.n}};
      between_ms -= time.ms;
      waiting_ms += time.waiting_ms;
    }
    waiting_ms += between_ms * (n_threads - 1);
    rows[i]["breakdown"] = {{"ms", each[i].ms},
                            {"kinds", kinds},
                            {"between_ms", between_ms},
                            {"waiting", waiting_ms / (each[i].ms * n_threads)}};
  }
}

/// The breakdown as a table of shares of the step.
std::string breakdown_table(const json& rows) {
  std::vector<std::vector<std::string>> text = {{"rows", "ms"}};
  for (int k = 0; k < kernels::cpu::kOpKinds; k++)
    text[0].push_back(kernels::cpu::name_of(static_cast<kernels::cpu::OpKind>(k)));
  text[0].insert(text[0].end(), {"between", "waiting"});
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  for (const json& row : rows) {
    const json& parts = row["breakdown"];
    if (parts.is_null()) continue;
    const double ms = parts["ms"].get<double>();
    auto& line = text.emplace_back();
    line = {fmt::format("{}", row["rows"].get<int>()), fmt::format("{:.3f}", ms)};
    for (int k = 0; k < kernels::cpu::kOpKinds; k++)
      line.push_back(percent(
          parts["kinds"][text[0][static_cast<std::size_t>(k) + 2]]["ms"].get<double>() / ms));
    line.push_back(percent(parts["between_ms"].get<double>() / ms));
    line.push_back(percent(parts["waiting"].get<double>()));
  }
  return engine::aligned_table(text);
}

int bench_step(const BenchOptions& options) {
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  engine::ModelRequest request = model_request(options.model);
  request.needs_tokenizer = false;
  request.generation = engine::GenerationUse::Silent;
  const std::vector<std::string> decoders{options.decoder};
  check_draft_resources(draft_resources_of(options.model), decoders);
  const engine::RunModels models =
      load(store, request, draft_resources_of(options.model), decoders);
  const engine::LoadedHeads* heads = models.heads_of(options.decoder);
  engine::Model& model = *models.target.model;
  // At least two: the prompt's last token, and the token decoded after it.
  check_context(options, model, std::max(2, std::ranges::max(options.rows)));
  generate_a_little(models.target, options.context);
  // read before the probe allocates its buffer
  const std::int64_t generate_peak = peak_rss_bytes();
  json machine = probe_json(model.device(), model.matrix_type());
  const StepTiming timing{.rows = options.rows,
                          .context = options.context,
                          .repeat = options.repeat,
                          .n_texts = options.n_texts,
                          .breakdown = options.breakdown};
  const StepTimes times = interrupted() ? StepTimes() : time_steps(model, timing);
  std::vector<std::vector<MeanSteps>> race_times;
  if (!options.steps_after_prompt.empty() && !interrupted()) {
    ProgressLine line("steps after prompts");
    race_times = time_race_steps(model, timing,
                                 {.steps = options.steps_after_prompt,
                                  .draft = models.draft ? models.draft->model.get() : nullptr,
                                  .heads = heads ? heads->heads.get() : nullptr,
                                  .n_forwards = options.n_draft_forwards,
                                  .n_new_tokens = options.n_new_tokens},
                                 [&](int done) { line.show(done, options.repeat, "repeats"); });
  }
  machine["read_gbps_after"] = read_probe(model.device());
  machine["last_level_cache_bytes"] = engine::last_level_cache_bytes();
  const json &before = machine["read_gbps"], &after = machine["read_gbps_after"];
  json is_disturbed;  // null if a probe is missing
  if (before.is_number() && after.is_number()) {
    is_disturbed = disturbed(before, after);
    if (is_disturbed) print_error("note: " + why_disturbed(before, after));
  }
  json rows = step_rows(model, machine, options, times.ms);
  if (options.breakdown) add_breakdown(rows, times.breakdown, machine["threads"].get<int>());
  if (!options.steps_after_prompt.empty()) add_race_steps(rows, race_times, models.draft || heads);
  const double cache_read_bytes =
      attention_work(model.config(), model.cache_type(), options.context, options.n_texts)
          .read_bytes;
  const auto counted = [](std::int64_t n) { return n > 0 ? json(n) : json(nullptr); };
  json out = {{"machine", machine},
              {"model", model.name()},
              {"scale", engine::name_of(model.scale())},
              {"dtype", model.weight_type()},
              {"context", options.context},
              {"texts", options.n_texts},
              {"weight_bytes", model.weight_bytes()},
              {"cache_bytes", times.cache_bytes},
              {"cache_bytes_per_token",
               number_json(engine::cache_bytes_per_token(model.config(), model.cache_type()))},
              {"cache_read_bytes", std::llround(cache_read_bytes)},
              {"generate_peak_rss_bytes", generate_peak},
              {"launches_per_step", counted(times.n_launches)},
              {"kernels_per_step", counted(times.n_kernels)},
              {"prompts", prompts_json(model.device())},
              {"disturbed", is_disturbed},
              {"rows", rows}};
  if (options.json) {
    print_document(out);
    return exit_code();
  }
  print(fmt::format(
      "{} {} at {}, context {}, {} threads, kernels {}\n  weights {:.1f} MB, peak memory of "
      "generate "
      "{:.1f} MB, keys and values read by a step {:.1f} MB; read {} before, {} after; {}\n",
      model.name(), model.weight_type(), engine::name_of(model.scale()), options.context,
      machine["threads"].get<int>(), model.device().ops().name,
      static_cast<double>(model.weight_bytes()) * 1e-6, static_cast<double>(generate_peak) * 1e-6,
      cache_read_bytes * 1e-6, measured(machine["read_gbps"], "{:.1f} GB/s"),
      measured(machine["read_gbps_after"], "{:.1f} GB/s"),
      measured(machine["gflops"], "{:.0f} GFLOP/s")));
  print(step_table(rows, model.weight_bytes(), engine::last_level_cache_bytes()));
  if (options.breakdown) print("\n" + breakdown_table(rows));
  if (!options.steps_after_prompt.empty()) print("\n" + race_step_table(rows));
  return exit_code();
}

/// The results of bench decode; empty if Ctrl+C came before the first token.
struct DecodeRuns {
  std::vector<double> speeds, prefills;  // one value per run
  std::size_t n_tokens = 0;
  double tokens_per_step = 0;
};

/// Decodes --repeat times. The run that Ctrl+C interrupts is shorter, so it counts only if no run
/// is complete.
DecodeRuns decode_runs(const engine::RunModels& models,
                       const engine::RunRequest& request,
                       int n_repeats) {
  DecodeRuns runs;
  for (int repeat = 0; repeat < n_repeats && !interrupted(); repeat++) {
    const engine::RunResult result = engine::run_to_end(models, request, 0, nullptr, interrupted);
    if (result.tokens.empty() || (interrupted() && !runs.speeds.empty())) break;
    runs.speeds.push_back(result.tokens_per_second());
    runs.prefills.push_back(result.prefill_ms);
    runs.n_tokens = result.tokens.size();
    runs.tokens_per_step = result.tokens_per_step();
  }
  return runs;
}

/// Bytes of keys and values for all positions of a run: of target, draft model and heads.
std::int64_t cache_bytes(const engine::RunModels& models,
                         const engine::LoadedHeads* heads,
                         std::size_t n_positions) {
  double a_position = 0;
  const auto add = [&](const engine::Model& model) {
    a_position += engine::cache_bytes_per_token(model.config(), model.cache_type());
  };
  add(*models.target.model);
  if (models.draft) add(*models.draft->model);
  if (heads)
    a_position +=
        engine::memory_plan(engine::scaled(heads->files.config, models.target.model->scale()),
                            models.target.model->config(), models.target.model->dtype(),
                            models.target.model->device())
            .cache_per_token;
  return std::llround(a_position * static_cast<double>(n_positions));
}

json decode_document(const engine::RunModels& models,
                     const BenchOptions& options,
                     const DecodeRuns& runs) {
  const engine::Model& model = *models.target.model;
  const bool any = !runs.speeds.empty();
  const auto [low, high] = std::minmax_element(runs.speeds.begin(), runs.speeds.end());
  const auto figure = [&](double value) { return any ? json(value) : json(nullptr); };
  json out = {{"machine", machine_json(model.device())},
              {"decoder", options.decoder},
              {"model", model.name()},
              {"dtype", model.weight_type()},
              {"scale", engine::name_of(model.scale())},
              {"context", options.context},
              {"tokens", runs.n_tokens},
              {"tokens_per_step", figure(runs.tokens_per_step)},
              {"tokens_per_second", figure(median(runs.speeds))},
              {"min", figure(any ? *low : 0)},
              {"max", figure(any ? *high : 0)},
              {"n", runs.speeds.size()},
              {"prefill_ms", figure(median(runs.prefills))},
              {"prompts", prompts_json(model.device())},
              {"peak_rss_bytes", peak_rss_bytes()},
              {"weight_bytes", model.weight_bytes()}};
  if (models.draft) {
    out["draft"] = models.draft->model->name();
    out["draft_weight_bytes"] = models.draft->model->weight_bytes();
  }
  const engine::LoadedHeads* heads = models.heads_of(options.decoder);
  if (heads) {
    out["heads"] = heads->files.name;
    out["heads_weight_bytes"] = heads->heads->weight_bytes();
  }
  out["cache_bytes"] =
      cache_bytes(models, heads, static_cast<std::size_t>(options.context) + runs.n_tokens);
  return out;
}

int bench_decode(const BenchOptions& options) {
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  engine::ModelRequest request = model_request(options.model);
  request.needs_tokenizer = false;
  request.generation = engine::GenerationUse::Silent;
  const std::vector<std::string> decoders{options.decoder};
  engine::RunRequest run{.prompt_id = "bench",
                         .decoder = options.decoder,
                         .options = options_for(options.decoder, decoders, options.set),
                         .max_tokens = options.max_tokens,
                         .ignore_eos = true};
  check_options(run.decoder, run.options);
  check_draft_resources(draft_resources_of(options.model), decoders);
  engine::RunModels models = load(store, request, draft_resources_of(options.model), decoders);
  load_ranks(store, models, run.decoder, run.options);
  engine::Model& model = *models.target.model;
  check_context(options, model, /*n_after=*/1);
  run.prompt_tokens = context_tokens(options.context, model.vocab_size());
  const DecodeRuns runs = decode_runs(models, run, options.repeat);
  const json out = decode_document(models, options, runs);
  if (options.json) {
    print_document(out);
  } else if (!runs.speeds.empty()) {
    const std::string by = model.device().prompt_products();
    print(fmt::format(
        "{} {}, {}: {:.1f} tokens/s (min {:.1f}, max {:.1f}, n {}), {:.2f} tokens/step, prefill of "
        "{} tokens {:.1f} ms{}, peak memory {:.1f} MB\n",
        model.name(), model.weight_type(), options.decoder, out["tokens_per_second"].get<double>(),
        out["min"].get<double>(), out["max"].get<double>(), runs.speeds.size(),
        runs.tokens_per_step, options.context, out["prefill_ms"].get<double>(),
        by.empty() ? "" : " by " + by, out["peak_rss_bytes"].get<double>() * 1e-6));
  }
  return exit_code();
}

/// A matrix of a model: y [rows, n] = x [rows, k] W^T.
struct MatrixShape {
  const char* name;
  int n, k;
};

/// Times the multiplication by one matrix, for each row count. After Ctrl+C returns the times
/// measured so far.
json multiply_figures(kernels::Device& device,
                      kernels::DType dtype,
                      const MatrixShape& shape,
                      const BenchOptions& options) {
  const std::vector<float> w(static_cast<std::size_t>(shape.n) * shape.k, 0.01f);
  kernels::DeviceBuffer packed(device, device.ops().packed_bytes(dtype, shape.n, shape.k),
                               "the matrix that is measured");
  device.ops().pack(device, w.data(), kernels::DType::F32, shape.n, shape.k, dtype, packed.data());
  const kernels::PackedMatrix matrix{packed.data(), shape.n, shape.k, dtype};
  json results = json::array();
  for (const int rows : options.rows) {
    kernels::DeviceBuffer x(device, 4LL * rows * shape.k, "a product's rows"),
        y(device, 4LL * rows * shape.n, "a product's rows");
    const std::vector<float> host(static_cast<std::size_t>(rows) * shape.k, 0.5f);
    device.ops().upload(device, x.data(), host.data(), x.bytes());
    std::vector<double> us;
    for (int repeat = 0; repeat < options.repeat + 2 && !interrupted(); repeat++) {
      const double start = now_ms();
      device.ops().matmul(device, matrix, x.f32(), shape.k, rows, y.f32(), shape.n, nullptr, false);
      float first = 0;  // copying it to the host waits for asynchronous operations
      device.ops().download(device, &first, y.data(), sizeof first);
      if (repeat >= 2) us.push_back((now_ms() - start) * 1e3);
    }
    if (us.empty()) break;  // Ctrl+C
    const double flops = 2.0 * rows * shape.n * shape.k;
    results.push_back({{"kernel", "matmul"},
                       {"shape", shape.name},
                       {"n", shape.n},
                       {"k", shape.k},
                       {"rows", rows},
                       {"us", median(us)},
                       {"gflops", flops / median(us) * 1e-3},
                       {"gbps", static_cast<double>(packed.bytes()) / median(us) * 1e-3}});
  }
  return results;
}

std::string multiply_table(const json& results) {
  std::vector<std::vector<std::string>> rows = {{"matmul", "rows", "us", "GFLOP/s", "GB/s"}};
  for (const json& r : results) {
    rows.push_back({r["shape"].get<std::string>(), fmt::format("{}", r["rows"].get<int>()),
                    fmt::format("{:.1f}", r["us"].get<double>()),
                    fmt::format("{:.0f}", r["gflops"].get<double>()),
                    fmt::format("{:.1f}", r["gbps"].get<double>())});
  }
  return engine::aligned_table(rows);
}

/// Times the product by each matrix of a model of shape M. These products make up most of a step.
int bench_kernels(const BenchOptions& options) {
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  kernels::Device& device = store.device(options.model.device);
  const kernels::DType dtype =
      kernels::dtype_named(options.model.dtype.empty() ? "bf16" : options.model.dtype)
          .value_or(kernels::DType::BF16);
  const MatrixShape shapes[] = {{"M qkv", 2304, 768},
                                {"M out", 768, 768},
                                {"M gate+up", 4096, 768},
                                {"M down", 768, 2048},
                                {"M head", 32000, 768}};
  json results = json::array();
  for (const MatrixShape& shape : shapes) {
    for (json& figures : multiply_figures(device, dtype, shape, options))
      results.push_back(std::move(figures));
  }
  if (options.json) {
    print_document({{"machine", machine_json(device)},
                    {"dtype", kernels::name_of(dtype)},
                    {"kernels", std::move(results)}});
  } else {
    print(multiply_table(results));
  }
  return exit_code();
}

}  // namespace

int bench(const BenchOptions& options) {
  const auto refuse = [&](const char* why) {
    throw engine::Error(engine::ErrorCode::Usage, fmt::format("bench {}: {}", options.what, why));
  };
  if (!options.set.empty() && options.what != "decode") refuse("--set applies to bench decode");
  if (options.steps_after_prompt.empty() &&
      (options.n_new_tokens != 0 || options.n_draft_forwards != BenchOptions().n_draft_forwards))
    refuse("--new-prompt-tokens and --draft-forwards apply to bench step --first-steps");
  if (options.what != "step" && (options.n_texts != 1 || !options.steps_after_prompt.empty()))
    refuse("--texts and --first-steps apply to bench step");
  const bool drafts =
      options.decoder != "ar" || !options.model.draft.empty() || !options.model.heads.empty();
  if (drafts && options.what != "decode" && options.steps_after_prompt.empty())
    refuse("--decoder, --draft and --heads apply to bench decode and bench step --first-steps");
  if (drafts && options.what == "step") {
    const engine::DecoderInfo& info = engine::decoder_named(options.decoder);
    if (!info.needs_draft && !info.needs_heads)
      refuse("--decoder must be one with a draft model or draft heads, which run between steps");
  }
  if (options.what == "probe") return bench_probe(options);
  if (options.what == "step") return bench_step(options);
  if (options.what == "decode") return bench_decode(options);
  return bench_kernels(options);
}

}  // namespace app

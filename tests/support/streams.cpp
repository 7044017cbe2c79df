#include "tests/support/streams.h"

#include "engine/event/serialise.h"

namespace engine::test {
namespace {

constexpr Nanoseconds kStepWall = 100'000;

RowTag guess(int ngram, int index) {
  return {RowTag::Kind::Guess, static_cast<std::int16_t>(ngram), static_cast<std::int16_t>(index)};
}

/// A step with row 0 and one n-gram of two tokens after it; `agrees`: the target picks both tokens.
void add_lookahead_step(
    std::vector<Event>& events, RunId run, StepId step, int pos, Nanoseconds t) {
  const bool agrees = step % 2 == 1;
  TokenTree tree{.token = {7, 8, 9},
                 .parent = {-1, 0, 1},
                 .tag = {{RowTag::Kind::Current, 0, 0}, guess(0, 0), guess(0, 1)}};
  events.push_back(Drafted{.t = t + 2'000, .run = run, .step = step, .tree = std::move(tree)});
  using enum RowFate;
  Verified verified{.t = t + 90'000, .run = run, .step = step, .n_proposed = 2};
  verified.logp = {-0.5F, -0.25F, -0.125F};
  verified.margin = {1, 2, 3};
  if (agrees) {
    verified.fate = {Context, Accepted, Accepted};
    verified.picked = {8, 9, 10};
    verified.n_accepted = 2;
  } else {
    verified.fate = {Context, Rejected, Unused};
    verified.picked = {7, 9, 10};
    verified.n_rejected = 1;
    verified.n_unused = 1;
  }
  events.push_back(verified);
  Committed committed{.t = t + 92'000, .run = run, .step = step, .first_pos = pos};
  if (agrees) {
    committed.tokens = {8, 9, 10};
    committed.status = {TokenStatus::Accepted, TokenStatus::Accepted, TokenStatus::Bonus};
    committed.origin = {guess(0, 0), guess(0, 1), {}};
  } else {
    committed.tokens = {7};
    committed.status = {TokenStatus::Plain};
    committed.origin = {{}};
  }
  events.push_back(committed);
  PoolNgram tried{.first = 7, .rest = {8, 9}, .born = -1, .n_tries = 1};
  tried.n_hits = agrees ? 1 : 0;
  events.push_back(PoolChanged{
      .t = t + 93'000, .run = run, .step = step, .tried = {tried}, .n_keys = 1, .n_ngrams = 1});
}

void add_ar_step(std::vector<Event>& events, RunId run, StepId step, int pos, Nanoseconds t) {
  TokenTree tree{.token = {7}, .parent = {-1}, .tag = {{}}};
  events.push_back(Drafted{.t = t + 2'000, .run = run, .step = step, .tree = std::move(tree)});
  events.push_back(Verified{.t = t + 90'000,
                            .run = run,
                            .step = step,
                            .fate = {RowFate::Context},
                            .picked = {7},
                            .logp = {-0.5F},
                            .margin = {1}});
  events.push_back(Committed{.t = t + 92'000,
                             .run = run,
                             .step = step,
                             .first_pos = pos,
                             .tokens = {7},
                             .status = {TokenStatus::Plain},
                             .origin = {{}}});
}

RunStarted started(const RunShape& shape) {
  return {.t = shape.t0,
          .run = shape.run,
          .race = shape.race,
          .lane = shape.lane,
          .model = 1,
          .decoder = shape.decoder,
          .options = shape.decoder == "ar" ? std::map<std::string, std::string>{}
                                           : std::map<std::string, std::string>{{"window", "5"}},
          .seed = 1,
          .sampling = "coupled",
          .max_tokens = 64,
          .prompt = " the\"",
          .prompt_tokens = {1, 5},
          .prompt_id = "p1"};
}

}  // namespace

Event model_loaded() {
  ModelLoaded model{.t = 10,
                    .model = 1,
                    .name = "toy",
                    .dtype = "bf16",
                    .device = "cpu",
                    .ops = "avx2",
                    .scale = "1x1",
                    .n_params = 1000,
                    .weight_bytes = 2000,
                    .n_layers = 2,
                    .dim = 8,
                    .vocab_size = 16,
                    .max_seq_len = 64,
                    .n_threads = 2};
  for (int i = 0; i < 16; ++i) model.pieces.push_back("t" + std::to_string(i));
  model.pieces[1] = " the";
  model.pieces[2] = "\n";
  model.pieces[3] = "\xC3";
  model.pieces[4] = "\xA9";
  model.pieces[5] = "\"";
  model.pieces[6] = "=cmd";
  model.eos_ids = {0};
  model.kv_bytes_per_token = 64;
  return model;
}

std::vector<Event> run_events(const RunShape& shape) {
  std::vector<Event> events;
  events.push_back(started(shape));
  events.push_back(Phase{.t = shape.t0 + 100, .run = shape.run, .name = "prefill", .total = 2});
  events.push_back(
      Phase{.t = shape.t0 + 50'000, .run = shape.run, .name = "prefill", .done = 2, .total = 2});
  int pos = 2;
  Nanoseconds t = shape.t0 + 60'000;
  for (StepId step = 0; step < shape.n_steps; ++step, t += kStepWall) {
    const bool ar = shape.decoder == "ar";
    events.push_back(StepBegun{.t = t,
                               .run = shape.run,
                               .step = step,
                               .compute = step * Nanoseconds{83'500},
                               .kv_len = pos - 1,
                               .n_rows = ar ? 1 : 3});
    if (ar) {
      add_ar_step(events, shape.run, step, pos, t);
      pos += 1;
    } else {
      add_lookahead_step(events, shape.run, step, pos, t);
      pos += step % 2 == 1 ? 3 : 1;
    }
    events.push_back(StepEnded{.t = t + 95'000,
                               .run = shape.run,
                               .step = step,
                               .propose = 1'000,
                               .forward = 80'000,
                               .verify = 2'000,
                               .commit = 500,
                               .kv_len = pos - 1});
  }
  if (shape.finished) {
    events.push_back(RunFinished{.t = t,
                                 .run = shape.run,
                                 .stop_reason = "length",
                                 .n_tokens = pos - 2,
                                 .n_steps = shape.n_steps,
                                 .prefill = 50'000,
                                 .decode = shape.n_steps * Nanoseconds{83'500},
                                 .metrics = {{"pool_hits", 2}}});
  }
  return events;
}

std::vector<Event> small_stream() {
  std::vector<Event> events{model_loaded()};
  const std::vector<Event> run = run_events({});
  events.insert(events.end(), run.begin(), run.end());
  return events;
}

std::vector<Event> one_after_the_other(double share) {
  constexpr Nanoseconds kSecond = 1'000'000'000, kLong = 400'000'000;
  std::vector<Event> events{model_loaded()};
  for (RunId run = 1; run <= 2; ++run) {
    const Nanoseconds begin = run * kSecond;
    for (Event& event :
         run_events({.run = run, .decoder = run == 1 ? "ar" : "lookahead", .t0 = begin})) {
      if (auto* finished = std::get_if<RunFinished>(&event)) finished->t = begin + kLong;
      events.push_back(std::move(event));
    }
    events.push_back(Sampled{.t = begin + kLong,
                             .period = kLong,
                             .device = "cpu",
                             .busy_percent = run == 1 ? 90 : 90 * share});
  }
  return events;
}

std::vector<Event> every_kind() {
  const RowTag tag{RowTag::Kind::Draft, 3, -2};
  const PoolNgram ngram{.first = 4, .rest = {5, 6}, .born = -1, .n_hits = 7, .n_tries = 9};
  return {
      model_loaded(),
      RunStarted{.t = 11,
                 .run = 3,
                 .race = 2,
                 .lane = 1,
                 .model = 1,
                 .decoder = "jacobi",
                 .options = {{"block", "8"}, {"refill", "slide"}},
                 .temperature = 0.7F,
                 .top_p = 0.9F,
                 .min_p = 0.05F,
                 .repetition_penalty = 1.1F,
                 .top_k = 40,
                 .seed = 0xFFFF'FFFF'FFFF'FFFF,
                 .sampling = "rejection",
                 .max_tokens = 32,
                 .prompt = "caf\xC3\xA9 \xF0",
                 .prompt_tokens = {1, 2, 3},
                 .prompt_id = "p7",
                 .ignore_eos = true,
                 .draft = 9,
                 .first_approximate = 1,
                 .n_approximate = 2,
                 .stop_texts = {"\n\n", "END"},
                 .stop_ids = {4, 5},
                 .no_special = true,
                 .read_as = ReadAs::Chat,
                 .system = "Be short.",
                 .pool = "pool.txt",
                 .place = {.set = 4,
                           .prompt = 2,
                           .n_prompts = 3,
                           .repeat = 1,
                           .n_repeats = 5,
                           .task = "arith"}},
      Phase{.t = 12, .run = 3, .name = "prefill", .done = 1, .total = 3, .detail = "rows"},
      StepBegun{.t = 13, .run = 3, .step = 4, .compute = 99, .kv_len = 12, .n_rows = 5},
      Drafted{.t = 14,
              .run = 3,
              .step = 4,
              .tree = {.token = {1, 2}, .parent = {-1, 0}, .tag = {tag, tag}, .owner = {0, 200}},
              .q = {0.5F, 0.25F},
              .forwards = {{.begun = 2, .ended = 7, .n_rows = 1}, {8, 9, 2}},
              .sources = {{}, {GuessSource::Kind::Earlier, 7, 12, 3, 4}},
              .choices = {2, 0, 1}},
      BlockRefined{.t = 15,
                   .run = 3,
                   .step = 4,
                   .block = 1,
                   .iteration = 2,
                   .first_pos = 9,
                   .tokens = {7, 8},
                   .n_final = 1,
                   .converged = true},
      Verified{.t = 16,
               .run = 3,
               .step = 4,
               .fate = {RowFate::Context, RowFate::Window},
               .picked = {2, 3},
               .logp = {-0.1F, -2.5F},
               .margin = {0.3F, 0.0F},
               .uniform = {-1, 0.25F},
               .keep = {-1, 0.5F},
               .last_uniform = 0.75F,
               .n_proposed = 6,
               .n_accepted = 1,
               .n_rejected = 2,
               .n_unused = 3,
               .p = {-1, 0.125F},
               .rejection_details = {{.row = 0,
                                      .token = {2, 3},
                                      .p = {0.125F, 0.5F},
                                      .q = {0.25F, 0.75F},
                                      .residual = {0, 1}},
                                     {.row = 1, .token = {4}, .p = {1}, .q = {}, .residual = {}}},
               .probe = {-1, 1.5F},
               .exchange = {{.n_bytes = 512, .time = 4'000, .forward = {3'000, 5'000}}}},
      Committed{.t = 17,
                .run = 3,
                .step = 4,
                .first_pos = 5,
                .tokens = {2, 3},
                .status = {TokenStatus::Accepted, TokenStatus::Approximate},
                .origin = {tag, {}}},
      PoolChanged{.t = 18,
                  .run = 3,
                  .step = 4,
                  .added = {ngram},
                  .evicted = {ngram, ngram},
                  .tried = {ngram},
                  .n_keys = 5,
                  .n_ngrams = 6},
      Queued{.t = 19, .run = 3, .branch = 1, .resource = "target"},
      Dequeued{.t = 20, .run = 3, .branch = 2, .resource = "draft 1"},
      Waiting{.t = 21, .run = 3, .branch = 3, .resource = "target", .since = 19},
      Sampled{.t = 22,
              .period = 100,
              .device = "cpu",
              .busy_percent = 55.5,
              .thread_busy_percent = {10.25, 99.5},
              .memory_bytes = 1 << 30,
              .engine_busy_percent = 97,
              .reason = "no driver",
              .gpu_memory_busy_percent = 41,
              .gpu_memory_used_bytes = 3LL << 30,
              .gpu_memory_total_bytes = 8LL << 30,
              .gpu_clock_mhz = 1980,
              .gpu_memory_clock_mhz = 2619,
              .gpu_power_w = 412.5,
              .absent = {{"gpu_power_w", "Not Supported"}},
              .stolen_percent = 1.5,
              .load_average = 2.25},
      Agreement{.t = 23,
                .run = 3,
                .baseline = 1,
                .n_compared = 30,
                .first_difference = 12,
                .found = 3,
                .expected = 4,
                .cost = 777},
      StepEnded{.t = 24,
                .run = 3,
                .step = 4,
                .propose = 1,
                .forward = 2,
                .verify = 3,
                .commit = 4,
                .kv_len = 13},
      PayloadDropped{
          .t = 25, .run = 3, .kind = "logits", .first_step = 2, .last_step = 3, .n_bytes = 4096},
      RunFinished{.t = 26,
                  .run = 3,
                  .stop_reason = "eos",
                  .n_tokens = 8,
                  .n_steps = 5,
                  .prefill = 40,
                  .decode = 50,
                  .metrics = {{"acceptance_rate", 0.41}, {"pool_hits", 40}},
                  .approximate = {4, 2},
                  .stop_string = "END"},
      RunFailed{.t = 27, .run = 3, .code = 4, .message = "out of memory"},
      Held{.t = 28, .held = true},
      Notice{.t = 29, .level = Notice::Level::Warning, .text = "disk full"},
      SearchBegun{.t = 30,
                  .search = 1,
                  .id = "arith/1/test/0",
                  .task = "arith",
                  .question = "How many?",
                  .depth = 4,
                  .n_thoughts = 3,
                  .beam = 2},
      ThoughtMade{.t = 31,
                  .search = 1,
                  .node = 1,
                  .depth = 1,
                  .text = "How many now?",
                  .runs = {4, 7},
                  .complete = true},
      ThoughtValued{.t = 32,
                    .search = 1,
                    .node = 1,
                    .by = 9,
                    .value = 8.5,
                    .read = true,
                    .text = " Score: 8.5"},
      ThoughtJudged{.t = 33,
                    .search = 1,
                    .node = 1,
                    .fate = ThoughtFate::Pruned,
                    .text = "the hand is empty",
                    .runs = {10},
                    .complete = true},
      SearchEnded{.t = 34,
                  .search = 1,
                  .node = 1,
                  .by = 11,
                  .answer = "44",
                  .correct = true,
                  .reason = "none",
                  .stopped = true},
  };
}

std::string bytes_of(const Event& event) {
  std::string bytes;
  encode(event, bytes);
  return bytes;
}

}  // namespace engine::test

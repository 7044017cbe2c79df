#include "engine/decode/ranks/mpi_ranks.h"

#include <bit>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "engine/decode/ranks/mpi_exchange.h"
#include "engine/decode/ranks/mpi_processes.h"
#include "engine/decode/registry.h"

namespace engine {
namespace {

bool are_joined = false;  // an MpiProcesses exists

/// A run, as rank 0 describes it.
struct Description {
  std::string weights_hash, decoder;
  OptionValues options;
  std::vector<TokenId> prompt;
  Sampling sampling;
  Limits limits;
};

/// Appends values to a message.
class Writer {
 public:
  void operator()(std::int32_t value) { numbers.push_back(value); }
  void operator()(bool value) { numbers.push_back(value ? 1 : 0); }
  void operator()(float value) { numbers.push_back(std::bit_cast<std::int32_t>(value)); }
  void operator()(std::uint64_t value) {
    for (const int shift : {0, 32})
      numbers.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(value >> shift)));
  }
  template <class List>
  void list(const List& values) {
    numbers.push_back(static_cast<std::int32_t>(values.size()));
    numbers.insert(numbers.end(), values.begin(), values.end());
  }
  void operator()(const std::vector<TokenId>& tokens) { list(tokens); }
  void operator()(const std::string& text) { list(text); }
  void operator()(const OptionValues& options) {
    numbers.push_back(static_cast<std::int32_t>(options.size()));
    for (const auto& [name, value] : options) list(name), list(value);
  }

  Numbers numbers;
};

/// Reads them in the same order.
class Reader {
 public:
  explicit Reader(const Numbers& numbers) : numbers_(numbers) {}
  void operator()(std::int32_t& value) { value = next(); }
  void operator()(bool& value) { value = next() != 0; }
  void operator()(float& value) { value = std::bit_cast<float>(next()); }
  void operator()(std::uint64_t& value) {
    const auto low = static_cast<std::uint32_t>(next());
    value = low | static_cast<std::uint64_t>(static_cast<std::uint32_t>(next())) << 32;
  }
  template <class List>
  void list(List& values) {
    values.resize(static_cast<std::size_t>(next()));
    for (auto& value : values) value = static_cast<typename List::value_type>(next());
  }
  void operator()(std::vector<TokenId>& tokens) { list(tokens); }
  void operator()(std::string& text) { list(text); }
  void operator()(OptionValues& options) {
    for (std::int32_t n = next(); n > 0; n--) {
      std::string name;
      list(name), list(options[name]);
    }
  }

 private:
  std::int32_t next() { return numbers_.at(at_++); }
  const Numbers& numbers_;  // outlives the reader
  std::size_t at_ = 0;
};

/// Passes every field to a Writer or a Reader. Stop strings stay with rank 0.
template <class Description, class Use>
void each_field(Description& run, Use& use) {
  use(run.weights_hash), use(run.decoder), use(run.options), use(run.prompt);
  auto& s = run.sampling;
  use(s.temperature), use(s.top_k), use(s.top_p), use(s.min_p), use(s.repetition_penalty);
  use(s.seed);
  auto& limits = run.limits;
  use(limits.max_tokens), use(limits.max_seq_len), use(limits.ignore_eos);
  use(limits.eos_ids), use(limits.stop_ids);
}

/// The message that describes a run; that of no more runs is empty.
Numbers message_of(const Description& run) {
  Writer writer;
  each_field(run, writer);
  return std::move(writer.numbers);
}

Description description_of(const Numbers& message) {
  Description run;
  Reader reader(message);
  each_field(run, reader);
  return run;
}

}  // namespace

MpiRanks::MpiRanks(LanguageModel& model, const std::string& weights_hash, const RankedRun& run)
    : exchange_(mpi_exchange()), rank_(model, exchange_) {
  if (!are_joined)
    throw Error(ErrorCode::Usage,
                "ranks=mpi: only `decoscope generate` decodes over several processes; use ranks=N "
                "for devices of one process");
  Numbers message = message_of({.weights_hash = weights_hash,
                                .decoder = run.options->info().name,
                                .options = run.options->values(),
                                .prompt = run.prompt,
                                .sampling = run.context.sampling,
                                .limits = run.context.limits});
  exchange_.broadcast(0, message);
}

MpiRanks::~MpiRanks() {
  if (in_step_) {
    std::fputs("ranks=mpi: a step failed, so the processes of all ranks end\n", stderr);
    abort_mpi(1);
  }
  rank_.end_steps();
}

void MpiRanks::wait_until_ready() {
  exchange_.all_gather({});
}

std::vector<StepOutput> MpiRanks::forward(std::span<const BatchItem> items, Wants wants) {
  in_step_ = true;
  std::vector<StepOutput> outs = rank_.forward(items, wants);
  in_step_ = false;
  return outs;
}

Sequence MpiRanks::attach(Sequence sequence) {
  return ranked(sequence);
}

Sequence MpiRanks::detach(Sequence sequence) {
  return sequence.over(static_cast<LookaheadRankCache&>(sequence.cache()).own().fork());
}

MpiProcesses::MpiProcesses() {
  mpi_exchange();
  are_joined = true;
}

MpiProcesses::~MpiProcesses() {
  are_joined = false;
  Numbers no_more;
  if (leads()) mpi_exchange().broadcast(0, no_more);
}

bool MpiProcesses::leads() const {
  return mpi_exchange().rank() == 0;
}

int MpiProcesses::n_processes() const {
  return mpi_exchange().n_ranks();
}

void MpiProcesses::follow_runs(LanguageModel& model,
                               const std::string& weights_hash,
                               const std::shared_ptr<const EarlierTexts>& texts) const {
  Exchange& exchange = mpi_exchange();
  try {
    while (true) {
      Numbers message;
      exchange.broadcast(0, message);
      if (message.empty()) return;
      const Description run = description_of(message);
      if (run.weights_hash != weights_hash)
        throw Error(ErrorCode::BadInput,
                    "found other weights than rank 0, expected the same model in every process");
      const DecoderContext context{.target = model,
                                   .sampling = run.sampling,
                                   .limits = run.limits,
                                   .texts = texts,
                                   .n_processes = exchange.n_ranks()};
      follow(model, exchange, {run.prompt, parse_options(run.decoder, run.options), context},
             {.ready = [&] { exchange.all_gather({}); }});
    }
  } catch (const std::exception& error) {
    // Rank 0 waits for this process.
    std::fputs(fmt::format("decoscope: rank {}: {}\n", exchange.rank(), error.what()).c_str(),
               stderr);
    const auto* known = dynamic_cast<const Error*>(&error);
    abort_mpi(known ? static_cast<int>(known->code()) : 1);
  }
}

}  // namespace engine

#include "engine/trace/csv.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/event/drafted_by.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/settings.h"

namespace engine {
namespace {

/// Builds a CSV text cell by cell.
class Table {
 public:
  Table(std::string_view header, const CsvOptions& options)
      : text_(std::string(header) + "\r\n"), options_(options) {}

  Table& cell(std::string_view text) {
    separate();
    std::string shown = printable(text);
    const bool formula =
        !shown.empty() && std::string_view("=+-@\t").find(shown[0]) != std::string_view::npos;
    if (formula && options_.for_spreadsheets) shown.insert(shown.begin(), '\'');
    const bool quote = shown.find_first_of(",\"\r\n ") != std::string::npos;
    if (!quote) {
      text_ += shown;
      return *this;
    }
    text_ += '"';
    for (const char c : shown) text_ += c == '"' ? "\"\"" : std::string(1, c);
    text_ += '"';
    return *this;
  }
  Table& cell(const std::string& text) { return cell(std::string_view(text)); }
  Table& cell(const char* text) { return cell(std::string_view(text)); }
  Table& cell(std::integral auto number) {
    separate();
    text_ += fmt::format("{}", number);
    return *this;
  }
  Table& cell(std::floating_point auto number) {
    separate();
    if (std::isfinite(number)) text_ += fmt::format("{}", number);
    return *this;
  }
  Table& cell(const std::optional<double>& number) {
    return number ? cell(*number) : cell(std::string_view());
  }
  void end_row() {
    text_ += "\r\n";
    first_ = true;
  }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }

  std::string text_;
  const CsvOptions& options_;
  bool first_ = true;
};

double ms(Nanoseconds ns) {
  return static_cast<double>(ns) / 1e6;
}

const char* name_of(RowTag::Kind kind) {
  switch (kind) {
    case RowTag::Kind::Current:
      return "target";
    case RowTag::Kind::Window:
      return "window";
    case RowTag::Kind::Guess:
      return "guess";
    case RowTag::Kind::Draft:
      return "draft";
    case RowTag::Kind::Block:
      return "block";
    case RowTag::Kind::Probe:
      return "probe";
  }
  return "";
}

struct Depth {
  std::int64_t n_proposed = 0, n_verified = 0, n_accepted = 0;
};

/// Counts of a run's proposed tokens, by depth.
std::map<int, Depth> acceptance_by_depth(const RunRecord& run) {
  std::map<int, Depth> depths;
  for (const StepRecord& step : run.steps) {
    const TokenTree& tree = step.drafted.tree;
    if (!step.has_drafted || !step.has_verified) continue;
    std::vector<int> depth(tree.token.size(), 0);
    for (std::size_t row = 0; row < depth.size(); ++row) {
      const RowFate fate = step.verified.fate[row];
      const int parent = tree.parent[row];
      const int above = parent >= 0 ? depth[static_cast<std::size_t>(parent)] : 0;
      const bool proposed =
          fate == RowFate::Accepted || fate == RowFate::Rejected || fate == RowFate::Unused;
      depth[row] = above + (proposed ? 1 : 0);
      if (!proposed) continue;
      Depth& counts = depths[depth[row]];
      ++counts.n_proposed;
      counts.n_verified += fate == RowFate::Unused ? 0 : 1;
      counts.n_accepted += fate == RowFate::Accepted ? 1 : 0;
    }
  }
  return depths;
}

/// The counters of a finished run: "pool_hits=40;rows=610".
std::string metrics_of(const RunRecord& run) {
  std::string all;
  if (!run.finished) return all;
  for (const auto& [name, value] : run.finished->metrics)
    all += fmt::format("{}{}={}", all.empty() ? "" : ";", name, value);
  return all;
}

/// The settings of a run, without the decoder's options and the seed.
std::string parameters_of(const RunStarted& s) {
  std::string all = fmt::format(
      "max_tokens={};ignore_eos={};sampling={};temperature={};top_k={};top_p={};min_p={};"
      "repetition_penalty={}",
      s.max_tokens, s.ignore_eos ? "on" : "off", s.sampling, s.temperature, s.top_k, s.top_p,
      s.min_p, s.repetition_penalty);
  for (const std::string& stop : s.stop_texts) all += ";stop=" + json_quoted(stop);
  for (const TokenId id : s.stop_ids) all += fmt::format(";stop_id={}", id);
  return all;
}

/// The last columns of each table, which identify the run.
constexpr std::string_view kSource =
    ",decoder,options,parameters,seed,model,draft,scale,dtype,device,program_version";

/// The name of the draft model, empty if none.
std::string draft_of(const Timeline& timeline, const RunRecord& run) {
  const ModelLoaded* draft = timeline.model(run.started.draft);
  return draft ? draft->name : std::string();
}

void end_row_of(Table& table, const Timeline& timeline, const RunRecord& run) {
  const RunStarted& s = run.started;
  const ModelLoaded* known = timeline.model(s.model);
  const ModelLoaded model = known ? *known : ModelLoaded{};
  table.cell(s.decoder).cell(decoder_options(s, ";")).cell(parameters_of(s)).cell(s.seed);
  table.cell(model.name).cell(draft_of(timeline, run));
  table.cell(model.scale).cell(model.dtype).cell(model.device);
  table.cell(program_version());
  table.end_row();
}

}  // namespace

std::string steps_csv(const Timeline& timeline, const CsvOptions& options) {
  Table table(
      "run,step,begin_ms,own_compute_before_ms,rows,kv_before_tokens,proposed,accepted,rejected,"
      "unused,committed_tokens,propose_ms,forward_ms,verify_ms,commit_ms,wall_ms" +
          std::string(kSource),
      options);
  for (const RunRecord& run : timeline.runs()) {
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
      const StepHead step = run.steps.head(i);
      if (!step.complete) continue;
      const StepEnded& e = step.ended;
      table.cell(run.id()).cell(step.begun.step).cell(ms(step.begun.t - run.started.t));
      // If the Drafted event was lost, the number of rows is unknown (0).
      const int n_rows = step.begun.n_rows;
      table.cell(ms(step.begun.compute));
      table.cell(n_rows > 0 ? std::optional<double>(n_rows) : std::nullopt).cell(step.begun.kv_len);
      table.cell(step.n_proposed).cell(step.n_accepted).cell(step.n_rejected).cell(step.n_unused);
      table.cell(step.n_tokens).cell(ms(e.propose)).cell(ms(e.forward));
      table.cell(ms(e.verify)).cell(ms(e.commit)).cell(ms(e.t - step.begun.t));
      end_row_of(table, timeline, run);
    }
  }
  return table.take();
}

std::string tokens_csv(const Timeline& timeline, const CsvOptions& options) {
  Table table("run,index,position,step,token_id,text,status,origin,logp_nats,drafted_by" +
                  std::string(kSource),
              options);
  for (const RunRecord& run : timeline.runs()) {
    std::int64_t index = 0;
    for (const TokenRecord& token : run.tokens) {
      const std::string bytes = timeline.generated_bytes(run, static_cast<std::size_t>(index));
      table.cell(run.id()).cell(index++).cell(token.pos).cell(token.step).cell(token.id);
      table.cell(bytes).cell(name_of(token.status));
      table.cell(name_of(token.origin.kind));
      table.cell(token.has_logp ? std::optional<double>(token.logp) : std::nullopt);
      table.cell(drafted_by(run.started.decoder, token.status, token.origin));
      end_row_of(table, timeline, run);
    }
    // Tokens accepted without verification at the end of a run belong to no step.
    if (!run.finished) continue;
    int position = run.tokens.empty() ? run.first_generated() : run.tokens.back().pos + 1;
    for (const TokenId id : run.finished->approximate) {
      table.cell(run.id()).cell(index++).cell(position++).cell("").cell(id);
      table.cell(timeline.bytes_of(run, {&id, 1})).cell(name_of(TokenStatus::Approximate));
      table.cell("").cell(std::optional<double>()).cell("");
      end_row_of(table, timeline, run);
    }
  }
  return table.take();
}

std::string acceptance_csv(const Timeline& timeline, const CsvOptions& options) {
  Table table("run,depth,proposed,verified,accepted,accepted_of_verified" + std::string(kSource),
              options);
  for (const RunRecord& run : timeline.runs()) {
    for (const auto& [depth, counts] : acceptance_by_depth(run)) {
      std::optional<double> rate;
      if (counts.n_verified > 0) {
        rate = static_cast<double>(counts.n_accepted) / static_cast<double>(counts.n_verified);
      }
      table.cell(run.id()).cell(depth).cell(counts.n_proposed).cell(counts.n_verified);
      table.cell(counts.n_accepted).cell(rate);
      end_row_of(table, timeline, run);
    }
  }
  return table.take();
}

std::string lanes_csv(const Timeline& timeline, const CsvOptions& options) {
  Table table(
      "run,race,lane,set,repeat,task,decoder,options,model,draft,scale,dtype,device,threads,seed,"
      "temperature,"
      "sampling,prompt_id,prompt_tokens,approximate_prompt_tokens,steps,tokens,tokens_per_step,"
      "tokens_per_second,acceptance_rate,"
      "prefill_ms,decode_ms,speedup,first_difference_from_ar,stop_reason,metrics,parameters,"
      "program_version",
      options);
  for (const RunRecord& run : timeline.runs()) {
    const RunStarted& s = run.started;
    const ModelLoaded* known = timeline.model(s.model);
    const ModelLoaded model = known ? *known : ModelLoaded{};
    const std::string letter(1, static_cast<char>('A' + (s.lane < 26 ? s.lane : 25)));
    table.cell(run.id()).cell(s.race).cell(letter);
    table.cell(s.place.set).cell(s.place.repeat).cell(s.place.task);
    table.cell(s.decoder).cell(decoder_options(s, ";"));
    table.cell(model.name).cell(draft_of(timeline, run));
    table.cell(model.scale).cell(model.dtype).cell(model.device);
    table.cell(model.n_threads).cell(s.seed).cell(s.temperature).cell(s.sampling);
    table.cell(s.prompt_id).cell(s.prompt_tokens.size());
    table.cell(s.n_approximate);
    table.cell(run.totals.n_steps).cell(run.totals.n_tokens);
    const auto defined = [](bool is, double value) {
      return is ? std::optional<double>(value) : std::nullopt;
    };
    table.cell(defined(run.totals.n_steps > 0, run.tokens_per_step()));
    table.cell(defined(run.totals.compute > 0, run.tokens_per_second()));
    table.cell(defined(run.n_proposed() > 0, run.acceptance_rate()));
    table.cell(defined(run.finished.has_value(), run.finished ? ms(run.finished->prefill) : 0));
    table.cell(ms(run.decode_compute())).cell(timeline.speedup(run));
    const bool compared = run.agreement.has_value();
    table.cell(compared ? fmt::format("{}", run.agreement->first_difference) : std::string());
    const std::string end = run.failed ? "failed" : (run.finished ? run.finished->stop_reason : "");
    table.cell(end).cell(metrics_of(run)).cell(parameters_of(s)).cell(program_version());
    table.end_row();
  }
  return table.take();
}

namespace {

struct NamedTable {
  const char* name;
  std::string (*make)(const Timeline&, const CsvOptions&);
};

constexpr NamedTable kAllTables[] = {{"steps", steps_csv},
                                     {"tokens", tokens_csv},
                                     {"acceptance", acceptance_csv},
                                     {"lanes", lanes_csv}};

std::string table_name(const std::string& stem, const NamedTable& table) {
  return fmt::format("{}-{}.csv", stem, table.name);
}

/// The first numbered stem for which none of the four tables exists.
std::string free_stem(const std::string& stem) {
  for (int n = 1;; ++n) {
    const std::string name = n == 1 ? stem : fmt::format("{}-{}", stem, n);
    const bool taken = std::ranges::any_of(kAllTables, [&](const NamedTable& table) {
      std::error_code ignored;
      return std::filesystem::exists(table_name(name, table), ignored);
    });
    if (!taken || n == kMaxNames) return name;
  }
}

}  // namespace

std::vector<std::string> write_tables(const Timeline& timeline,
                                      const std::string& stem,
                                      const CsvOptions& options,
                                      const std::function<void()>& before_each) {
  const std::string free = free_stem(stem);
  std::vector<std::string> files;
  try {
    for (const NamedTable& table : kAllTables) {
      if (before_each) before_each();
      OutputFile file(table_name(free, table), {}, OutputFile::IfExists::NewName);
      file.write(table.make(timeline, options));
      file.finish();
      files.push_back(file.path());
    }
  } catch (...) {
    std::error_code ignored;
    for (const std::string& path : files) std::filesystem::remove(path, ignored);
    throw;
  }
  return files;
}

}  // namespace engine

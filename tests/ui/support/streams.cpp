#include <algorithm>
#include <map>

#include "engine/event/drafted_by.h"
#include "tests/ui/support/streams.h"

namespace streams {
namespace {

using namespace engine;

constexpr Nanoseconds kMs = 1'000'000;

// Returns the next pseudo-random number in [0, n); the sequence is the same in every run.
int pick(std::uint32_t& state, int n) {
  state = state * 1664525u + 1013904223u;
  return static_cast<int>((state >> 10) % static_cast<std::uint32_t>(n));
}

struct Maker {
  const Story& story;
  RunId run;
  std::uint32_t dice = 7;
  int done = 0;  // answer tokens committed
  StepId step = 0;
  Nanoseconds compute = 0;
  std::vector<Step> steps;

  TokenId truth(int i) const {
    return story.answer[std::min<std::size_t>(i, story.answer.size() - 1)];
  }
  int left() const { return static_cast<int>(story.answer.size()) - done; }
  int position(int i) const { return static_cast<int>(story.prompt_tokens.size()) + i; }
  TokenId wrong() { return 1 + pick(dice, static_cast<int>(story.model.pieces.size()) - 1); }

  TokenTree root() const {
    TokenTree tree;
    const TokenId last = done > 0 ? truth(done - 1) : story.prompt_tokens.back();
    tree.token.push_back(last);
    tree.parent.push_back(-1);
    tree.tag.push_back({RowTag::Kind::Current, 0, 0});
    return tree;
  }

  static int add(TokenTree& tree, TokenId id, int parent, RowTag tag) {
    tree.token.push_back(id);
    tree.parent.push_back(parent);
    tree.tag.push_back(tag);
    return tree.n_rows() - 1;
  }

  void finish(TokenTree tree,
              std::vector<RowFate> fate,
              std::vector<TokenStatus> status,
              std::vector<RowTag> origin,
              std::vector<Event> more) {
    const int rows = tree.n_rows(), n = static_cast<int>(status.size());
    Verified verified{.run = run, .step = step, .fate = fate};
    for (int i = 0; i < rows; ++i) {
      verified.picked.push_back(truth(done + std::min(i, n - 1)));
      verified.logp.push_back(-0.02f * static_cast<float>(pick(dice, 40)));
      verified.margin.push_back(1.5f);
      verified.n_accepted += fate[i] == RowFate::Accepted;
      verified.n_rejected += fate[i] == RowFate::Rejected;
      verified.n_unused += fate[i] == RowFate::Unused;
    }
    verified.n_proposed = verified.n_accepted + verified.n_rejected + verified.n_unused;
    Committed committed{
        .run = run, .step = step, .first_pos = position(done), .status = status, .origin = origin};
    for (int i = 0; i < n; ++i) committed.tokens.push_back(truth(done + i));
    const Nanoseconds forward = 4 * kMs + rows * kMs / 12 + pick(dice, 400) * 1000;
    const int kv = position(done);
    StepEnded ended{.run = run,
                    .step = step,
                    .propose = 60'000,
                    .forward = forward,
                    .verify = 90'000,
                    .commit = 50'000,
                    .kv_len = kv + n};
    Step made;
    made.cost = ended.propose + ended.forward + ended.verify + ended.commit;
    made.events.push_back(
        StepBegun{.run = run, .step = step, .compute = compute, .kv_len = kv, .n_rows = rows});
    made.events.push_back(Drafted{.run = run, .step = step, .tree = std::move(tree)});
    made.events.push_back(std::move(verified));
    made.events.push_back(std::move(committed));
    for (Event& event : more) made.events.push_back(std::move(event));
    made.events.push_back(ended);
    compute += made.cost;
    done += n;
    ++step;
    steps.push_back(std::move(made));
  }

  void ar() {
    while (left() > 0) finish(root(), {RowFate::Context}, {TokenStatus::Plain}, {{}}, {});
  }

  // Adds a step with a chain of `n` proposals. The target accepts the first `right`, rejects the next and does not verify the others.
  void chain(int n, int right, RowTag::Kind kind, std::vector<Event> more, int n_window) {
    TokenTree tree = root();
    std::vector<RowFate> fate{RowFate::Context};
    std::vector<TokenStatus> status;
    std::vector<RowTag> origin;
    for (int i = 0; i < n; ++i) {
      const RowTag tag{kind, static_cast<std::int16_t>(kind == RowTag::Kind::Block ? i : 0),
                       static_cast<std::int16_t>(i)};
      add(tree, i < right ? truth(done + i) : wrong(), i, tag);
      fate.push_back(i < right    ? RowFate::Accepted
                     : i == right ? RowFate::Rejected
                                  : RowFate::Unused);
      if (i >= right || i >= left() - 1) continue;
      status.push_back(TokenStatus::Accepted);
      origin.push_back(tag);
    }
    for (int level = 0; level < n_window; ++level)
      for (int column = 0; column < 5; ++column) {
        add(tree, wrong(), column == 0 ? 0 : tree.n_rows() - 1,
            {RowTag::Kind::Window, static_cast<std::int16_t>(level),
             static_cast<std::int16_t>(column)});
        fate.push_back(RowFate::Window);
      }
    status.push_back(n == 0 ? TokenStatus::Plain : TokenStatus::Bonus);
    origin.push_back({});
    finish(std::move(tree), std::move(fate), std::move(status), std::move(origin), std::move(more));
  }

  void jacobi() {
    constexpr int kBlock = 15;
    for (int block = 0; left() > 0; ++block) {
      const int size = std::min(kBlock, left()), start = done;
      std::vector<TokenId> state;
      for (int i = 0; i < size; ++i) state.push_back(wrong());
      for (int iteration = 1; done < start + size; ++iteration) {
        const int before = done - start;
        const int n = std::min(size - before, 1 + std::max(0, pick(dice, 6) - 2));
        for (int i = before; i < size; ++i)
          if (i < before + n || pick(dice, 4) == 0)
            state[i] = truth(start + i);
          else if (state[i] != truth(start + i))
            state[i] = wrong();
        BlockRefined refined{.run = run,
                             .step = step,
                             .block = block,
                             .iteration = iteration,
                             .first_pos = position(start),
                             .tokens = state,
                             .n_final = before + n,
                             .converged = before + n == size};
        chain(size - before - 1, n - 1, RowTag::Kind::Block, {refined}, 0);
      }
    }
  }

  void lookahead() {
    PoolChanged pool{.run = run};
    while (left() > 0) {
      PoolNgram seen{.first = truth(done),
                     .rest = {truth(done + 1), truth(done + 2), truth(done + 3)},
                     .born = step};
      pool.step = step;
      pool.added = {seen};
      pool.tried.clear();
      const int right = std::min(left() - 1, std::max(0, pick(dice, 6) - 2));
      if (step > 0) {
        PoolNgram tried = seen;
        tried.n_tries = 2;
        tried.n_hits = right > 0;
        pool.tried.push_back(tried);
      }
      ++pool.n_ngrams;
      pool.n_keys = pool.n_ngrams;
      chain(step == 0 ? 0 : 3, step == 0 ? 0 : std::min(right, 3), RowTag::Kind::Guess, {pool}, 3);
    }
  }

  TokenId wrong_but(TokenId right, const std::vector<TokenId>& others) {
    for (;;) {
      const TokenId id = wrong();
      if (id != right && std::ranges::find(others, id) == others.end()) return id;
    }
  }

  // Adds steps that draft a tree with `k_config` children at each depth. If `rejects`, verification is rejection
  // sampling; otherwise it compares tokens. Guesses have no draft model and no probabilities.
  void drafted(const std::vector<int>& k_config,
               bool rejects,
               RowTag::Kind kind = RowTag::Kind::Draft) {
    while (left() > 0) {
      const int depth = std::min(static_cast<int>(k_config.size()), left() - 1);
      const int right = std::min(depth, std::max(0, pick(dice, depth + 3) - 1));
      TokenTree tree = root();
      std::vector<RowFate> fate{RowFate::Context};
      std::vector<TokenStatus> status;
      std::vector<RowTag> origin;
      std::vector<int> level{0};
      int path = 0;  // the last row on the accepted path; -1: the path has ended
      std::vector<RejectionDetail> rejection_details;
      for (int d = 0; d < depth; ++d) {
        std::vector<int> next;
        int kept = -1;
        for (const int parent : level) {
          const bool judged = parent == path;
          const int good = judged && d < right ? pick(dice, k_config[d]) : -1;
          std::vector<TokenId> siblings;
          for (int k = 0; k < k_config[d]; ++k) {
            const RowTag tag{kind, static_cast<std::int16_t>(d + 1), static_cast<std::int16_t>(k)};
            siblings.push_back(k == good ? truth(done + d) : wrong_but(truth(done + d), siblings));
            const int row = add(tree, siblings.back(), parent, tag);
            fate.push_back(!judged     ? RowFate::Unused
                           : k == good ? RowFate::Accepted
                                       : RowFate::Rejected);
            if (k == good) {
              kept = row;
              status.push_back(TokenStatus::Accepted);
              origin.push_back(tag);
            }
            next.push_back(row);
          }
          if (judged)
            rejection_details.push_back(
                distributions_behind(parent, siblings, truth(done + d), good >= 0));
        }
        path = kept;
        level = std::move(next);
      }
      status.push_back(depth == 0 ? TokenStatus::Plain : TokenStatus::Bonus);
      origin.push_back({});
      finish(std::move(tree), std::move(fate), std::move(status), std::move(origin), {});
      if (kind != RowTag::Kind::Draft) continue;
      tell_draft(k_config, depth,
                 rejects ? std::move(rejection_details) : std::vector<RejectionDetail>{}, rejects);
    }
  }

  static RejectionDetail distributions_behind(int row,
                                              const std::vector<TokenId>& drafted,
                                              TokenId taken,
                                              bool kept) {
    RejectionDetail w{.row = row, .token = {taken}};
    for (const TokenId id : drafted)
      if (id != taken) w.token.push_back(id);
    for (std::size_t i = 0; i < w.token.size(); ++i) {
      w.p.push_back(i == 0 ? 0.625f : 0.125f / static_cast<float>(i));
      w.q.push_back(i == 0 ? 0.25f : 0.5f / static_cast<float>(i));
      if (!kept) w.residual.push_back(i == 0 ? 0.75f : 0.0f);
    }
    return w;
  }

  // Adds the events of a draft model to the step that was added last.
  void tell_draft(const std::vector<int>& k_config,
                  int depth,
                  std::vector<RejectionDetail> rejection_details,
                  bool rejects) {
    constexpr Nanoseconds kForward = kMs / 2;
    Step& made = steps.back();
    std::vector<RowFate> fate;
    for (Event& event : made.events)
      if (auto* v = std::get_if<Verified>(&event)) {
        fate = v->fate;
        v->rejection_details = std::move(rejection_details);
        for (std::size_t row = 0; row < fate.size(); ++row) {
          const bool kept = fate[row] == RowFate::Accepted,
                     refused = fate[row] == RowFate::Rejected;
          v->p.push_back(row == 0 || (rejects && !kept && !refused) ? -1 : kept ? 0.625f : 0.125f);
          if (!rejects) continue;
          v->uniform.push_back(kept ? 0.25f : refused ? 0.875f : -1);
          v->keep.push_back(kept ? 1 : refused ? 0.25f : -1);
        }
      }
    for (Event& event : made.events)
      if (auto* d = std::get_if<Drafted>(&event)) {
        d->q.assign(fate.size(), 0.25f);
        d->q[0] = 1;
        for (std::size_t row = 1; row < fate.size(); ++row)
          if (fate[row] == RowFate::Unused) d->q[row] = 0.0625f;
        int n_rows = 1;
        for (int i = 0; i < depth; ++i) {
          d->forwards.push_back({.begun = 20'000 + i * kForward,
                                 .ended = 20'000 + (i + 1) * kForward - 10'000,
                                 .n_rows = n_rows});
          n_rows *= k_config[i];
        }
      } else if (auto* ended = std::get_if<StepEnded>(&event)) {
        ended->propose += depth * kForward;
      }
    made.cost += depth * kForward;
    compute += depth * kForward;
  }

  // Adds FastCoT's steps: a window after the last token is refilled in every step.
  void fastcot() {
    for (int iteration = 0; left() > 0; ++iteration) {
      const int size = std::min(6, left() - 1);
      const int right = std::min(size, std::max(0, pick(dice, 5) - 2));
      BlockRefined window{.run = run, .step = step, .iteration = iteration};
      window.first_pos = position(done + right);
      window.tokens.push_back(truth(done + right));
      for (int i = 0; i < size; ++i) window.tokens.push_back(wrong());
      window.n_final = 1;
      chain(size, right, RowTag::Kind::Block, {window}, 0);
    }
  }

  // Adds steps that copy a chain of tokens and one other token, from all kinds of texts in turn.
  void suffix() {
    while (left() > 0) {
      const int n = step % 5 == 0 ? 0 : std::min(4, left() - 1);
      const int right = std::min(n, pick(dice, 6));
      const auto kind = static_cast<GuessSource::Kind>(1 + step % 4);
      TokenTree tree = root();
      std::vector<GuessSource> sources(1);
      std::vector<RowFate> fate{RowFate::Context};
      std::vector<TokenStatus> status;
      std::vector<RowTag> origin;
      const auto copy = [&](TokenId id, int parent, int depth, RowFate result) {
        const RowTag tag = copied_tag(kind, depth);
        add(tree, id, parent, tag);
        fate.push_back(result);
        sources.push_back(
            {kind, kind == GuessSource::Kind::Earlier ? 1U : 0U, 10 + depth, 3 - depth / 2, 4});
        if (result != RowFate::Accepted) return;
        status.push_back(TokenStatus::Accepted);
        origin.push_back(tag);
      };
      for (int i = 0; i < n; ++i)
        copy(i < right ? truth(done + i) : wrong_but(truth(done + i), {}), i, i,
             i < right    ? RowFate::Accepted
             : i == right ? RowFate::Rejected
                          : RowFate::Unused);
      if (n > 0) copy(wrong_but(truth(done), {tree.token[1]}), 0, 0, RowFate::Rejected);
      status.push_back(n == 0 ? TokenStatus::Plain : TokenStatus::Bonus);
      origin.push_back({});
      finish(std::move(tree), std::move(fate), std::move(status), std::move(origin), {});
      for (Event& event : steps.back().events)
        if (auto* drafted = std::get_if<Drafted>(&event)) drafted->sources = sources;
    }
  }

  void prompt_lookup() {
    while (left() > 0) {
      const bool found = pick(dice, 3) == 0;
      const int right = std::min(left() - 1, pick(dice, 8));
      chain(found ? 7 : 0, found ? right : 0, RowTag::Kind::Guess, {}, 0);
    }
  }
};

void stamp(Event& event, Nanoseconds t) {
  std::visit([t](auto& e) { e.t = t; }, event);
}

void push(std::vector<Event>& events, Event event, Nanoseconds t) {
  stamp(event, t);
  events.push_back(std::move(event));
}

void push_step(std::vector<Event>& events, const Step& step, Nanoseconds& t) {
  const auto n = static_cast<Nanoseconds>(step.events.size());
  for (Nanoseconds i = 0; i < n; ++i) push(events, step.events[i], t + step.cost * i / (n - 1));
  t += step.cost + 40'000;
}

bool drafts(const std::string& decoder) {
  return decoder == "speculative" || decoder == "mcsd";
}

ModelLoaded draft_model(const Story& story) {
  ModelLoaded draft = story.model;
  draft.model = 2;
  draft.name = "demo-draft";
  draft.scale = "1x1";
  draft.n_params = 340'000;
  draft.weights_hash = "fnv1a64:00000000000000dd";
  return draft;
}

RunStarted started(const Story& story, const std::string& decoder, RunId run) {
  RunStarted s{.run = run, .model = story.model.model, .decoder = decoder};
  s.seed = 1;
  s.sampling = "coupled";
  s.max_tokens = static_cast<int>(story.answer.size());
  s.prompt = story.prompt;
  s.prompt_tokens = story.prompt_tokens;
  if (drafts(decoder)) s.draft = draft_model(story).model;
  if (decoder == "mcsd") {
    s.options = {{"k_config", "2,2,1"}, {"rule", "without"}};
    s.temperature = 0.8f;
    s.sampling = "rejection";
  }
  if (decoder == "lookahead")
    s.options = {{"window", "5"}, {"ngram_size", "4"}, {"n_guesses", "5"}};
  return s;
}

}  // namespace

Story story(int n_tokens) {
  const std::string prompt =
      "def count_even(values):\n  \"\"\"Return how many values are even.\"\"\"\n";
  const std::string answer =
      "  total = 0\n  for value in values :\n    if value % 2 == 0 :\n      total += 1\n  return "
      "total\n"
      "print ( count_even ( [ 1 , 2 , 3 , 4 ] ) )\n# it prints 2 , because 2 and 4 are even\n";
  Story s;
  std::map<std::string, TokenId> ids;
  const auto id_of = [&](const std::string& piece) {
    const auto [at, added] = ids.try_emplace(piece, static_cast<TokenId>(ids.size()));
    if (added) s.model.pieces.push_back(piece);
    return at->second;
  };
  const auto split = [&](const std::string& text) {
    std::vector<TokenId> tokens;
    std::string piece;
    for (const char c : text) {
      if ((c == ' ' || c == '\n') && !piece.empty() && piece != " ") {
        tokens.push_back(id_of(piece));
        piece.clear();
      }
      piece += c;
      if (c == '\n') {
        tokens.push_back(id_of(piece));
        piece.clear();
      }
    }
    return tokens;
  };
  id_of("</s>");
  s.prompt = prompt;
  s.prompt_tokens = split(prompt);
  const std::vector<TokenId> once = split(answer);
  while (static_cast<int>(s.answer.size()) < n_tokens)
    s.answer.insert(s.answer.end(), once.begin(), once.end());
  s.answer.resize(n_tokens);
  ModelLoaded& m = s.model;
  m.model = 1;
  m.name = "demo-target";
  m.dtype = "bf16";
  m.device = "cpu";
  m.ops = "avx512bf16";
  m.scale = "4x2";
  m.n_params = 88'000'000;
  m.weight_bytes = 176'000'000;
  m.n_layers = 12;
  m.dim = 768;
  m.vocab_size = static_cast<int>(m.pieces.size());
  m.max_seq_len = 4096;
  m.n_threads = 2;
  m.eos_ids = {0};
  m.pieces[0].clear();
  m.special_ids = {0};
  m.special_names = {"</s>"};
  return s;
}

std::vector<Step> steps_of(const Story& story, const std::string& decoder, RunId run) {
  Maker maker{.story = story, .run = run, .dice = run * 77u + 5u};
  if (decoder == "jacobi")
    maker.jacobi();
  else if (decoder == "lookahead")
    maker.lookahead();
  else if (decoder == "prompt-lookup")
    maker.prompt_lookup();
  else if (decoder == "suffix")
    maker.suffix();
  else if (decoder == "recycling")
    maker.drafted({3, 2, 1}, false, RowTag::Kind::Guess);
  else if (decoder == "speculative")
    maker.drafted({1, 1, 1, 1}, false);
  else if (decoder == "mcsd")
    maker.drafted({2, 2, 1}, true);
  else if (decoder == "fastcot")
    maker.fastcot();
  else
    maker.ar();
  return std::move(maker.steps);
}

std::vector<Event> race(const std::vector<std::string>& decoders,
                        int n_tokens,
                        RunId first_run,
                        std::uint32_t id) {
  const Story s = story(n_tokens);
  std::vector<Event> events;
  Nanoseconds t = 3 * kMs;
  push(events, s.model, t);
  if (std::ranges::any_of(decoders, drafts)) push(events, draft_model(s), t);
  struct Lane {
    std::vector<Step> steps;
    std::size_t next = 0;
    Nanoseconds used = 0;
  };
  std::vector<Lane> lanes;
  for (std::size_t i = 0; i < decoders.size(); ++i) {
    const RunId run = first_run + static_cast<RunId>(i);
    lanes.push_back({steps_of(s, decoders[i], run)});
    RunStarted start = started(s, decoders[i], run);
    start.race = id;
    start.lane = static_cast<int>(i);
    push(events, start, t += kMs);
    push(events, Phase{.run = run, .name = "prefill", .done = 31, .total = 31}, t += 4 * kMs);
  }
  for (;;) {
    Lane* next = nullptr;
    for (Lane& lane : lanes)
      if (lane.next < lane.steps.size() && (!next || lane.used < next->used)) next = &lane;
    if (!next) break;
    next->used += next->steps[next->next].cost;
    push_step(events, next->steps[next->next++], t);
    if (next->next < next->steps.size()) continue;
    const auto i = static_cast<std::size_t>(next - lanes.data());
    RunFinished finished{.run = first_run + static_cast<RunId>(i),
                         .stop_reason = "length",
                         .n_tokens = n_tokens,
                         .n_steps = static_cast<int>(next->steps.size()),
                         .prefill = 4 * kMs,
                         .decode = next->used};
    if (decoders[i] == "fastcot") {
      finished.stop_reason = "bound";
      finished.approximate.assign(s.answer.begin(), s.answer.begin() + 5);
    }
    push(events, std::move(finished), t);
  }
  for (std::size_t i = 1; i < decoders.size(); ++i)
    push(events,
         Agreement{.run = first_run + static_cast<RunId>(i),
                   .baseline = first_run,
                   .n_compared = n_tokens},
         t += 1000);
  return events;
}

std::vector<Event> one_run(const std::string& decoder, int n_tokens, RunId run) {
  std::vector<Event> events = race({decoder}, n_tokens, run, 0);
  return events;
}

std::vector<Event> failed_run() {
  std::vector<Event> events = one_run("lookahead", 40);
  events.resize(events.size() / 2);
  while (!std::holds_alternative<StepEnded>(events.back())) events.pop_back();
  push(events,
       RunFailed{.run = 1,
                 .code = 4,
                 .message = "kv cache: found room for 64 rows, expected 96; a shorter answer fits"},
       time_of(events.back()) + 1);
  return events;
}

std::vector<Event> cut_mid_step() {
  std::vector<Event> events = one_run("jacobi", 60);
  events.resize(events.size() / 2);
  while (!std::holds_alternative<Drafted>(events.back())) events.pop_back();
  return events;
}

ui::Catalog catalog() {
  using Type = ui::CatalogOption::Type;
  ui::Catalog c;
  c.app_version = "0.1.0";
  c.decoders = {
      {"ar", "AR", "One token a step.", "", true, true, "", {}},
      {"jacobi",
       "Jacobi",
       "Refines a block of guesses until it stops changing.",
       "Santilli et al. 2023",
       true,
       false,
       "",
       {{"block", Type::Int, "16", 1, 256, {}, "Tokens refined at once."},
        {"refill", Type::Choice, "block", 0, 0, {"block", "slide"}, "When new guesses join."}}},
      {"lookahead",
       "Lookahead",
       "Collects n-grams in a window and verifies them.",
       "Fu et al. 2024",
       true,
       true,
       "",
       {{"window", Type::Int, "5", 1, 64, {}, "Columns of the window (W)."},
        {"ngram_size", Type::Int, "4", 2, 16, {}, "Length of an n-gram (N)."},
        {"n_guesses", Type::Int, "5", 0, 64, {}, "N-grams verified a step (G)."},
        {"prompt_pool",
         Type::Bool,
         "true",
         0,
         0,
         {},
         "Takes n-grams of the prompt into the pool."}}},
      {"prompt-lookup",
       "Prompt lookup",
       "Copies what followed the same words before.",
       "Saxena 2023",
       true,
       true,
       "",
       {{"ngram_size", Type::Int, "3", 1, 16, {}, "Words that must match."}}},
      {"speculative",
       "Speculative",
       "A draft model proposes.",
       "Leviathan et al. 2023",
       true,
       true,
       "",
       {{"gamma", Type::Int, "4", 1, 64, {}, "Tokens drafted a step."}},
       true},
      {"medusa", "Medusa", "Heads propose.", "Cai et al. 2024", true, false, "no heads loaded", {}},
  };
  c.models = {
      {"demo-target", "assets/models/demo-target", "3.4 M parameters, bf16", 3'400'000, true, "",
       "demo-draft", 512, 7},
      {"demo-draft", "assets/models/demo-draft", "0.3 M parameters, bf16", 340'000, true, "", "",
       512, 7},
      {"other", "assets/models/other", "1 M parameters, bf16", 1'000'000, true, "", "", 500, 8}};
  c.prompts = {{"G4-001", "count even values", story().prompt},
               {"G3-001", "stickers", "Question: Anna has 11 stickers and finds 33 more. Answer:"}};
  const std::string nowhere = "an open set; set DECOSCOPE_DATA to the folder of the sets";
  c.chain_tasks = {{"kb", "facts and rules", "", true},
                   {"aqua", "algebra", nowhere},
                   {"strategyqa", "facts", nowhere}};
  c.tree_tasks = {{"arith", "small sums", "", true, 1, 4},
                  {"blocks", "plans", "", true, 2, 7, true},
                  {"gsm8k", "school sums", nowhere, false, 1, 4}};
  c.devices = {{"cpu", "CPU, 2 threads, AVX-512", ""}, {"cuda", "CUDA", "no driver found"}};
  c.health = {{"window", "OpenGL 3.0", true, ""},
              {"CPU", "2 threads, AVX-512 BF16", true, ""},
              {"GPU", "no driver found", false,
               "Everything runs on the CPU; install a driver for more speed.", false},
              {"models", "demo-target", true, ""}};
  return c;
}

}  // namespace streams

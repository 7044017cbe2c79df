"""What the papers of the decoders state, beside what all_decoders.sh measured of them, as a Markdown table."""
import math

# System, what is stated and where, our lanes beside it, why the two differ.
STATED = [
    ("Jacobi, model as it is",
     "about 1.05x (Kou et al. 2024, Table 1 and its blog post)",
     ["jacobi"],
     "A model that was not trained for it settles hardly more than a token a step on either machine. On their GPU the rows of a "
     "block cost nothing, here a step of 16 costs what the table of steps says. Their time is that of a form that computes the whole"
     " block anew in every iteration, prompt included, and the mean of the prompts' ratios; ours is decode time, totals against "
     "totals."),
    ("Lookahead",
     "1.40x to 2.26x on one GPU (Fu et al. 2024, Fig. 5); 1.78x with 1.96 tokens a step by W, N, G = 15, 5, 15, and 1.88x with 2.05 "
     "with n-grams of the prompt (7B chat, MT-bench, Table 3)",
     ["lookahead"],
     "Theirs evaluates (W + G)(N - 1) = 120 rows a step, which an A100 has to spare; ours 12 at most (2, 3, 4), for rows are dear "
     "here, so fewer n-grams are found and shorter ones. For ours: the bonus token behind a full match is kept, and n-grams of the "
     "text are looked up rightly (the published program leaves out the one and spoils the other). Their steps count the prompt's "
     "forward."),
    ("Prompt lookup",
     "about 2.4x on summaries and questions about a given text (its notebook); 1.44x with 1.55 tokens a step on MT-bench (Fu et al. "
     "2024, Table 3)",
     ["prompt-lookup", "prompt-lookup sized"],
     "It lives on answers that repeat their prompt: summaries do, ours repeat a question's numbers and names, and their own turns of"
     " phrase."),
    ("FastCoT",
     "1.14x (34.1 s against 38.9 s, 40 questions of StrategyQA, 13B, window 10; Zhang et al. 2023, Table 1)",
     ["fastcot"],
     "Guesses of a model that was not trained to guess: as Jacobi's, rows that seldom become tokens; in theirs they are nearly free,"
     " on a GPU. Their Table 2 names that run as one without skipping, where steps cannot become fewer, so skips or a bound on "
     "iterations are in it; here every text is whole."),
    ("Draft and verify, SEED",
     "1.1x to 1.5x of plain decoding; SEED gains 1.8 to 12.0 % over its own base, median 5.1 % (68M draft of a 7B target, Table 1; "
     "pairs of one and the same algorithm differ by -0.7 to 8.3 % there)",
     ["speculative", "mcsd", "mcsd sized", "seed"],
     "Our draft costs little of a step at 4x2 and was trained on the target's own texts, which seldom surprise (0.21 nats a token). "
     "`seed` has three texts at once here; what it gains over its own base at equal trees is in `draft_and_verify.md`. What they "
     "time leaves out the last answer of each search."),
    ("Medusa",
     "above 2.2x with the target untouched (Cai et al. 2024, Medusa-1, 7B, 64 rows); first guess right in 29 % of places (Chimera's "
     "Table 5)",
     ["medusa"],
     "Their tree has 64 rows, ours as many as pay here. Our texts are more predictable, so heads are right more often; what 64 rows "
     "would add is lost to their cost."),
    ("Chimera",
     "2.7x on average, greedy (2.77x in its text, 2.71x the mean of its five values; MT-bench); first guess right in 49 % of places "
     "(Table 5)",
     ["chimera", "chimera drafting=branch"],
     "Each of its draft heads reads 2,048 x 1,536 weights at 4x2, one level after another, on the two cores that step: how long "
     "that takes stands above the tables. Their clock leaves out prompts and, where a text ends by itself, the last step, whose "
     "tokens it counts; their average is of ratios."),
    ("CLLM",
     "2.4x to 3.4x (Spider, CodeSearchNet-Python, GSM8K; Kou et al. 2024, Table 1); fast-forward and stationary tokens 2.0 to 6.8 "
     "times the base model's (Table 3)",
     ["jacobi@demo-cllm", "jacobi@demo-cllm sliding, sized", "lookahead@demo-cllm"],
     "Their blocks of 16 and 32 are free rows on a GPU; here a block of 16 is past what is cheap, and the window sized to the "
     "machine brings the gain. Ours slides where theirs shrinks until it has converged. Ours is compared with plain decoding by the "
     "trained model itself, and its tasks are generated from templates, which are easier to learn by heart than the published sets: "
     "those it has not learned (open sets) show less."),
]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def ours(found, names, lane):
    """Tokens a step and speed-up of a lane over tasks or sets."""
    of = [found[name]["4x2"][lane] for name in names if lane in found[name]["4x2"]]
    if not of:
        return None
    return f"{geometric_mean([one['tokens'] for one in of]):.2f} a step, {geometric_mean([one['speedup'] for one in of]):.2f}x"


def mean_of(found, names, lane, what):
    values = [found[name]["4x2"][lane][what] for name in names if lane in found[name]["4x2"]]
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def cell(found, tasks, sets, lanes):
    parts = []
    for lane in lanes:
        over = [f"{said} {word}" for word, names in (("on tasks", tasks), ("on open sets", sets)) if (said := ours(found, names, lane))]
        if over:
            parts.append(f"{lane}: " + " and ".join(over))
        share = mean_of(found, tasks, lane, "first guess")
        if share is not None:
            parts.append(f"{lane}'s first level right in {share:.0%} of steps")
    if "jacobi@demo-cllm" in lanes:
        before, behind = (mean_of(found, tasks, lane, "fast-forward") for lane in ("jacobi", "jacobi@demo-cllm"))
        if before and behind:
            parts.append(f"fast-forward tokens {behind / before:.1f} times the target's")
    return "; ".join(parts) or "not measured"


def table(found, tasks, sets):
    print("| system | the paper states | ours, tokens a step and speed-up | why it differs |\n| --- | --- | --- | --- |")
    for system, stated, lanes, why in STATED:
        print(f"| {system} | {stated} | {cell(found, tasks, sets, lanes)} | {why} |")

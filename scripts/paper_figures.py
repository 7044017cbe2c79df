"""Prints a Markdown table of the figures that the decoders' papers state, beside those that all_decoders.sh measured."""
import math

# Each entry: system, figure that its paper states, our lanes, reason why the two differ.
STATED = [
    ("Jacobi, model as it is",
     "about 1.05x (Kou et al. 2024, Table 1 and its blog post)",
     ["jacobi"],
     "A model that was not trained for Jacobi finishes little more than one token a step. On their GPU the rows of a block are free; here "
     "a step's rows cost what the table of steps says. They time a form that computes the whole block in every iteration, include "
     "the prompt, and divide mean speeds of the prompts; ours is decode time, totals divided by totals."),
    ("Lookahead",
     "1.40x to 2.26x on one GPU (Fu et al. 2024, Fig. 5); 1.78x with 1.96 tokens a step by W, N, G = 15, 5, 15, and 1.88x with 2.05 "
     "with n-grams of the prompt (7B chat, MT-bench, Table 3)",
     ["lookahead"],
     "The paper evaluates (W + G)(N - 1) = 120 rows a step, which cost little on an A100; ours evaluates as many as pay off, so it finds "
     "fewer and shorter n-grams. Ours keeps the bonus token after a full match and looks up the text's n-grams correctly; the "
     "published program omits the first and mixes up the second. Their steps include the prompt's forward."),
    ("Prompt lookup",
     "about 2.4x on summaries and questions about a given text (its notebook); 1.44x with 1.55 tokens a step on MT-bench (Fu et al. "
     "2024, Table 3)",
     ["prompt-lookup", "prompt-lookup sized"],
     "It gains on answers that repeat their prompt. Summaries do; ours repeat the numbers and names of a question and their own "
     "phrases."),
    ("FastCoT",
     "1.14x (34.1 s against 38.9 s, 40 questions of StrategyQA, 13B; Zhang et al. 2023, Table 1)",
     ["fastcot"],
     "The model was not trained to guess blocks, so the window's rows seldom become tokens; on a GPU these rows are nearly free. Their "
     "Table 2 calls that run one without skipping, which cannot reduce steps, so it must contain skips or a bound on iterations; here "
     "every rationale is complete."),
    ("Draft and verify, SEED",
     "1.1x to 1.5x of plain decoding; SEED gains 1.8 to 12.0 % over its own base, median 5.1 % (68M draft of a 7B target, Table 1; "
     "pairs of one and the same algorithm differ by -0.7 to 8.3 % there)",
     ["speculative", "mcsd", "mcsd sized", "seed"],
     "Our draft costs little of a step at 4x2 and was trained on the target's own texts, which are predictable (0.21 nats a token). "
     "`seed` decodes three texts at once here; docs/results.md has its gain over its own base. Their times leave out the last answer "
     "of each search."),
    ("Medusa",
     "above 2.2x with the target untouched (Cai et al. 2024, Medusa-1, 64 rows); top-1 of heads 1 and 2, free-running: 52 and 29 % "
     "(heads 0 and 1 in Chimera's Table 5)",
     ["medusa"],
     "Their tree has 64 rows, ours as many as pay off on this machine. Our texts are more predictable, so heads are right more often; "
     "64 rows would cost more time than they save."),
    ("Chimera",
     "2.7x on average, greedy (2.77x in its text, 2.71x the mean of its five values; MT-bench); top-1 of heads 1 and 2, free-running: 66 "
     "and 49 % (heads 0 and 1 in Table 5)",
     ["chimera", "chimera drafting=branch"],
     "Each of its draft heads reads 2,048 x 1,536 weights at 4x2, one level after another, on the same two cores; the lines above the "
     "tables give the time. Their clock leaves out prompts and the last step of a text that ends by itself, but counts that step's "
     "tokens; their average is of ratios."),
    ("CLLM",
     "2.4x to 3.4x (Spider, CodeSearchNet-Python, GSM8K; Kou et al. 2024, Table 1); fast-forward and stationary tokens 2.0 to 6.8 "
     "times the base model's (Table 3)",
     ["jacobi@demo-cllm", "jacobi@demo-cllm sliding, sized", "lookahead@demo-cllm"],
     "Their blocks of 16 and 32 rows are free on a GPU; here a block of 16 is too wide, and a window sized to the machine gains more. "
     "Ours slides, theirs shrinks until it has converged. Ours is compared with plain decoding by the trained model itself. Its tasks "
     "are generated from templates, which are easier to learn than the published sets; on the open sets it gains less."),
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


def top1_of(kind, shares):
    """The free-running top-1 accuracies of heads. accuracies.json has those after the text's own tokens: the same for Medusa's heads and for
    Chimera's first one, because these read no guesses."""
    right = [f"{share:.0%}" for share in shares]
    if kind == "medusa":
        return f"top-1 of heads 1 to {len(right)}, free-running: {', '.join(right)}"
    return f"top-1 of head 1, free-running: {right[0]}; of further heads only after right tokens: {', '.join(right[1:])}"


def cell(found, tasks, sets, top1, lanes):
    parts = []
    for lane in lanes:
        over = [f"{said} {word}" for word, names in (("on tasks", tasks), ("on open sets", sets)) if (said := ours(found, names, lane))]
        if over:
            parts.append(f"{lane}: " + " and ".join(over))
    if lanes[0] in top1:
        parts.append(top1_of(lanes[0], top1[lanes[0]]))
    if "jacobi@demo-cllm" in lanes:
        before, after = (mean_of(found, tasks, lane, "fast-forward") for lane in ("jacobi", "jacobi@demo-cllm"))
        if before and after:
            parts.append(f"fast-forward tokens {after / before:.1f} times the target's")
    return "; ".join(parts) or "not measured"


def table(found, tasks, sets, top1):
    """@param top1  {kind of heads: top-1 accuracy of each head}"""
    print("| system | the paper states | ours, tokens a step and speed-up | why it differs |\n| --- | --- | --- | --- |")
    for system, stated, lanes, why in STATED:
        print(f"| {system} | {stated} | {cell(found, tasks, sets, top1, lanes)} | {why} |")

"""Prints the tables of scripts/reason_race.sh.

  reason_tables.py OUT_DIR REPEATS "TREE=BASE..." "CHAIN=BASE..."      names in the order they ran

Exit code 1, after the tables, if a tree or a text differs from plain decoding's.
"""
import json
import statistics
import sys

from step_costs import after_prompt, at, costs, listed, of_its_rows, race_costs

OUT, REPEATS = sys.argv[1], int(sys.argv[2])
CHAINS = sys.argv[4].split()
WITHIN = 0.15  # tolerated difference between the gain of a schedule and its bound, as a share of the bound
DRAFT_FORWARDS = 3  # draft forwards per text before a timed step
CHAIN_STEPS = (24, 96)  # typical steps of a rationale: consistency model, target


def reports(what, name, n=REPEATS):
    files = [f"{OUT}/{what}-{name}.{repeat}.json" for repeat in range(1, n + 1)]
    return [json.load(open(file)) for file in files]


def head(*columns):
    print("\n| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def decode_ms(report):
    """Wall time without reading prompts. Prompts that the draft reads while the target works cost no time and are not subtracted."""
    s = report["schedule"]
    beside = s.get("draft_prefill_ms", 0) * s.get("overlapped", 0)
    return s["wall_ms"] - s["prefill_ms"] + beside


def gains(of, base):
    """Speed-ups of each repeat over the base of the same repeat."""
    return [decode_ms(b) / decode_ms(r) for r, b in zip(of, base)]


def gain(of, base):
    return statistics.median(gains(of, base))


def times_around(repeat, what):
    """Names of the step timings that were measured directly before and after the trees (or the chains) of a repeat."""
    before = repeat - 1 if CHAINS or repeat == 1 else f"{repeat - 1}-trees"
    return (before, f"{repeat}-trees") if what == "trees" else (f"{repeat}-trees", repeat)


def step_ms(kind, repeat, rows, steps, draft=False):
    """Milliseconds of a step with `rows` rows per text, the mean over the first `steps` steps. Uses the timings before and after a repeat. With `draft`, the result is the time of the draft's forwards before the step."""
    files = [f"{OUT}/{kind}.{name}.json" for name in times_around(repeat, kind.partition("-")[0] + "s")]
    return at(after_prompt(race_costs(*files, draft=draft), steps), rows)


def steps_a_text(report):
    return report["schedule"]["steps"] / report["schedule"]["runs"]


def gain_of_chain(of, plain):
    """Like gain(), but excludes only the time to read the questions. FastCoT also reads its guesses and the trigger after an early end; this
    counts as time of the decoder."""
    return statistics.median([decode_ms(p) / (r["schedule"]["wall_ms"] - p["schedule"]["prefill_ms"]) for r, p in zip(of, plain)])


def stages(report):
    """Milliseconds of a draft and of a verification, as means over the steps of texts."""
    s = report["schedule"]
    return s["draft_busy_ms"] / s["steps"], s["target_busy_ms"] / s["steps"]


def together(report):
    """Mean number of texts in a forward of the target."""
    return report["schedule"]["steps"] / report["schedule"]["forwards"]


def rows_of(report):
    """Mean number of rows in a forward of the target."""
    return report["rows"] / report["steps"] * together(report)


def draft_of(name):
    return "slow-draft" if "slow-draft" in name else "draft"


def least(draft, verify, draft_slower, verify_slower, may_take_turns):
    """The least time in ms for one draft and one verification. While both run at the same time, each is slower by its factor; then the rest
    of the longer one runs alone. If may_take_turns, running one after the other counts too if it is faster."""
    drafting, verifying = draft * draft_slower, verify * verify_slower
    if drafting <= verifying:
        at_once = drafting + verify - drafting / verify_slower
    else:
        at_once = verifying + draft - verifying / draft_slower
    return min(at_once, draft + verify) if may_take_turns else at_once


def bounds(name, seed, base, target):
    """The largest gain of a schedule over its own base: by the paper's formula, and on these cores.

    Uses only the schedule's branches, rows and texts per verification, not its times.
    """
    n, m = seed["schedule"]["branches"], together(seed)
    draft, verify = stages(base)
    share = lambda report: at(target, rows_of(report)) / together(report)
    cores, kind, rows = "own" if "own-core" in name else "shared", draft_of(name), rows_of(seed)
    times = lambda over, under, rows: at(costs(f"{OUT}/{over}.json"), rows) / at(costs(f"{OUT}/{under}.json"), rows)
    alone_draft = draft * times(f"{kind}-one", f"{kind}-steps", 1)
    alone_verify = verify * share(seed) / share(base) * times(f"target-{cores}", "target-shared", rows)
    draft_slower = max(1, times(f"{kind}-one-beside-{cores}", f"{kind}-one", 1))
    verify_slower = max(1, times(f"target-{cores}-beside-{kind}", f"target-{cores}", rows))
    may_take_turns = not name.endswith("-always")
    turn = max((alone_draft + m * alone_verify) / n, least(alone_draft, alone_verify, draft_slower, verify_slower, may_take_turns))
    return min(n, (draft + verify) / verify), max(1 if may_take_turns else 0, (draft + verify) / turn)


def tree_step_ms(name, report, repeat):
    """Expected milliseconds a step for each text: its share of the forward and of the drafts."""
    if not report["proposed"]:
        return step_ms("tree-plain", repeat, 1, steps_a_text(report))
    rows = rows_of(report) / together(report)
    one = f"tree-{draft_of(name)}"

    def share(kind, texts, draft):  # of one text
        return step_ms(kind, repeat, rows, steps_a_text(report), draft) / texts

    def of_texts(draft):
        by_texts = {1: share(one, 1, draft)}
        if one == "tree-draft":
            by_texts |= {n: share(f"{one}-{n}", n, draft) for n in (3, 6)}
        return at(by_texts, together(report))
    forwards = report["proposed"] / report["steps"] / (2 if "mcsd" in name else 1)  # of the draft, one a level
    return of_texts(draft=False) + forwards / DRAFT_FORWARDS * of_texts(draft=True)


def tree_table(names, target):
    """Prints the table. @return  names of the trees that differ from plain decoding's"""
    base_of = dict(name.split("=") for name in names)
    trees = {name: reports("tree", name) for name in base_of}
    parts = lambda report: [[node["parts"] for node in item["nodes"]] for item in report["items"]]
    others, slower, short = [], [], []
    head("decoder", "tokens/step", "tokens/s", "against ar", "against speculative", "against own base", "of its rows", "target busy",
         "bound: paper", "of it", "bound: here", "of it here", "overlap", "same trees")
    for name, of in trees.items():
        first, base = of[0], trees.get(base_of[name])
        speedup = gain(of, trees["ar"])
        plain = trees["ar"]
        fewer = plain[0]["schedule"]["steps"] / first["schedule"]["steps"]
        of_rows = [of_its_rows(one, fewer, tree_step_ms("ar", plain[repeat - 1], repeat), tree_step_ms(name, of[repeat - 1], repeat))
                   for repeat, one in enumerate(gains(of, plain), start=1)]
        figure = lambda field: f"{statistics.median([r['schedule'][field] for r in of]):.2f}" if field in first["schedule"] else "-"
        against_base = ["-"] * 5
        if base:
            own = gain(of, base)
            limits = [bounds(name, r, b, target) for r, b in zip(of, base)]
            paper, here = (statistics.median(limit) for limit in zip(*limits))
            against_base = [f"{own:.2f}x", f"{paper:.2f}", f"{own / paper:.2f}", f"{here:.2f}", f"{own / here:.2f}"]
            if own < (1 - WITHIN) * here:
                short.append(f"{name} {own / here:.2f}")
            if own < 1:
                slower.append(f"{name} {own:.3f}x of {base_of[name]}")
        same = all(parts(r) == parts(trees["ar"][0]) for r in of)
        if not same:
            others.append(name)
        row(name, f"{first['tokens_per_step']:.2f}", f"{statistics.median([r['tokens_per_second'] for r in of]):.0f}", f"{speedup:.2f}x",
            f"{gain(of, trees['speculative']):.2f}x", against_base[0], f"{statistics.median(of_rows):.2f}", figure("target_busy"),
            *against_base[1:],
            figure("overlap"), "yes" if same else "NO")
    print(f"\nMore than {WITHIN:.0%} below the bound here: {', '.join(short) or 'none'}")
    print(f"Slower than its own base: {', '.join(slower) or 'none'}")
    return others


def memory_table():
    fields = ("weight_bytes", "draft_weight_bytes", "branch_cache_bytes", "cache_bytes", "draft_cache_bytes")
    head("branches", *fields)
    for n in (1, 2, 4):
        schedule = reports("memory", n, 1)[0]["schedule"]
        row(n, *(f"{int(schedule[field]):,}" for field in fields))


def answers(report):
    return {item["id"]: (item["text"], item["answer"]) for item in report["items"]}


def chain_table(names):
    """Prints the table. @return  names of chains whose texts differ from the same chain's at 1x1 or, without a bound, from plain decoding"""
    others = []
    base_of = {name: base if base != "-" else name for name, base in (pair.rsplit("=", 1) for pair in names)}
    chains = {name: reports("chain", name) for name in base_of}
    right = {name: reports("right", name, 1)[0] for name in base_of}
    steps_of = lambda report: sum(item["steps"] for item in report["items"])
    points = lambda report: 100 * report["n_correct"] / report["n"]
    head("decoder", "tokens/step", "ms/question", "against ar", "of its rows", "right", "points against ar", "same texts at 1x1")
    for name, of in chains.items():
        plain, base = chains[base_of[name]], right[base_of[name]]
        first, steps = of[0], steps_of(of[0])
        # Rationales take steps of many rows, answers steps of one row.
        thinking = first["metrics"].get("iterations", 0)
        a_text, plain_text = (n / first["n"] for n in (steps, steps_of(plain[0])))

        def chain_step_ms(repeat):
            rows = first["metrics"]["rows"] / thinking if thinking else 1
            return (thinking * step_ms("chain", repeat, rows, a_text) + (steps - thinking) * step_ms("chain", repeat, 1, a_text)) / steps
        of_rows = [of_its_rows(one, plain_text / a_text, step_ms("chain", repeat, 1, plain_text), chain_step_ms(repeat))
                   for repeat, one in enumerate(gains(of, plain), start=1)]
        small = answers(right[name])
        same = all(small.get(key) == value for r in of for key, value in answers(r).items())
        row(name, f"{first['tokens'] / steps:.2f}", f"{1e3 * statistics.median([r['seconds'] for r in of]) / first['n']:.0f}",
            f"{gain_of_chain(of, plain):.2f}x", f"{statistics.median(of_rows):.2f}", f"{right[name]['n_correct']} of {right[name]['n']}",
            f"{points(right[name]) - points(base):+.1f}", "yes" if same else "NO")
        if not same or ("bound" not in name and small != answers(base)):
            others.append(name)
    return others


def main():
    beside = [0] + [name for repeat in range(1, REPEATS + 1) for name in [f"{repeat}-trees", repeat][:2 if CHAINS else 1]]
    target = costs(*(f"{OUT}/steps.{name}.json" for name in beside))
    drafts = {kind: costs(f"{OUT}/{kind}-steps.json") for kind in ("draft", "slow-draft")}
    print(f"A step of the target in ms by rows, mean of {len(beside)} timings between the races: {listed(target)}")
    for kind, cost in drafts.items():
        print(f"A forward of the {kind}: {listed(cost)}")
    others = tree_table(sys.argv[3].split(), target)
    memory_table()
    if CHAINS:
        chain_files = [f"{OUT}/chain.{name}.json" for name in beside]
        by_steps = [f"over {steps} steps {listed(after_prompt(race_costs(*chain_files), steps))}" for steps in CHAIN_STEPS]
        print(f"\nA step of a chain in ms by rows, mean of the same timings, after a question: {'; '.join(by_steps)}")
        others += chain_table(CHAINS)
    if others:
        sys.exit(f"differ from plain decoding: {', '.join(others)}")


main()

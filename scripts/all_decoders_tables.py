"""Helpers of all_decoders.sh.

  all_decoders_tables.py tables OUT TASKS SETS HEADS      the Markdown tables; fails if an output differs from plain decoding's
  all_decoders_tables.py estimate OUT TOKENS TASKS LANES MODELS   how long the races take
  all_decoders_tables.py sizes OUT SCALE                  block and number of lookup tokens for this machine
  all_decoders_tables.py answered FILE ANSWERS            records with a model's texts as completions, for `data check`
"""
import json
import math
import os
import statistics
import sys

import paper_figures
from step_costs import costs

SCALES = ("1x1", "4x2")
RACES = ("all", "sized")
BLOCKS = (6, 8, 10, 12, 16)  # sizes of a block from which the script chooses
# Targets at 4x2: name, lanes of which the best counts, least speed-up (or the target that it must exceed), tasks (None: all).
TARGETS = [("CLLM", ["jacobi@demo-cllm sliding, sized", "jacobi@demo-cllm"], 2.5, ["arith", "sql", "py", "blocks"]),
           ("Medusa", ["medusa"], 1.8, None),
           ("Chimera", ["chimera", "chimera drafting=branch"], "Medusa", None),
           ("Lookahead", ["lookahead"], 1.2, ["arith", "py", "blocks"]),
           ("Prompt lookup", ["prompt-lookup", "prompt-lookup sized"], 1.2, ["arith", "blocks"])]


def document(file):
    with open(file) as found:
        return json.load(found)


def documents(file):
    """The results of a prompt file. If there is one prompt, the file contains its result instead of a list."""
    found = document(file)
    return found if isinstance(found, list) else [found]


def records(file):
    with open(file) as found:
        return [json.loads(line) for line in found]


def sizes(out, scale):
    """Block size: the largest whose step takes at most 1.25 times a step of one row. Tokens of prompt lookup: half of it."""
    cost = costs(f"{out}/steps-{scale}-1.json", f"{out}/steps-{scale}-2.json")
    block = max([n for n in BLOCKS if cost[n] <= 1.25 * cost[1]], default=BLOCKS[0])
    return block, block // 2


def estimate(out, tokens, tasks, lanes, n_models):
    """Prints the minutes estimated from step times. A lane takes about 3/4 of the time of plain decoding at full length, prompts included."""
    runs = len(lanes.split(","))
    seconds = 0
    for scale in SCALES:
        ms = costs(f"{out}/steps-{scale}-1.json", f"{out}/steps-{scale}-2.json")[1]
        n = sum(len(records(f"{out}/{task}-{scale}.jsonl")) for task in tasks.split())
        seconds += 2 * 0.75 * n * runs * int(tokens) * ms / 1e3  # rows run twice
        loads = 2 if scale == "4x2" else 0.5
        seconds += len(tasks.split()) * 5 * loads
        if scale == "1x1":
            n_plain = sum(len(records(f"{out}/{task}.jsonl")) for task in tasks.split())
            seconds += n_plain * int(n_models) * 100 * ms / 1e3
        print(f"{n} prompts at {scale}, {runs} runs each, where a step takes {ms:.3g} ms")
    print(f"about {math.ceil(seconds / 60)} minutes in all, less the time of results that exist already")


def answered(file, answers):
    """Prints each record with the model's text as its completion."""
    texts = {one["id"]: one["text"] for one in documents(answers)}
    for record in records(file):
        print(json.dumps(record | {"completion": texts[record["id"]]}))


def labelled(lane, race):
    """The lane's name with the options that the race sets."""
    decoder = lane.partition("@")[0]
    sized = {"jacobi": " sliding, sized", "prompt-lookup": " sized", "mcsd": " sized", "chimera": " drafting=branch"}
    return lane + (sized.get(decoder, "") if race == "sized" else "")


def measured_once(race):
    """Figures of each lane from one race."""
    lanes = {}
    found = document(race + ".json")
    for s in found["summary"]:
        runs = [r for r in found["results"] if r["lane"] == s["lane"]]
        total = {name: sum(r["metrics"].get(name, 0) for r in runs)
                 for name in ("rows", "proposed", "accepted")}
        steps = sum(r["steps"] for r in runs)
        forward = [r["metrics"]["fast_forward_mean"] for r in runs if "fast_forward_mean" in r["metrics"]]
        lanes[s["lane"]] = {
            "tokens": s["tokens_per_step"], "rows": total["rows"] / steps, "speedup": s["speedup"],
            "of rows": s.get("of_its_rows"), "drafting": s["drafting_ms"] / s["rows_ms"] if s.get("rows_ms") else None,
            "step": s["rows_ms"] / steps if s.get("rows_ms") else None,
            "accepted": total["accepted"] / total["proposed"] if total["proposed"] else None,
            "fast-forward": statistics.mean(forward) if forward else None,
            "identical": s["identical"], "n": s["n"]}
    return lanes


def median_of(races, lane, figure):
    """The median over the races, or None if one of them did not measure it."""
    values = [race[lane][figure] for race in races]
    return None if None in values else statistics.median(values)


def measured(out, task, scale):
    """Figures of each lane of a task: medians of times, sums of compared texts."""
    lanes = {}
    for what in RACES:
        name = f"{out}/{task}-{scale}-{what}"
        n = 1
        while os.path.exists(f"{name}.{n + 1}.json"):
            n += 1
        races = [measured_once(f"{name}.{repeat + 1}") for repeat in range(n)]
        for lane, one in races[0].items():
            if lane.partition("@")[0] == "ar" and what != "all":
                continue
            median = {of: median_of(races, lane, of) for of in ("speedup", "rows", "tokens", "of rows", "drafting", "step")}
            total = {of: sum(race[lane][of] for race in races) for of in ("identical", "n")}
            lanes[labelled(lane, what)] = one | median | total
    return lanes


def right(out, task, lane):
    model = lane.split()[0].partition("@")[2] or "demo-target"
    check = document(f"{out}/{task}-answers-{model}-checked.json")
    n = check["records"] - check["not_checked"]
    return f"{check['correct'] / n:.0%} of {n}" if n else "-"


def share(value):
    return "-" if value is None else f"{value:.2f}"


def table(out, tasks, found):
    print("| task | lane | accepted at 4x2 | " +
          " | ".join(f"{scale}: tokens/step | rows/step | speed-up | of its rows" for scale in SCALES) +
          " | right | identical to AR |\n" + "| --- " * 13 + "|")
    for task in tasks:
        for lane in found[task]["4x2"]:
            of = [found[task][scale][lane] for scale in SCALES]
            cells = [f"{one['tokens']:.2f} | {one['rows']:.1f} | {one['speedup']:.2f}x | {share(one['of rows'])}" for one in of]
            print(f"| {task} | {lane} | {share(of[1]['accepted'])} | " + " | ".join(cells) + f" | {right(out, task, lane)} | "
                  f"{sum(one['identical'] for one in of)} of {sum(one['n'] for one in of)} |")


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def gain(found, tasks, lane, scale="4x2"):
    return geometric_mean([found[task][scale][lane]["speedup"] for task in tasks])


def means(tasks, found):
    print("| lane | " + " | ".join(f"{scale}: tokens/step | speed-up | of its rows, least" for scale in SCALES) + " |\n" +
          "| --- " * 7 + "|")
    for lane in found[tasks[0]]["4x2"]:
        cells = []
        for scale in SCALES:
            of = [found[task][scale][lane] for task in tasks]
            shares = [one["of rows"] for one in of if one["of rows"] is not None]
            cells.append(f"{geometric_mean([one['tokens'] for one in of]):.2f} | {gain(found, tasks, lane, scale):.2f}x | "
                         f"{share(min(shares, default=None))}")
        print(f"| {lane} | " + " | ".join(cells) + " |")


def targets(tasks, found):
    print("| target | lane | over | wanted | found | reached |\n| --- | --- | --- | --- | --- | --- |")
    gains = {}
    for name, lanes, wanted, over in TARGETS:
        over = [task for task in tasks if over is None or task in over]
        there = [lane for lane in lanes if over and lane in found[over[0]]["4x2"]]
        if not there:
            continue
        best = max(there, key=lambda lane: gain(found, over, lane))
        gains[name] = gain(found, over, best)
        least = gains[wanted] if wanted in gains else wanted
        words = f"more than {wanted}" if isinstance(wanted, str) else f"{wanted:.1f}x"
        reached = "-" if isinstance(least, str) else "yes" if gains[name] > least or gains[name] == wanted else "no"
        print(f"| {name} | {best} | {' '.join(over)} | {words} | {gains[name]:.2f}x | {reached} |")


def steps_table(out, found):
    """Prints the cost of a step of the target, first in consecutive steps, then in the races together with the drafting before a step."""
    print("| scale | rows | ms | of one row's |\n" + "| --- " * 4 + "|")
    for scale in SCALES:
        cost = costs(f"{out}/steps-{scale}-1.json", f"{out}/steps-{scale}-2.json")
        for rows, ms in cost.items():
            print(f"| {scale} | {rows} | {ms:.3g} | {ms / cost[1]:.2f} |")
    for scale in SCALES:
        shown = []
        lanes = {lane: None for task in found.values() for lane in task[scale]}
        for lane in lanes:
            of = [task[scale][lane] for task in found.values() if lane in task[scale] and task[scale][lane]["step"]]
            if of and any(one["drafting"] for one in of):
                step, drafting = (statistics.mean(one[name] for one in of) for name in ("step", "drafting"))
                shown.append(f"{lane} {step:.3g} ms and {drafting:.3f}")
        print(f"\nAt {scale}, time of a step's rows in the races, and of drafting relative to it: {', '.join(shown)}")


def tables(out, tasks, sets, heads):
    tasks, sets, heads = tasks.split(), sets.split(), heads.split()
    found = {task: {scale: measured(out, task, scale) for scale in SCALES} for task in tasks + sets}
    for scale in SCALES:
        block, n_tokens = sizes(out, scale)
        print(f"sizes chosen at {scale}: a block of {block}, {n_tokens} tokens by prompt lookup")
        for kind in heads:
            grown = document(f"{out}/heads-{scale}/{kind}-grown.json")
            print(f"{kind} at {scale}: a tree of {grown['rows']} rows, depth {grown['depth']}; the heads take "
                  f"{grown['costs']['heads_ms']:.3g} ms")
    if any("@demo-cllm" in lane for task in found.values() for scale in task.values() for lane in scale):
        print("\nSpeed-ups are against plain decoding by the lane's own model: those @demo-cllm against ar@demo-cllm.")
    for title, names in (("Generated tasks", tasks), ("Open sets", sets)):
        if names:
            print(f"\n{title}, geometric means:\n")
            means(names, found)
    if tasks:
        print("\nTargets at 4x2, geometric means over the tasks named:\n")
        targets(tasks, found)
    print("\nCost of a step of the target:\n")
    steps_table(out, found)
    print("\nFigures of the papers beside ours at 4x2:\n")
    top1 = {kind: [shares[0] for shares in document(f"{out}/heads-4x2/demo-{kind}/accuracies.json")["heads"]] for kind in heads}
    paper_figures.table(found, tasks, sets, top1)
    for title, names in (("Generated tasks", tasks), ("Open sets", sets)):
        if names:
            print(f"\n{title}:\n")
            table(out, names, found)
    every = [(task, scale, lane, one) for task in found for scale in SCALES for lane, one in found[task][scale].items()]
    off = [f"{lane} on {task} {one['of rows']:.2f}" for task, scale, lane, one in every
           if scale == "4x2" and one["of rows"] is not None and abs(one["of rows"] - 1) > 0.1]
    print("\nLanes at 4x2 whose speed-up differs by more than a tenth from the one that their rows allow: " + (", ".join(off) or "none"))
    differ = sorted({lane for _, _, lane, one in every if one["identical"] != one["n"]})
    if differ:
        sys.exit("differ from plain decoding: " + ", ".join(differ))


if __name__ == "__main__":
    commands = {"estimate": estimate, "answered": answered, "sizes": sizes, "tables": tables}
    words = commands[sys.argv[1]](*sys.argv[2:])
    if words is not None:
        print(*words if isinstance(words, tuple) else (words,))

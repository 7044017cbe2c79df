"""What all_decoders.sh measured, as Markdown tables, and what it asks on its way: how long it takes, and answers to be checked."""
import json
import math
import sys

from step_costs import at, costs, of_its_rows

SCALES = ("1x1", "4x2")
OPTIONS = {"slide": " refill=slide", "branch": " drafting=branch"}  # of the lanes of a race
# At 4x2, the least speed-up aimed at and on which tasks; several lanes: the best of them.
TARGETS = [("CLLM", ["jacobi@demo-cllm", "jacobi@demo-cllm refill=slide"], 2.5, ["arith", "sql", "py", "blocks"]),
           ("Medusa", ["medusa"], 1.8, None),
           ("Chimera", ["chimera", "chimera drafting=branch"], "Medusa", None),
           ("Lookahead", ["lookahead"], 1.2, ["arith", "py", "blocks"]),
           ("Prompt lookup", ["prompt-lookup"], 1.2, ["arith", "blocks"])]


def document(file):
    with open(file) as found:
        return json.load(found)


def n_lines(file):
    with open(file) as found:
        return len(found.readlines())


def estimate(out, tokens, tasks, models, heads):
    """Minutes, by steps measured: a lane takes some three quarters of what plain decoding of the full length takes, prompts included."""
    with_cllm = len(models.split()) > 1
    runs = (15 if with_cllm else 10) + 2 * len(heads.split()) + 2 * ("chimera" in heads.split())
    seconds = 0
    for scale in SCALES:
        ms = at(costs(f"{out}/steps-{scale}.json"), 1)
        n = sum(n_lines(f"{out}/{task}-{scale}.jsonl") for task in tasks.split())
        seconds += 0.75 * n * runs * int(tokens) * ms / 1e3
        seconds += len(tasks.split()) * (2 + 12 * 17 * 1.7 * ms / 1e3)  # bench step: twelve counts of rows, and what it loads
        if scale == "1x1":
            asked = sum(n_lines(f"{out}/{task}.jsonl") for task in tasks.split())
            seconds += asked * len(models.split()) * 100 * ms / 1e3
        print(f"{n} prompts at {scale}, {runs} runs each, where a step takes {ms:.3g} ms")
    print(f"about {math.ceil(seconds / 60)} minutes in all, less what is there already")


def answered(records, answers):
    """The records with a model's texts for their completions."""
    found = document(answers)
    texts = {one["id"]: one["text"] for one in (found if isinstance(found, list) else [found])}
    with open(records) as file:
        for line in file:
            record = json.loads(line)
            print(json.dumps(record | {"completion": texts[record["id"]]}))


def measured(out, task, scale, heads):
    """Of each lane of a task what its races say."""
    target, draft = costs(f"{out}/{task}-{scale}-steps.json"), costs(f"{out}/draft-steps.json")
    lanes = {}
    for what in ["all", "slide", *heads] + ["branch"] * ("chimera" in heads):
        race = document(f"{out}/{task}-{scale}-{what}.json")
        kind = "chimera" if what == "branch" else what
        heads_ms = document(f"{out}/tree-{kind}-{scale}-grown.json")["costs"]["heads_ms"] if kind in heads else 0
        for s in race["summary"]:
            if s["decoder"] == "ar" and what != "all":
                continue
            runs = [r for r in race["results"] if r["lane"] == s["lane"]]
            total = {name: sum(r["metrics"].get(name, 0) for r in runs)
                     for name in ("rows", "proposed", "accepted", "draft_forwards", "draft_rows")}
            steps = sum(r["steps"] for r in runs)
            step_ms = at(target, total["rows"] / steps) + (heads_ms if s["decoder"] == kind else 0)
            if total["draft_forwards"]:
                step_ms += total["draft_forwards"] / steps * at(draft, total["draft_rows"] / total["draft_forwards"])
            lanes[s["lane"] + OPTIONS.get(what, "")] = {
                "tokens": s["tokens_per_step"], "rows": total["rows"] / steps, "speedup": s["speedup"],
                "of rows": of_its_rows(s["speedup"], s["tokens_per_step"], target, step_ms),
                "accepted": total["accepted"] / total["proposed"] if total["proposed"] else None,
                "identical": s["identical"], "n": s["n"]}
    return lanes


def right(out, task, lane):
    model = lane.split()[0].partition("@")[2] or "demo-target"
    check = document(f"{out}/{task}-answers-{model}-checked.json")
    n = check["records"] - check["not_checked"]
    return f"{check['correct'] / n:.0%} of {n}" if n else "-"


def table(out, tasks, found):
    print("| task | lane | accepted | " + " | ".join(f"{scale}: tokens/step | rows/step | speed-up | of its rows" for scale in SCALES) +
          " | right | identical to AR |\n" + "| --- " * 13 + "|")
    for task in tasks:
        for lane in found[task]["4x2"]:
            of = [found[task][scale][lane] for scale in SCALES]
            cells = [f"{one['tokens']:.2f} | {one['rows']:.1f} | {one['speedup']:.2f}x | {one['of rows']:.2f}" for one in of]
            accepted = "-" if of[0]["accepted"] is None else f"{of[0]['accepted']:.2f}"
            print(f"| {task} | {lane} | {accepted} | " + " | ".join(cells) + f" | {right(out, task, lane)} | "
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
            cells.append(f"{geometric_mean([one['tokens'] for one in of]):.2f} | {gain(found, tasks, lane, scale):.2f}x | "
                         f"{min(one['of rows'] for one in of):.2f}")
        print(f"| {lane} | " + " | ".join(cells) + " |")


def targets(tasks, found):
    print("| target | over | wanted | found | reached |\n| --- | --- | --- | --- | --- |")
    gains = {}
    for name, lanes, wanted, over in TARGETS:
        over = [task for task in tasks if over is None or task in over]
        there = [lane for lane in lanes if over and lane in found[over[0]]["4x2"]]
        if not there:
            continue
        gains[name] = max(gain(found, over, lane) for lane in there)
        least = gains[wanted] if wanted in gains else wanted
        words = f"more than {wanted}" if isinstance(wanted, str) else f"{wanted:.1f}x"
        reached = "-" if isinstance(least, str) else "yes" if gains[name] > least or gains[name] == wanted else "no"
        print(f"| {name} | {' '.join(over)} | {words} | {gains[name]:.2f}x | {reached} |")


def tables(out, tasks, sets, heads):
    tasks, sets, heads = tasks.split(), sets.split(), heads.split()
    found = {task: {scale: measured(out, task, scale, heads) for scale in SCALES} for task in tasks + sets}
    for scale in SCALES:
        for kind in heads:
            grown = document(f"{out}/tree-{kind}-{scale}-grown.json")
            print(f"{kind} at {scale}: a tree of {grown['rows']} rows, {grown['depth']} deep; asking the heads takes "
                  f"{grown['costs']['heads_ms']:.3g} ms")
    for title, names in (("Generated tasks", tasks), ("Open sets", sets)):
        if names:
            print(f"\n{title}, geometric means:\n")
            means(names, found)
    if tasks:
        print("\nTargets at 4x2, geometric means:\n")
        targets(tasks, found)
    for title, names in (("Generated tasks", tasks), ("Open sets", sets)):
        if names:
            print(f"\n{title}:\n")
            table(out, names, found)
    every = [(task, scale, lane, one) for task in found for scale in SCALES for lane, one in found[task][scale].items()]
    dear = [f"{lane} on {task} {one['of rows']:.2f}" for task, scale, lane, one in every if scale == "4x2" and one["of rows"] < 0.9]
    print("\nMore paid at 4x2 than a tenth above the rows: " + (", ".join(dear) or "none"))
    differ = sorted({lane for _, _, lane, one in every if one["identical"] != one["n"]})
    if differ:
        sys.exit("not what plain decoding writes: " + ", ".join(differ))


if __name__ == "__main__":
    {"estimate": estimate, "answered": answered, "tables": tables}[sys.argv[1]](*sys.argv[2:])

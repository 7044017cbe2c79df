"""The tables of scripts/reason_race.sh.  reason_tables.py OUT_DIR REPEATS "TREE..." "CHAIN..."   (names in the order they ran)"""
import json
import statistics
import sys

from step_costs import at, costs, listed, of_its_rows

OUT, REPEATS = sys.argv[1], int(sys.argv[2])


def reports(what, name, n=REPEATS):
    files = [f"{OUT}/{what}-{name}.{repeat}.json" for repeat in range(1, n + 1)]
    return [json.load(open(file)) for file in files]


def head(*columns):
    print("\n| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def decode_ms(report):
    """The time that passed, without what reading prompts took."""
    return report["schedule"]["wall_ms"] - report["schedule"]["prefill_ms"]


def gain(of, base):
    """Base and decoder took turns: each repeat against its own base."""
    return statistics.median([decode_ms(b) / decode_ms(r) for r, b in zip(of, base)])


def stages(report):
    """Milliseconds of a draft, of a verification, and verifications a step (fewer where they judge several texts)."""
    s = report["schedule"]
    verifications = s.get("verifications", s["forwards"])
    return s["draft_busy_ms"] / s["steps"], s["target_busy_ms"] / verifications, verifications / s["steps"]


def bounds(seed, alone):
    """What a schedule of n branches could gain over drafting and verifying in turn."""
    n = seed["schedule"]["branches"]
    draft, verify, _ = stages(alone)
    busy_draft, busy_verify, share = stages(seed)
    here = (draft + verify) / max((busy_draft + busy_verify) / n, busy_verify * share, busy_draft)
    return min(n, (draft + verify) / verify), here


def tree_table(names, target, draft):
    trees = {name: reports("tree", name) for name in names}
    alone = trees["speculative"]
    parts = lambda report: [[node["parts"] for node in item["nodes"]] for item in report["items"]]
    head("decoder", "tokens/step", "tokens/s", "against ar", "against speculative", "of its rows", "target busy", "bound: paper", "here",
         "reached", "overlap", "same trees")
    for name, of in trees.items():
        first = of[0]
        speedup, against = gain(of, trees["ar"]), gain(of, alone)
        steps = first["schedule"]["steps"]
        together = steps / first["schedule"]["forwards"]
        # Drafts are chains: a token of one is a forward of the draft.
        step_ms = at(target, first["rows"] / first["steps"] * together) / together + first["proposed"] / first["steps"] * at(draft, 1)
        of_rows = of_its_rows(speedup, trees["ar"][0]["schedule"]["steps"] / steps, target, step_ms)
        limits = [bounds(r, b) for r, b in zip(of, alone)] if "branches" in first["schedule"] else []
        paper, here = (statistics.median(limit) for limit in zip(*limits)) if limits else (None, None)
        figure = lambda field: f"{statistics.median([r['schedule'][field] for r in of]):.2f}" if field in first["schedule"] else "-"
        row(name, f"{first['tokens_per_step']:.2f}", f"{statistics.median([r['tokens_per_second'] for r in of]):.0f}", f"{speedup:.2f}x",
            f"{against:.2f}x", f"{of_rows:.2f}", figure("target_busy"), f"{paper:.2f}" if paper else "-", f"{here:.2f}" if here else "-",
            f"{against / here:.2f}" if here else "-", figure("overlap"),
            "yes" if all(parts(r) == parts(trees["ar"][0]) for r in of) else "NO")


def memory_table():
    fields = ("weight_bytes", "draft_weight_bytes", "branch_cache_bytes", "cache_bytes", "draft_cache_bytes")
    head("branches", *fields)
    for n in (1, 2, 4):
        schedule = reports("memory", n, 1)[0]["schedule"]
        row(n, *(f"{int(schedule[field]):,}" for field in fields))


def answers(report):
    return {item["id"]: (item["text"], item["answer"]) for item in report["items"]}


def chain_table(names, target):
    chains = {name: reports("chain", name) for name in names}
    right = {name: reports("right", name, 1)[0] for name in names}
    steps_of = lambda report: sum(item["steps"] for item in report["items"])
    points = lambda report: 100 * report["n_correct"] / report["n"]
    head("decoder", "tokens/step", "ms/question", "against ar", "of its rows", "right", "points against ar", "same texts at 1x1")
    for name, of in chains.items():
        first, steps = of[0], steps_of(of[0])
        # Rationales in steps of many rows, the answers behind them in steps of one.
        thinking = first["metrics"].get("iterations", 0)
        in_rows = at(target, first["metrics"]["rows"] / thinking) if thinking else 0
        step_ms = (thinking * in_rows + (steps - thinking) * at(target, 1)) / steps
        of_rows = of_its_rows(gain(of, chains["ar"]), steps_of(chains["ar"][0]) / steps, target, step_ms)
        small = answers(right[name])
        same = all(small.get(key) == value for r in of for key, value in answers(r).items())
        row(name, f"{first['tokens'] / steps:.2f}", f"{1e3 * statistics.median([r['seconds'] for r in of]) / first['n']:.0f}",
            f"{gain(of, chains['ar']):.2f}x", f"{of_rows:.2f}", f"{right[name]['n_correct']} of {right[name]['n']}",
            f"{points(right[name]) - points(right['ar']):+.1f}", "yes" if same else "NO")


def main():
    target = costs(f"{OUT}/steps.json", f"{OUT}/steps-after.json")
    draft = costs(f"{OUT}/draft-steps.json")
    print(f"A step of the target in ms by rows: {listed(target)}\nThe draft: {listed(draft)}")
    tree_table(sys.argv[3].split(), target, draft)
    memory_table()
    chain_table(sys.argv[4].split(), target)


main()

"""The tables of scripts/draft_and_verify.sh.  draft_and_verify_tables.py OUT_DIR REPEATS "TASK..." SCALE..."""
import json
import statistics
import sys

from step_costs import at, context, costs, listed, of_its_rows

OUT, REPEATS, TASKS, SCALES = sys.argv[1], range(1, int(sys.argv[2]) + 1), sys.argv[3].split(), sys.argv[4:]


def races(task, scale):
    return [json.load(open(f"{OUT}/{task}-{scale}.{repeat}.json")) for repeat in REPEATS]


def steps(task, scale, *repeats):
    return costs(*(f"{OUT}/steps-{task}-{scale}.{repeat}.json" for repeat in repeats))


def of_decoder(rows, decoder):
    return [row for row in rows if row["decoder"] == decoder]


def middle_half(races, decoder):
    """Where the speed-ups of half the problems lie, each the median of its races."""
    gains = {}
    for race in races:
        for result in of_decoder(race["results"], decoder):
            if result["speedup"] is not None:
                gains.setdefault(result["id"], []).append(result["speedup"])
    if len(gains) < 2:
        return "-"
    low, _, high = statistics.quantiles([statistics.median(one) for one in gains.values()], n=4)
    return f"{low:.2f} to {high:.2f}"


def row_of(task, scale, decoder, draft):
    of = races(task, scale)
    gains, shares, sizes = [], [], []
    for repeat, race in zip(REPEATS, of):
        (summary,) = of_decoder(race["summary"], decoder)
        runs = of_decoder(race["results"], decoder)
        total = lambda name: sum(run["metrics"][name] for run in runs)
        n = sum(run["steps"] for run in runs)
        rows, forwards = total("rows") / n, total("draft_forwards") / n
        draft_rows = total("draft_rows") / max(1, total("draft_forwards"))
        target = steps(task, scale, repeat - 1, repeat)
        step_ms = at(target, rows) + forwards * at(draft, draft_rows)
        gains.append(summary["speedup"])
        shares.append(of_its_rows(summary["speedup"], summary["tokens_per_step"], target, step_ms))
        sizes.append((summary["tokens_per_step"], rows, forwards, total("accepted") / max(1, total("proposed"))))
    tokens, rows, forwards, accepted = (statistics.mean(one) for one in zip(*sizes))
    summaries = [of_decoder(race["summary"], decoder)[0] for race in of]
    identical, n = (sum(one[field] for one in summaries) for field in ("identical", "n"))
    each = ", ".join(f"{share:.2f}" for share in shares)
    return (task, decoder, f"{tokens:.2f}", f"{rows:.1f}", f"{forwards:.1f}", f"{accepted:.2f}", f"{statistics.median(gains):.2f}x",
            middle_half(of, decoder), f"{statistics.median(shares):.2f} ({each})", f"{identical} of {n}")


def main():
    draft = costs(f"{OUT}/draft-steps.json")
    for scale in SCALES:
        print(f"\nAt {scale}. A forward of the draft in ms by rows: {listed(draft)}")
        for task in TASKS:
            print(f"A step of the target behind {context(f'{OUT}/{task}-texts.json')} tokens, as {task} has them, mean of before, "
                  f"between and behind its races: {listed(steps(task, scale, 0, *REPEATS))}")
        print("\n| task | decoder | tokens/step | rows/step | draft forwards/step | accepted | speed-up | middle half | of its rows | "
              "identical to AR |\n" + "| --- " * 10 + "|")
        for task in TASKS:
            for decoder in ("speculative", "mcsd"):
                print("| " + " | ".join(row_of(task, scale, decoder, draft)) + " |")


main()

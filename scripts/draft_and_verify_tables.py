"""The tables of scripts/draft_and_verify.sh.  draft_and_verify_tables.py OUT_DIR REPEATS "TASK..." SCALE..."""
import json
import statistics
import sys

from step_costs import at, behind, listed, of_its_rows, prompt_length, race_costs, steps_a_text

OUT, REPEATS, TASKS, SCALES = sys.argv[1], range(1, int(sys.argv[2]) + 1), sys.argv[3].split(), sys.argv[4:]
DRAFT_FORWARDS = 4  # before a step, where the draft is timed
PLAIN, ROWS = "plain", "steps"  # one row; the rows of decoders, the draft's forwards between


def races(task, scale):
    return [json.load(open(f"{OUT}/{task}-{scale}.{repeat}.json")) for repeat in REPEATS]


def timed(kind, task, scale, *repeats, draft=False):
    return race_costs(*(f"{OUT}/{kind}-{task}-{scale}.{repeat}.json" for repeat in repeats), draft=draft)


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


def step_ms(task, scale, repeats, rows, forwards, steps):
    """What a step of so many rows costs, with forwards of the draft before it, where a text has so many steps."""
    target = behind(timed(ROWS, task, scale, *repeats), steps)
    draft = behind(timed(ROWS, task, scale, *repeats, draft=True), steps)
    return at(target, rows) + forwards / DRAFT_FORWARDS * at(draft, rows)


def row_of(task, scale, decoder):
    of = races(task, scale)
    gains, shares, sizes = [], [], []
    for repeat, race in zip(REPEATS, of):
        (summary,) = of_decoder(race["summary"], decoder)
        runs = of_decoder(race["results"], decoder)
        total = lambda name: sum(run["metrics"][name] for run in runs)
        n = sum(run["steps"] for run in runs)
        rows, forwards = total("rows") / n, total("draft_forwards") / n
        beside = (repeat - 1, repeat)
        plain_ms = behind(timed(PLAIN, task, scale, *beside), steps_a_text(of_decoder(race["results"], "ar")))[1]
        cost = step_ms(task, scale, beside, rows, forwards, steps_a_text(runs))
        gains.append(summary["speedup"])
        shares.append(of_its_rows(summary["speedup"], summary["tokens_per_step"], plain_ms, cost))
        sizes.append((summary["tokens_per_step"], rows, forwards, total("accepted") / max(1, total("proposed"))))
    tokens, rows, forwards, accepted = (statistics.mean(one) for one in zip(*sizes))
    summaries = [of_decoder(race["summary"], decoder)[0] for race in of]
    identical, n = (sum(one[field] for one in summaries) for field in ("identical", "n"))
    each = ", ".join(f"{share:.2f}" for share in shares)
    return (task, decoder, f"{tokens:.2f}", f"{rows:.1f}", f"{forwards:.1f}", f"{accepted:.2f}", f"{statistics.median(gains):.2f}x",
            middle_half(of, decoder), f"{statistics.median(shares):.2f} ({each})", f"{identical} of {n}")


def costs_of(task, scale):
    """What steps cost, over all timings."""
    every = (0, *REPEATS)
    plain, rows = timed(PLAIN, task, scale, *every)[1], timed(ROWS, task, scale, *every)
    draft = timed(ROWS, task, scale, *every, draft=True)
    first, all_of = min(rows[5]), max(rows[5])
    return (task, f"{prompt_length(f'{OUT}/{task}-texts.json')}", listed(plain), listed({n: of[first] for n, of in rows.items()}),
            listed({n: of[all_of] for n, of in rows.items()}), f"{draft[5][first]:.3g}, {draft[5][all_of]:.3g}", first, all_of)


def main():
    for scale in SCALES:
        found = [costs_of(task, scale) for task in TASKS]
        first, all_of = found[0][-2:]
        print(f"\nAt {scale}, mean ms of a step over the first so many behind a prompt, before, between and behind the races:\n")
        print(f"| task | prompt | 1 row, by steps | first {first}, by rows | first {all_of}, by rows | "
              f"4 forwards of the draft, first {first} and {all_of} |\n" + "| --- " * 6 + "|")
        for cells in found:
            print("| " + " | ".join(cells[:-2]) + " |")
        print("\n| task | decoder | tokens/step | rows/step | draft forwards/step | accepted | speed-up | middle half | of its rows | "
              "identical to AR |\n" + "| --- " * 10 + "|")
        for task in TASKS:
            for decoder in ("speculative", "mcsd"):
                print("| " + " | ".join(row_of(task, scale, decoder)) + " |")


main()

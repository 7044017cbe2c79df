"""Prints the tables of scripts/draft_and_verify.sh.

  draft_and_verify_tables.py OUT_DIR REPEATS "TASK..." SCALE...
"""
import json
import statistics
import sys

OUT, REPEATS, TASKS, SCALES = sys.argv[1], range(1, int(sys.argv[2]) + 1), sys.argv[3].split(), sys.argv[4:]
DECODERS = ("speculative", "mcsd")


def races(task, scale):
    return [json.load(open(f"{OUT}/{task}-{scale}.{repeat}.json")) for repeat in REPEATS]


def of_decoder(rows, decoder):
    return [row for row in rows if row["decoder"] == decoder]


def middle_half(races, decoder):
    """The range of the middle half of the problems' speed-ups, each the median of its races."""
    gains = {}
    for race in races:
        for result in of_decoder(race["results"], decoder):
            if result["speedup"] is not None:
                gains.setdefault(result["id"], []).append(result["speedup"])
    if len(gains) < 2:
        return "-"
    low, _, high = statistics.quantiles([statistics.median(one) for one in gains.values()], n=4)
    return f"{low:.2f} to {high:.2f}"


def summary_of(race, decoder):
    (summary,) = of_decoder(race["summary"], decoder)
    return summary


def row_of(task, scale, decoder):
    of = races(task, scale)
    sizes = []
    for race in of:
        runs = of_decoder(race["results"], decoder)
        total = lambda name: sum(run["metrics"][name] for run in runs)
        n = sum(run["steps"] for run in runs)
        sizes.append((summary_of(race, decoder)["tokens_per_step"], total("rows") / n, total("draft_forwards") / n,
                      total("accepted") / max(1, total("proposed"))))
    tokens, rows, forwards, accepted = (statistics.mean(one) for one in zip(*sizes))
    summaries = [summary_of(race, decoder) for race in of]
    each = lambda name: [one[name] for one in summaries]
    return (task, decoder, f"{tokens:.2f}", f"{rows:.1f}", f"{forwards:.1f}", f"{accepted:.2f}", f"{statistics.median(each('speedup')):.2f}x",
            middle_half(of, decoder), f"{statistics.median(each('of_its_rows')):.2f} ({', '.join(f'{one:.2f}' for one in each('of_its_rows'))})",
            f"{sum(each('identical'))} of {sum(each('n'))}")


def step_of(task, scale, decoder, figure):
    """Milliseconds of a step's rows without the decoder, or of the drafting before a step; the median over the races."""
    of = [summary_of(race, decoder)[figure] / sum(run["steps"] for run in of_decoder(race["results"], decoder)) for race in races(task, scale)]
    return f"{statistics.median(of):.3g}"


def head(*columns):
    print("\n| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")


def main():
    for scale in SCALES:
        print(f"\nAt {scale}, ms of a step's rows alone, and of drafting before it:")
        head("task", "ar, 1 row", *(f"{decoder}: {what}" for decoder in DECODERS for what in ("rows", "drafts")))
        for task in TASKS:
            cells = [step_of(task, scale, decoder, figure) for decoder in DECODERS for figure in ("rows_ms", "drafting_ms")]
            print("| " + " | ".join([task, step_of(task, scale, "ar", "rows_ms"), *cells]) + " |")
        head("task", "decoder", "tokens/step", "rows/step", "draft forwards/step", "accepted", "speed-up", "middle half", "of its rows",
             "identical to AR")
        for task in TASKS:
            for decoder in DECODERS:
                print("| " + " | ".join(row_of(task, scale, decoder)) + " |")


main()

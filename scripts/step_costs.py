"""What steps should cost, by `decoscope bench step`: a measured speed-up is held against the cost of the rows it evaluated."""
import json
import statistics


def costs(*files):
    """Milliseconds of a forward by its rows, the mean over the files."""
    of = []
    for name in files:
        with open(name) as file:
            of.append({row["rows"]: row["ms"] for row in json.load(file)["rows"]})
    return {rows: statistics.mean(one[rows] for one in of) for rows in of[0]}


def context(race):
    """The tokens before a step of plain decoding, the mean over all steps of a race's document."""
    with open(race) as file:
        of = [result for result in json.load(file)["results"] if result["decoder"] == "ar"]
    tokens = sum(len(result["tokens"]) for result in of)
    return round(sum(len(one["tokens"]) * (len(one["prompt_tokens"]) + len(one["tokens"]) / 2) for one in of) / tokens)


def at(cost, rows):
    """The cost of so many rows, which need not be whole: straight lines between those measured."""
    known = sorted(cost)
    if rows <= known[0]:
        return cost[known[0]]
    for a, b in zip(known, known[1:]):
        if rows <= b:
            return cost[a] + (cost[b] - cost[a]) * (rows - a) / (b - a)
    return cost[known[-1]] * rows / known[-1]


def of_its_rows(speedup, fewer_steps, target, step_ms):
    """1 where nothing but the rows is paid, less where something else is.

    fewer_steps  how many steps of one row (plain decoding's) one of the decoder's stands for; for whole texts its tokens per step
    step_ms      what one of its steps should cost: its rows, and the draft's forwards
    """
    return speedup / (fewer_steps * at(target, 1) / step_ms)


def listed(cost):
    return ", ".join(f"{rows}: {ms:.3g}" for rows, ms in cost.items())

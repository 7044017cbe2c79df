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


def race_costs(*files, draft=False):
    """Milliseconds of a step as a race has it, by rows and by how many steps there are behind a prompt (`bench step --behind`): the mean
    over the files. With `draft` what the draft's forwards before a step take."""
    field = "draft_ms" if draft else "ms"
    of = []
    for name in files:
        with open(name) as file:
            of.append({row["rows"]: {mean["steps"]: mean[field] for mean in row["behind"]} for row in json.load(file)["rows"]})
    return {rows: {steps: statistics.mean(one[rows][steps] for one in of) for steps in by_steps} for rows, by_steps in of[0].items()}


def behind(cost, steps):
    """Of race_costs() those of so many steps a prompt, by rows."""
    return {rows: at(by_steps, steps) if steps < max(by_steps) else by_steps[max(by_steps)] for rows, by_steps in cost.items()}


def at(cost, rows):
    """The cost of so many rows, which need not be whole: straight lines between those measured."""
    known = sorted(cost)
    if rows <= known[0]:
        return cost[known[0]]
    for a, b in zip(known, known[1:]):
        if rows <= b:
            return cost[a] + (cost[b] - cost[a]) * (rows - a) / (b - a)
    return cost[known[-1]] * rows / known[-1]


def of_its_rows(speedup, fewer_steps, plain_ms, step_ms):
    """1 where nothing but the rows is paid, less where something else is.

    fewer_steps  how many steps of plain decoding one of the decoder's stands for; for whole texts its tokens per step
    plain_ms     what a step of plain decoding costs, one row
    step_ms      what one of the decoder's should cost: its rows, and the draft's forwards
    """
    return speedup / (fewer_steps * plain_ms / step_ms)


def listed(cost):
    return ", ".join(f"{rows}: {ms:.3g}" for rows, ms in cost.items())

"""Costs of steps from `decoscope bench step --json`, to compare a speed-up with the cost of its rows. Imported by the table scripts."""
import json
import statistics


def costs(*files):
    """{rows: milliseconds of a forward}, the mean over the files."""
    of = []
    for name in files:
        with open(name) as file:
            of.append({row["rows"]: row["ms"] for row in json.load(file)["rows"]})
    return {rows: statistics.mean(one[rows] for one in of) for rows in of[0]}


def race_costs(*files, draft=False):
    """{rows: {steps: milliseconds}}: the mean time of the first `steps` steps after a prompt (`bench step --first-steps`), averaged over the files.
    With `draft`, the time of the draft's forwards before a step instead."""
    field = "draft_ms" if draft else "ms"
    of = []
    for name in files:
        with open(name) as file:
            of.append({row["rows"]: {mean["steps"]: mean[field] for mean in row["first_steps"]} for row in json.load(file)["rows"]})
    return {rows: {steps: statistics.mean(one[rows][steps] for one in of) for steps in by_steps} for rows, by_steps in of[0].items()}


def after_prompt(cost, steps):
    """race_costs() for a given number of steps after a prompt: {rows: milliseconds}."""
    return {rows: at(by_steps, steps) if steps < max(by_steps) else by_steps[max(by_steps)] for rows, by_steps in cost.items()}


def at(cost, rows):
    """The cost of a possibly fractional number of rows, by linear interpolation."""
    known = sorted(cost)
    if rows <= known[0]:
        return cost[known[0]]
    for a, b in zip(known, known[1:]):
        if rows <= b:
            return cost[a] + (cost[b] - cost[a]) * (rows - a) / (b - a)
    return cost[known[-1]] * rows / known[-1]


def of_its_rows(speedup, fewer_steps, plain_ms, step_ms):
    """Speed-up divided by the speed-up that would result if only rows and drafts took time; below 1 if anything else takes time.

    fewer_steps  steps of plain decoding per step of the decoder; for complete texts its tokens per step
    plain_ms     cost of a step of plain decoding, one row
    step_ms      expected cost of a step of the decoder: its rows and the draft's forwards
    """
    return speedup / (fewer_steps * plain_ms / step_ms)


def listed(cost):
    return ", ".join(f"{rows}: {ms:.3g}" for rows, ms in cost.items())

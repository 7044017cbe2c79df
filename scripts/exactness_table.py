"""Prints the Markdown table of scripts/exactness.sh; fails if an output differs from plain decoding's or is missing.

  exactness_table.py OUT COUNT SCALED LANES VARIANTS SETTING...
"""
import fcntl
import json
import os
import sys

OPTIONS = {"jacobi": " refill=slide", "mcsd": " k_config=2,2,1,1", "chimera": " drafting=branch"}  # options in -variants.json


def results(file):
    """results[lane][prompt id]: the result of a lane for a prompt."""
    with open(file) as document:
        found = json.load(document)
    if isinstance(found, dict):  # a race, or one prompt alone
        found = found.get("results", [found])
    lanes = {}
    for one in found:
        lanes.setdefault(one.get("lane", one["decoder"]), {})[one["id"]] = one
    return lanes


def all_lanes(run):
    lanes = results(f"{run}-seed.json")
    for run in (run, f"{run}-cllm"):
        if not os.path.exists(f"{run}.json"):  # no consistency model
            continue
        lanes |= results(f"{run}.json")
        for lane, of in results(f"{run}-variants.json").items():
            lanes[lane + OPTIONS[lane.split("@")[0]]] = of
    return lanes


def add_to(path, figures):
    """Adds the counts [identical, outputs] by setting, scale and lane to the JSON file of all shares. Holds a lock meanwhile."""
    with open(path + ".lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        write_with(path, figures)


def write_with(path, figures):
    document = {"settings": {}}
    if os.path.exists(path):
        with open(path) as file:
            document = json.load(file)
    document["settings"] |= figures
    every = [found for scales in document["settings"].values() for lanes in scales.values() for found in lanes.values()]
    document |= {"n_settings": len(document["settings"]), "identical": sum(same for same, _ in every), "outputs": sum(n for _, n in every)}
    with open(path, "w") as file:
        json.dump(document, file, indent=1)


def main():
    out, count, scaled, lanes, variants, settings = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5], sys.argv[6:]
    names = [*lanes.split(","), "seed", *(name + OPTIONS[name.split("@")[0]] for name in variants.split(","))]
    print("| task | sampling | dtype | scale | " + " | ".join(names) + " |\n" + "| --- " * (4 + len(names)) + "|")
    differ, missing, figures = [], [], {}
    for setting in settings:
        run = f"{out}/{setting}"
        unscaled = all_lanes(run)
        figures[setting] = {}
        for scale, n in (("1x1", count), ("4x2", scaled)):
            if n == 0:
                continue
            of = unscaled if scale == "1x1" else all_lanes(f"{run}-{scale}")
            cells = figures[setting][scale] = {}
            for name in names:
                found = of.get(name, {})
                same = [one for id, one in found.items()
                        if one["identical_to_ar"] and one["tokens"] == unscaled.get(name, {}).get(id, {}).get("tokens")]
                cells[name] = [len(same), len(found)]
                if len(same) != len(found):
                    differ.append(f"{run} at {scale}: {name}")
                if len(found) != n:
                    missing.append(f"{run} at {scale}: {name} {len(found)} of {n}")
            print("| " + " | ".join([*setting.split("-"), scale, *(f"{same} of {n}" for same, n in cells.values())]) + " |")
    if os.environ.get("DECOSCOPE_EXACT_JSON"):
        add_to(os.environ["DECOSCOPE_EXACT_JSON"], figures)
    if missing:
        sys.exit("missing outputs: " + ", ".join(missing))
    if differ:
        sys.exit("differ from plain decoding at 1x1: " + ", ".join(differ))


main()

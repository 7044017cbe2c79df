#!/usr/bin/env python3
"""The parts of scripts/gpu_check.sh, the most informative first.

  gpu_parts.py names
  gpu_parts.py list RESULTS [MINUTES]     one line per part: name, minutes, result
  gpu_parts.py fit RESULTS MINUTES        names of the parts that have not passed and fit in MINUTES

RESULTS: the folder of `gpu_check.sh run`, with results and times. The minutes of a part without a result are estimates, at most ten. A part
that needs the files of another part is listed only after it, or if the other part has passed.
"""
import math
import os
import sys

MOST = 10  # maximum minutes of a part


def shares(name, n, minutes, first=1, last=None):
    return [(f"{name}:{share}/{n}", minutes, None) for share in range(first, (last or n) + 1)]


# Name, minutes, needed part. A fortieth of the kernels' tests took memcheck and initcheck 99 s, synccheck 71 s, racecheck 155 s on an H100
# with other parts running.
PARTS = [("kernels", 3, None), ("shape", 4, None), ("bench", 5, "shape"), ("decoders", 5, None), *shares("exact", 24, 6, last=1),
         ("peers", 4, "bench"), ("speeds", 3, None), ("prompts", 8, "shape"), *shares("memcheck", 16, 5, last=1),
         *shares("racecheck", 20, 6, last=1), ("training", 6, None), ("rows", 3, None), ("same", 3, None), ("products", 1, None),
         *shares("exact", 24, 6, first=2, last=6), *shares("initcheck", 16, 5, last=1), *shares("synccheck", 12, 5, last=1),
         ("soak", 5, None), ("cancel", 3, None), *shares("memcheck", 16, 5, first=2), *shares("racecheck", 20, 6, first=2),
         *shares("faults", 8, 10), *shares("exact", 24, 6, first=7), *shares("initcheck", 16, 5, first=2),
         *shares("synccheck", 12, 5, first=2)]


def found(results, name):
    """The part's exit code and seconds, or None if it did not run."""
    path = os.path.join(results, name.replace(":", ".").replace("/", ".") + ".code")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        code, seconds = file.read().split()
    return int(code), int(seconds)


def looked_up(results):
    """(name, minutes, needed part, result) of each part."""
    all_parts = []
    for name, minutes, needs in PARTS:
        ran = found(results, name)
        if ran:
            minutes = min(MOST, max(1, math.ceil(ran[1] / 60)))
        all_parts.append((name, minutes, needs, ran))
    return all_parts


def fitting(results, most):
    chosen, left, there = [], most, set()
    for name, minutes, needs, ran in looked_up(results):
        if ran and ran[0] == 0:
            there.add(name)
        elif minutes <= left and (needs is None or needs in there):
            chosen.append((name, minutes, needs, ran))
            left -= minutes
            there.add(name)
    return chosen


def described(ran):
    if ran is None:
        return "a guess"
    return f"passed in {ran[1]} s" if ran[0] == 0 else f"ended with status {ran[0]} after {ran[1]} s"


def main(arguments):
    verb, rest = arguments[:1], arguments[1:]
    if verb == ["names"] and not rest:
        print(*(name for name, _, _ in PARTS))
    elif verb == ["fit"] and len(rest) == 2 and rest[1].isdecimal():
        print(*(one[0] for one in fitting(rest[0], int(rest[1]))))
    elif verb == ["list"] and rest and (len(rest) == 1 or rest[1:][0].isdecimal() and len(rest) == 2):
        parts = looked_up(rest[0]) if len(rest) == 1 else fitting(rest[0], int(rest[1]))
        for name, minutes, _, ran in parts:
            print(f"{name:<16}{minutes:>3} min  {described(ran)}")
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

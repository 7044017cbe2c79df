"""Checks an exported Chrome trace (profile PD-1) without any code of the exporter.

Usage: check_trace.py TRACE.json[.gz]. Prints the counts, after at most 20 broken rules; exits with 1 if a rule is broken.
"""
import gzip
import json
import math
import re
import sys

# Perfetto refuses \ud83d\ude00; an even number of backslashes before "u" is text.
ESCAPED_SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]")

problems = []


def rule(holds, what):
    if not holds:
        problems.append(what)


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        text = file.read().decode("utf-8", errors="strict")
    rule(text.startswith('{"'), "the file does not begin with {\"")
    rule(not ESCAPED_SURROGATE.search(text), "an escaped surrogate")
    return json.loads(text, parse_constant=refuse_constant)


def check_slices(lane, slices):
    """Starts strictly increase, parents come first, and every slice ends inside the one that encloses it."""
    stack, last = [], -1.0
    for e in slices:
        end = e["ts"] + e["dur"]
        rule(e["dur"] >= 0, f"{lane}: negative duration")
        rule(e["ts"] > last, f"{lane}: start {e['ts']} does not follow {last}")
        last = e["ts"]
        while stack and stack[-1] <= e["ts"] + 1e-9:
            stack.pop()
        rule(not stack or end <= stack[-1] + 1e-6, f"{lane}: {e['name']} at {e['ts']} overlaps")
        stack.append(end)


def check_async(lane, events):
    """b and e match by category, name and id, and nest on their lane."""
    stack = []
    for e in events:
        key = (e["cat"], e["name"], e["id"])
        if e["ph"] == "b":
            stack.append((key, e["ts"]))
        else:
            rule(stack and stack[-1][0] == key and stack[-1][1] <= e["ts"], f"{lane}: stray e {key}")
            if stack:
                stack.pop()
    rule(not stack, f"{lane}: a block that does not end")


def check_flows(lanes, flows):
    ids = {}
    for e in flows:
        ids.setdefault((e["cat"], e["name"], e["id"]), []).append(e)
        inside = [s for s in lanes.get((e["pid"], e["tid"]), [])
                  if s["ph"] == "X" and s["ts"] < e["ts"] < s["ts"] + s["dur"]]
        rule(inside, f"flow {e['id']} {e['ph']} at {e['ts']} lies in no slice")
        rule(isinstance(e["id"], int), f"flow {e['id']}: the id is not an integer")
    for key, ends in ids.items():
        by_time = "".join(e["ph"] for e in sorted(ends, key=lambda e: e["ts"]))
        rule(by_time == "sf", f"flow {key}: found {by_time}, expected sf")
        rule(all(e.get("bp") == "e" for e in ends if e["ph"] == "f"), f"flow {key}: no bp")


def check(trace):
    events = trace["traceEvents"]
    rule(events and events[0]["ph"] == "M", "the first event is not a name")
    processes, threads, lanes, flows = set(), set(), {}, []
    for e in events:
        place = (e["pid"], e["tid"])
        rule(e["pid"] > 0 and e["tid"] > 0, f"pid or tid of {e} is not positive")
        if e["ph"] == "M":
            rule(place not in lanes, f"{place}: named after its first event")
            if e["name"] == "process_name":
                processes.add(e["pid"])
            if e["name"] == "thread_name":
                threads.add(place)
            continue
        rule(e["ph"] in "XbeiCsf", f"kind {e['ph']} is not in the profile")
        rule(math.isfinite(e["ts"]) and e["ts"] >= 0, f"time {e['ts']}")
        rule(abs(e["ts"] * 1000 - round(e["ts"] * 1000)) < 1e-3, f"{e['ts']} has over 3 decimals")
        lanes.setdefault(place, []).append(e)
        if e["ph"] == "C":
            rule(all(isinstance(v, (int, float)) for v in e["args"].values()), f"counter {e}")
        if e["ph"] in "sf":
            flows.append(e)
    for place, lane in lanes.items():
        rule(place[0] in processes and place in threads, f"{place} has no name")
        check_slices(place, [e for e in lane if e["ph"] == "X"])
        check_async(place, [e for e in lane if e["ph"] in "be"])
    check_flows(lanes, flows)
    meta = trace["metadata"]
    rule(meta["profile"] == "PD-1" and meta["clock"] in ("engine_steady", "own_compute"), "metadata: profile, clock")
    rule(meta["events"] == len(events), f"{len(events)} events, metadata says {meta['events']}")
    for run in meta["runs"]:
        for name in ("method", "parameters", "model", "dtype", "device", "seed", "prompt_hash"):
            rule(name in run, f"metadata: a run without {name}")
    return f"{len(events)} events, {len(processes)} processes, {len(threads)} lanes, {len(flows)} flow ends"


if __name__ == "__main__":
    said = check(read(sys.argv[1]))
    for problem in problems[:20]:
        print(problem)
    print(said)
    sys.exit(1 if problems else 0)

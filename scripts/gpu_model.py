#!/usr/bin/env python3
"""Compares steps measured on a GPU with the least time that they can take (docs/cuda.md, "Speed on an H100").

  gpu_model.py PROBE.json STEP.json [OUT.json]

PROBE: output of gpu_probe (copy_gbps, launch_us, node_us). STEP: output of `bench step --json`.
  bound by copies = (bytes of weights + bytes of the cache that is read) / the rate of device copies
  model           = bound by copies + launches x launch_us + kernels x node_us
Prints a table and writes OUT with both as shares of each step's time. Exit code 1 if a target is missed: plain decoding reaches 90 % of the
bound by copies, 32 rows take at most 1.10 times one row's time, 120 rows 1.35 times.
"""
import json
import sys

PLAIN_SHARE = 0.90
TIMES_OF_ONE = {32: 1.10, 120: 1.35}


def bound_ms(bytes_moved, probe):
    """Milliseconds to read bytes once at the rate of a copy, which counts reads and writes."""
    return bytes_moved / probe["copy_gbps"] * 1e-6


def compared(probe, step):
    moved = step["weight_bytes"] + step["context"] * step["cache_bytes_per_token"]
    by_copies = bound_ms(moved, probe)
    launches = step.get("launches_per_step")
    of_launches = None if launches is None else launches * probe["launch_us"] * 1e-3
    kernels = step.get("kernels_per_step")
    of_nodes = None if kernels is None or "node_us" not in probe else kernels * probe["node_us"] * 1e-3
    rows = {row["rows"]: row["ms"] for row in step["rows"]}
    one = rows.get(1)
    out = {"bytes_moved": moved, "bound_by_copies_ms": by_copies, "launch_cost_ms": of_launches,
           "node_cost_ms": of_nodes, "model_ms": by_copies + (of_launches or 0) + (of_nodes or 0), "rows": [], "targets": []}
    for n, ms in sorted(rows.items()):
        out["rows"].append({"rows": n, "ms": ms, "times_of_one": ms / one if one else None, "of_bound": by_copies / ms,
                            "of_model": out["model_ms"] / ms})

    def target(name, value, limit, met):
        out["targets"].append({"name": name, "value": value, "limit": limit, "met": met})

    if one:
        target("plain decoding, share of the bound by copies", by_copies / one, PLAIN_SHARE, by_copies / one >= PLAIN_SHARE)
        for n, limit in TIMES_OF_ONE.items():
            if n in rows:
                target(f"{n} rows, times of one", rows[n] / one, limit, rows[n] / one <= limit)
    return out


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    probe, step = (json.load(open(path)) for path in arguments[:2])
    out = compared(probe, step)
    print(f"bytes moved {out['bytes_moved']:,}; bound by copies at {probe['copy_gbps']:.0f} GB/s: {out['bound_by_copies_ms']:.3f} ms")
    if out["node_cost_ms"] is not None:
        print(f"cost of kernels in a graph: {out['node_cost_ms']:.3f} ms; model {out['model_ms']:.3f} ms")
    print("| rows | ms | of one | of the bound | of the model |\n| --- | --- | --- | --- | --- |")
    for row in out["rows"]:
        times = "-" if row["times_of_one"] is None else f"{row['times_of_one']:.2f}"
        print(f"| {row['rows']} | {row['ms']:.3f} | {times} | {row['of_bound']:.2f} | {row['of_model']:.2f} |")
    for one in out["targets"]:
        print(f"{'met' if one['met'] else 'MISSED'}: {one['name']}: {one['value']:.3f}, target {one['limit']:.2f}")
    if len(arguments) > 2:
        with open(arguments[2], "w") as file:
            json.dump(out, file, indent=2)
    return 0 if out["targets"] and all(one["met"] for one in out["targets"]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

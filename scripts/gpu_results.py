#!/usr/bin/env python3
"""Puts what the parts of scripts/gpu_check.sh left in a folder into one document.

  gpu_results.py FOLDER

Reads FOLDER/PART.code ("exit code, seconds") of each part that was run and the documents they wrote, writes FOLDER/gpu_check.json, prints
which parts passed; fails where one did not.
"""
import glob
import json
import os
import subprocess
import sys

DOCUMENTS = ("devices", "machine", "probe", "step", "decode", "model", "exact", "prompts", "long", "speeds", "kernels", "training", "floor",
             "peers")


def gpu_here():
    try:
        asked = subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
                               capture_output=True, text=True)
        return asked.stdout.strip()
    except OSError as error:
        return f"not known: {error}"


def collected(folder):
    told = {"gpu": gpu_here(), "parts": {}}
    for path in sorted(glob.glob(folder + "/*.code")):
        with open(path) as file:
            code, seconds = file.read().split()
        told["parts"][os.path.basename(path)[:-5]] = {"passed": code == "0", "seconds": int(seconds)}
    for name in DOCUMENTS:
        path = f"{folder}/{name}.json"
        if not os.path.exists(path) or not os.path.getsize(path):
            continue
        try:
            with open(path) as file:
                told[name] = json.load(file)
        except ValueError as error:  # cut off with its part, whose code says so
            told[name] = {"absent": f"{name}.json: {error}"}
    return told


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    told = collected(arguments[0])
    with open(arguments[0] + "/gpu_check.json", "w") as file:
        json.dump(told, file, indent=2)
    print(json.dumps(told["parts"], indent=2))
    return 0 if all(part["passed"] for part in told["parts"].values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Collects the results of scripts/gpu_check.sh in one document.

  gpu_results.py FOLDER

Reads FOLDER/PART.code (exit code and seconds) and the parts' documents, writes FOLDER/gpu_check.json, and prints which parts passed. Exit code
1 if one did not.
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
        query = subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
                               capture_output=True, text=True)
        return query.stdout.strip()
    except OSError as error:
        return f"not known: {error}"


def collected(folder):
    document = {"gpu": gpu_here(), "parts": {}}
    for path in sorted(glob.glob(folder + "/*.code")):
        with open(path) as file:
            code, seconds = file.read().split()
        document["parts"][os.path.basename(path)[:-5]] = {"passed": code == "0", "seconds": int(seconds)}
    for name in DOCUMENTS:
        path = f"{folder}/{name}.json"
        if not os.path.exists(path) or not os.path.getsize(path):
            continue
        try:
            with open(path) as file:
                document[name] = json.load(file)
        except ValueError as error:  # truncated, because its part was stopped
            document[name] = {"absent": f"{name}.json: {error}"}
    return document


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    document = collected(arguments[0])
    with open(arguments[0] + "/gpu_check.json", "w") as file:
        json.dump(document, file, indent=2)
    print(json.dumps(document["parts"], indent=2))
    return 0 if all(part["passed"] for part in document["parts"].values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Compares the time of a token of plain decoding with that of other programs, for scripts/gpu_check.sh.

  gpu_peers.py STEP.json FLOOR.json [OUT.json]

STEP.json: output of `bench step --json` with one row among its rows. FLOOR.json: output of eager_floor.py on the same weights. The table also
has published figures of llama.cpp and vLLM on other GPUs and models, for orientation. Exit code 1 if this program is slower than the floor.
"""
import json
import sys

PUBLISHED = [
    {"program": "llama.cpp, December 2023", "gpu": "H100 PCIe 80 GB", "model": "LLaMA 2 7B f16", "ms_per_token": 12.0,
     "source": "https://github.com/XiongjieDai/GPU-Benchmarks-on-LLM-Inference"},
    {"program": "vLLM 0.23.0", "gpu": "A100 40 GB", "model": "Llama 3.1 8B bf16", "ms_per_token": 13.0,
     "source": "https://johnmusgrave.com/p/vllm-throughput-latency-sweep-on"},
]


def one_row(step):
    """Milliseconds of a step of one row, or None."""
    return next((row["ms"] for row in step["rows"] if row["rows"] == 1), None)


def compared(step, floor):
    """@return  the document and the missed targets"""
    own = one_row(step)
    document = {"context": step["context"], "ms_per_token": own, "peers": []}
    missed = [] if own else ["found no step of one row"]
    if "absent" in floor:
        document["peers"].append({"program": "transformers, eager", "absent": floor["absent"]})
    else:
        ms = floor["ms_per_token"]
        document["peers"].append({"program": f"transformers {floor['transformers']}, eager", "measured": True, "context": floor["context"],
                              "ms_per_token": ms})
        if own and own > ms:
            missed.append(f"plain decoding takes {own:.2f} ms a token, transformers' eager generate {ms:.2f}")
    document["peers"] += [one | {"measured": False} for one in PUBLISHED]
    for one in document["peers"]:
        if own and "ms_per_token" in one:
            one["times"] = round(one["ms_per_token"] / own, 2)
    return document, missed


def main(arguments):
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    document, missed = compared(*(json.load(open(path)) for path in arguments[:2]))
    own = document["ms_per_token"]
    print("| program | where | ms a token | times this program's |\n| --- | --- | --- | --- |")
    print(f"| this program | here, context {document['context']} | {f'{own:.2f}' if own else '-'} | 1.00 |")
    for one in document["peers"]:
        where = f"published: {one['gpu']}, {one['model']}" if "gpu" in one else f"absent: {one['absent']}" if "absent" in one else "here"
        print(f"| {one['program']} | {where} | {one.get('ms_per_token', '-')} | {one.get('times', '-')} |")
    for line in missed:
        print(f"MISSED: {line}")
    if len(arguments) == 3:
        with open(arguments[2], "w") as file:
            json.dump(document, file, indent=2)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

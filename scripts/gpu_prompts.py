#!/usr/bin/env python3
"""Compares the time to read a prompt on a GPU by the kernels that compute steps, and by cuBLAS (docs/cuda.md, "Prompts by cuBLAS").

  gpu_prompts.py texts FILE                      writes prompts of some 390 to 750 tokens, for `compare --prompt-file`
  gpu_prompts.py compare OWN.json... CUBLAS.json... [--out OUT.json]

Each file is an output of `bench decode --json` with --context N; "prompts" is null if cuBLAS did not read the prompt. Prints milliseconds
per 1,000 tokens both ways for each N. Exit code 1 if no file is by cuBLAS, or a length was measured one way only. There is no target of speed.
"""
import json
import sys


def texts():
    story = "Anna has {} red pens and {} blue pens. Ben gives her {} more, and she puts them all in a box. "
    for n in (14, 20, 26):
        body = "".join(story.format(i, 2 * i + 1, 3 * i % 7) for i in range(1, n))
        yield {"id": f"long/{n}", "prompt": f"USER: {body}How many pens does Anna have? ASSISTANT:"}


def compared(measured):
    """@return  {tokens: {way: ms per 1,000 tokens}} and the name of cuBLAS"""
    ways, name = {}, None
    for one in measured:
        way = "own" if one["prompts"] is None else "cublas"
        name = one["prompts"] or name
        ways.setdefault(one["context"], {})[way] = one["prefill_ms"] / (one["context"] - 1) * 1000
    return ways, name


def main(arguments):
    if arguments[:1] == ["texts"] and len(arguments) == 2:
        with open(arguments[1], "w") as file:
            for text in texts():
                file.write(json.dumps(text) + "\n")
        return 0
    if arguments[:1] != ["compare"] or len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    files, out = arguments[1:], None
    if "--out" in files:
        at = files.index("--out")
        out, files = files[at + 1], files[:at] + files[at + 2:]
    ways, name = compared([json.load(open(path)) for path in files])
    print(f"ms per 1,000 tokens of a prompt; blocks of 256 by {name}\n| tokens | kernels of steps | cuBLAS | ratio |\n| --- | --- | --- | --- |")
    missing = [] if name else ["found no file by cuBLAS"]
    for n, ms in sorted(ways.items()):
        if len(ms) < 2:
            missing.append(f"{n} tokens: measured one way only")
            continue
        print(f"| {n} | {ms['own']:.2f} | {ms['cublas']:.2f} | {ms['own'] / ms['cublas']:.2f} |")
    for line in missing:
        print(f"MISSED: {line}")
    if out:
        with open(out, "w") as file:
            json.dump({"products": name, "ms_per_1000_tokens": {str(n): ms for n, ms in sorted(ways.items())}}, file, indent=2)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Compares training on a GPU with the same training on the CPU, and reports the speed of a larger one.

  gpu_training.py recipes FOLDER         writes small.json (200,000 weights, 300,000 tokens, f32), large.json (14 M, 4 M tokens),
                                         step.json (small's first step) and cllm.json (96 steps of consistency training of the
                                         bundled draft model, f32)
  gpu_training.py compare FOLDER [OUT.json]

`compare` expects the outputs of `decoscope train`: cpu/ and gpu/ (small.json), cllm-cpu/ and cllm-gpu/ (cllm.json with the same answers), and
large/. Exit code 1 if losses differ by more than 0.1 % in the first steps, or by more than 2 % in the mean of the last ten logged ones.
"""
import json
import sys

FIRST, FIRST_SHARE = 3, 0.001  # lines of the log: steps 1, 10, 20
LAST, LAST_SHARE = 10, 0.02

SMALL = {"name": "small", "model": {"layers": 2, "dim": 64, "hidden_dim": 192, "heads": 4, "max_seq_len": 128},
         "mixture": {"arith": {"weight": 1}}, "context": 64, "batch_tokens": 2048, "peak_lr": 0.002, "warmup_steps": 20,
         "tokens": 300000, "compute": "f32", "shards": 4, "seed": 1}
LARGE = {"name": "large", "model": {"layers": 7, "dim": 384, "hidden_dim": 1024, "heads": 6, "max_seq_len": 1024},
         "mixture": {part: {"weight": 1} for part in ("arith", "kb", "sql", "py", "blocks")}, "context": 1024,
         "batch_tokens": 32768, "peak_lr": 0.0015, "warmup_steps": 500, "tokens": 4000000, "seed": 14}

CLLM = {"name": "cllm", "target": "demo-draft", "mixture": {"arith": {"weight": 1, "levels": [1, 0, 0]}}, "block": 8, "prompts": 192,
        "max_new_tokens": 64, "drop_wrong": False, "token_run": 0, "sentence_run": 0, "points": 4, "batch_texts": 8, "replay_texts": 4,
        "context": 256, "epochs": 4, "peak_lr": 0.001, "warmup_steps": 10, "probe_minutes": 0, "score_problems": 2, "compute": "f32",
        "shards": 4, "seed": 1}


def log_of(folder):
    with open(folder + "/training.jsonl") as lines:
        return [json.loads(line) for line in lines]


def compared_logs(what, cpu, gpu):
    """The losses of two logs side by side, and the differences that are too large."""
    out = {"steps": [], "missed": []}
    if [line["step"] for line in cpu] != [line["step"] for line in gpu] or len(cpu) < FIRST:
        out["missed"].append(f"{what}: the logs have different steps: {len(cpu)} and {len(gpu)} lines")
        return out
    for on_cpu, on_gpu in zip(cpu, gpu):
        out["steps"].append({"step": on_cpu["step"], "cpu": on_cpu["loss"], "gpu": on_gpu["loss"]})
    for step in out["steps"][:FIRST]:
        if not abs(step["gpu"] / step["cpu"] - 1) <= FIRST_SHARE:
            out["missed"].append(f"{what}: step {step['step']}: loss {step['gpu']:.5f}, on the CPU {step['cpu']:.5f}")
    last = out["steps"][-LAST:]
    means = {name: sum(step[name] for step in last) / len(last) for name in ("cpu", "gpu")}
    out["last"] = means
    if not abs(means["gpu"] / means["cpu"] - 1) <= LAST_SHARE:
        out["missed"].append(f"{what}: the last steps: mean loss {means['gpu']:.4f}, on the CPU {means['cpu']:.4f}")
    return out


def compared(folder):
    out = compared_logs("target", log_of(f"{folder}/cpu"), log_of(f"{folder}/gpu"))
    out["consistency"] = compared_logs("consistency", log_of(f"{folder}/cllm-cpu"), log_of(f"{folder}/cllm-gpu"))
    out["missed"] += out["consistency"].pop("missed")
    out["large_tokens_per_second"] = log_of(f"{folder}/large")[-1]["tokens_per_second"]
    return out


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in ("recipes", "compare"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = arguments[1]
    if arguments[0] == "recipes":
        for recipe in (SMALL, LARGE, {**SMALL, "name": "step", "tokens": 1000}, CLLM):
            with open(f"{folder}/{recipe['name']}.json", "w") as file:
                json.dump(recipe, file, indent=2)
        return 0
    out = compared(folder)
    for what, steps in (("target", out["steps"]), ("consistency", out["consistency"]["steps"])):
        for step in steps:
            print(f"{what}, step {step['step']:>5}  loss on the CPU {step['cpu']:.5f}  on the GPU {step['gpu']:.5f}")
    print(f"14 M weights in bf16: {out['large_tokens_per_second']:,.0f} tokens/s")
    for missed in out["missed"]:
        print(f"MISSED: {missed}")
    if len(arguments) > 2:
        with open(arguments[2], "w") as file:
            json.dump(out, file, indent=2)
    return 1 if out["missed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

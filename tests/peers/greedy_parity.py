#!/usr/bin/env python3
"""Compares greedy tokens of this program with those of transformers in f32, prompt by prompt.

  greedy_parity.py prompts DATA OUT.jsonl              100 prompts of MT-bench, GSM8K (test) and HumanEval from the data folder
  greedy_parity.py expect MODEL PROMPTS OUT.jsonl      transformers' tokens (needs transformers, PyTorch and, for a .gguf, gguf)
  greedy_parity.py check PROGRAM MODEL PROMPTS EXPECTED  this program's tokens; exit code 1 if any differ where there is no near tie

Options of expect and check: --max-tokens N (128), --raw (the prompt as it is, without the chat template). `expect` continues an unfinished
file. A near tie is a place where transformers' two largest logits differ by at most 1e-4 of the larger one's size.
"""
import argparse
import gzip
import json
import os
import subprocess
import sys

TIE = 1e-4


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def write_prompts(data, out):
    prompts = []
    with open(f"{data}/mt_bench/question.jsonl", encoding="utf-8") as file:
        prompts += [(f"mt_bench/{i}", json.loads(line)["turns"][0]) for i, line in zip(range(34), file)]
    with open(f"{data}/gsm8k/test.jsonl", encoding="utf-8") as file:
        prompts += [(f"gsm8k/{i}", json.loads(line)["question"]) for i, line in zip(range(33), file)]
    with gzip.open(f"{data}/humaneval/HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        for i, line in zip(range(33), file):
            prompts.append((f"humaneval/{i}", "Complete this Python function:\n\n" + json.loads(line)["prompt"]))
    with open(out, "w", encoding="utf-8") as file:
        for name, prompt in prompts:
            file.write(json.dumps({"id": name, "prompt": prompt}) + "\n")


def expect(args):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = {"pretrained_model_name_or_path": args.model}
    if os.path.isfile(args.model):
        folder, name = os.path.split(args.model)
        place = {"pretrained_model_name_or_path": folder or ".", "gguf_file": name}
    tokenizer = AutoTokenizer.from_pretrained(**place)
    model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32).eval()
    ends = model.generation_config.eos_token_id
    ends = set(ends if isinstance(ends, list) else [ends]) | {tokenizer.eos_token_id}
    done = {line["id"] for line in lines_of(args.out)} if os.path.exists(args.out) else set()
    with torch.no_grad(), open(args.out, "a", encoding="utf-8") as out:
        for line in lines_of(args.prompts):
            if line["id"] in done:
                continue
            if args.raw:
                ids = tokenizer(line["prompt"])["input_ids"]
            else:
                messages = [{"role": "user", "content": line["prompt"]}]
                ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
            tokens, gaps, feed, cache = [], [], torch.tensor([ids]), None
            for _ in range(args.max_tokens):
                step = model(feed, past_key_values=cache, use_cache=True)
                cache = step.past_key_values
                best, which = step.logits[0, -1].topk(2)
                tokens.append(int(which[0]))
                gaps.append(float((best[0] - best[1]) / max(1.0, abs(float(best[0])))))
                if tokens[-1] in ends:
                    break
                feed = torch.tensor([[tokens[-1]]])
            out.write(json.dumps({"id": line["id"], "prompt": list(ids), "tokens": tokens, "gaps": gaps}) + "\n")
            out.flush()


def generated(args):
    mode = ["--raw"] if args.raw else ["--chat"]
    command = [args.program, "generate", "--model", args.model, "--dtype", "f32", "--json", "--max-tokens", str(args.max_tokens)]
    command += ["--prompt-file", args.prompts, *mode]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        sys.exit(answer.stderr)
    results = json.loads(answer.stdout)
    return results if isinstance(results, list) else [results]


def check(args):
    expected = {line["id"]: line for line in lines_of(args.expected)}
    ids = [line["id"] for line in lines_of(args.prompts)]
    equal, ties, wrong = 0, [], []
    runs = generated(args)
    if len(runs) != len(ids):
        sys.exit(f"found {len(runs)} results for {len(ids)} prompts")
    for name, run in zip(ids, runs):
        want, got = expected[name]["tokens"], run["tokens"]
        if run["prompt_tokens"] != expected[name]["prompt"]:
            wrong.append(f"{name}: other prompt tokens")
            continue
        at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), None)
        if at is None and len(want) == len(got):
            equal += 1
        elif at is not None and expected[name]["gaps"][at] <= TIE:
            ties.append(f"{name} at token {at} (gap {expected[name]['gaps'][at]:.1e})")
        else:
            wrong.append(f"{name} at token {at}: {len(want)} tokens expected, {len(got)} found")
    print(f"{equal} of {len(ids)} equal, {len(ties)} differ after a near tie, {len(wrong)} differ")
    for line in ties + wrong:
        print("  " + line)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, places in (
        ("prompts", ["data", "out"]),
        ("expect", ["model", "prompts", "out"]),
        ("check", ["program", "model", "prompts", "expected"]),
    ):
        command = commands.add_parser(name)
        for place in places:
            command.add_argument(place)
        if name != "prompts":
            command.add_argument("--max-tokens", type=int, default=128)
            command.add_argument("--raw", action="store_true")
    args = parser.parse_args()
    if args.command == "prompts":
        return write_prompts(args.data, args.out)
    return expect(args) if args.command == "expect" else check(args)


if __name__ == "__main__":
    sys.exit(main())

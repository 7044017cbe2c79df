#!/usr/bin/env python3
"""Compares greedy tokens of this program with those of transformers in f32, prompt by prompt.

  greedy_parity.py prompts DATA OUT.jsonl [--count N]  N (100) prompts of MT-bench, GSM8K (test) and HumanEval from the data folder
  greedy_parity.py generate PROGRAM MODEL PROMPTS OUT.jsonl  this program's tokens
  greedy_parity.py verify MODEL PROMPTS TOKENS.jsonl  compares them with transformers (needs transformers, PyTorch and, for a .gguf, gguf);
                                                      exit code 1 if any differ where there is no near tie
  greedy_parity.py expect MODEL PROMPTS OUT.jsonl     transformers' own greedy tokens, one forward per token; slow; continues an
                                                      unfinished file
  greedy_parity.py check TOKENS.jsonl EXPECTED.jsonl  compares the results of `generate` and `expect`
  greedy_parity.py logits MODEL TEXT OUT.json         transformers' logits after a text: the largest 32 and 96 others (a fixture)

Options of generate, verify and expect: --max-tokens N (128), --raw (the prompt as it is, without the chat template).

`verify` computes one forward per prompt, over the prompt and this program's tokens. If transformers' argmax after each prefix is the token
that follows it, then by induction transformers' greedy text is this text. A near tie is a position where transformers' two largest logits
differ by at most 1e-4 of the larger one's size; a difference there is counted apart.
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


def write_prompts(data, out, count):
    prompts, third = [], count // 3
    with open(f"{data}/mt_bench/question.jsonl", encoding="utf-8") as file:
        prompts += [(f"mt_bench/{i}", json.loads(line)["turns"][0]) for i, line in zip(range(count - 2 * third), file)]
    with open(f"{data}/gsm8k/test.jsonl", encoding="utf-8") as file:
        prompts += [(f"gsm8k/{i}", json.loads(line)["question"]) for i, line in zip(range(count - third - len(prompts)), file)]
    with gzip.open(f"{data}/humaneval/HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        for i, line in zip(range(third), file):
            prompts.append((f"humaneval/{i}", "Complete this Python function:\n\n" + json.loads(line)["prompt"]))
    with open(out, "w", encoding="utf-8") as file:
        for name, prompt in prompts:
            file.write(json.dumps({"id": name, "prompt": prompt}) + "\n")


def write_line(file, line):
    file.write(json.dumps(line) + "\n")
    file.flush()


# ---- this program -------------------------------------------------------------------------------------------------------------------------

def generate(args):
    mode = ["--raw"] if args.raw else ["--chat"]
    command = [args.program, "generate", "--model", args.model, "--dtype", "f32", "--json", "--max-tokens", str(args.max_tokens)]
    command += ["--prompt-file", args.prompts, *mode]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode != 0:
        sys.exit(answer.returncode)
    results = json.loads(answer.stdout)
    results = results if isinstance(results, list) else [results]
    ids = [line["id"] for line in lines_of(args.prompts)]
    if len(results) != len(ids):
        sys.exit(f"found {len(results)} results for {len(ids)} prompts")
    with open(args.out, "w", encoding="utf-8") as out:
        for name, run in zip(ids, results):
            write_line(out, {"id": name, "prompt": run["prompt_tokens"], "tokens": run["tokens"]})


# ---- transformers -------------------------------------------------------------------------------------------------------------------------

def pre_tokenizer_of(path):
    from gguf import GGUFReader

    field = GGUFReader(path).get_field("tokenizer.ggml.pre")
    return field.contents() if field else ""


class Oracle:
    """A model and its tokenizer as transformers opens them, in f32."""

    def __init__(self, path, raw):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        place = {"pretrained_model_name_or_path": path}
        if os.path.isfile(path):
            folder, name = os.path.split(path)
            place = {"pretrained_model_name_or_path": folder or ".", "gguf_file": name}
        torch.set_grad_enabled(False)
        torch.set_num_threads(min(2, torch.get_num_threads()))
        self.torch, self.raw = torch, raw
        self.tokenizer = AutoTokenizer.from_pretrained(**place)
        if os.path.isfile(path) and pre_tokenizer_of(path) == "smollm":
            self.split_digits()
        self.model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32).eval()
        ends = self.model.generation_config.eos_token_id
        self.ends = set(ends if isinstance(ends, list) else [ends]) | {self.tokenizer.eos_token_id}

    def split_digits(self):
        """Applies `smollm`, as tokenizer.json of SmolLM2 has it; transformers 5.24 ignores the pre-tokeniser of GGUF files."""
        from tokenizers import pre_tokenizers

        self.tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])

    def prompt_ids(self, prompt):
        if self.raw:
            return list(self.tokenizer(prompt)["input_ids"])
        messages = [{"role": "user", "content": prompt}]
        return list(self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"])

    def best_after(self, prompt, tokens):
        """The greedy token after the prompt and after each of `tokens` but the last, and its gap to the second, relative."""
        feed = self.torch.tensor([prompt + tokens[:-1]])
        logits = self.model(feed, use_cache=False, logits_to_keep=len(tokens)).logits[0]
        return self.picks(logits)

    def greedy(self, prompt, max_tokens):
        tokens, gaps, feed, cache = [], [], self.torch.tensor([prompt]), None
        while len(tokens) < max_tokens and not (tokens and tokens[-1] in self.ends):
            step = self.model(feed, past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            for token, gap in zip(*self.picks(step.logits[0, -1:])):
                tokens.append(token)
                gaps.append(gap)
            feed = self.torch.tensor([tokens[-1:]])
        return tokens, gaps

    @staticmethod
    def picks(logits):
        best, which = logits.topk(2)
        return which[:, 0].tolist(), ((best[:, 0] - best[:, 1]) / best[:, 0].abs().clamp(min=1.0)).tolist()


def expect(args):
    oracle = Oracle(args.model, args.raw)
    done = {line["id"] for line in lines_of(args.out)} if os.path.exists(args.out) else set()
    with open(args.out, "a", encoding="utf-8") as out:
        for line in lines_of(args.prompts):
            if line["id"] not in done:
                prompt = oracle.prompt_ids(line["prompt"])
                tokens, gaps = oracle.greedy(prompt, args.max_tokens)
                write_line(out, {"id": line["id"], "prompt": prompt, "tokens": tokens, "gaps": gaps})


def logits(args):
    oracle = Oracle(args.model, args.raw)
    prompt = oracle.prompt_ids(args.text)
    row = oracle.model(oracle.torch.tensor([prompt]), use_cache=False, logits_to_keep=1).logits[0, 0]
    ids = sorted(set(row.topk(32).indices.tolist()) | set(range(0, len(row), len(row) // 96)))
    with open(args.out, "w", encoding="utf-8") as out:
        write_line(out, {"prompt": prompt, "largest": row.abs().max().item(), "logits": {str(id): float(f"{row[id].item():.7g}") for id in ids}})


# ---- comparison ---------------------------------------------------------------------------------------------------------------------------

class Tally:
    """Counts prompts and lists differences and near ties."""

    def __init__(self):
        self.n_prompts = self.n_tokens = self.equal = 0
        self.differ_at_ties, self.wrong, self.ties = [], [], []

    def prompt(self, name, faults, differences, gaps):
        """`differences`: positions whose tokens differ."""
        self.n_prompts += 1
        self.n_tokens += len(gaps)
        self.ties += [f"{name} token {i}: relative gap {gap:.1e}" for i, gap in enumerate(gaps) if gap <= TIE]
        no_tie = [i for i in differences if gaps[i] > TIE]
        if faults or no_tie:
            self.wrong.append(f"{name}: " + ", ".join(faults + [f"token {i} (relative gap {gaps[i]:.1e})" for i in no_tie[:3]]))
        elif differences:
            self.differ_at_ties.append(f"{name}: tokens {differences}")
        else:
            self.equal += 1

    def report(self):
        print(f"{self.equal} of {self.n_prompts} prompts equal ({self.n_tokens} tokens), {len(self.differ_at_ties)} differ at near ties only, "
              f"{len(self.wrong)} differ; {len(self.ties)} near ties")
        for title, lines in (("differ", self.wrong), ("differ at near ties", self.differ_at_ties), ("near ties", self.ties)):
            for line in lines:
                print(f"  {title}: {line}")
        return 1 if self.wrong else 0


def end_faults(tokens, ends, max_tokens):
    """What is wrong with the place where a text ends."""
    early = next((i for i, token in enumerate(tokens) if token in ends), None)
    if early is None:
        return [] if len(tokens) == max_tokens else [f"{len(tokens)} tokens without an end"]
    return [] if early == len(tokens) - 1 else [f"goes on after its end at token {early}"]


def verify(args):
    oracle, tally = Oracle(args.model, args.raw), Tally()
    found = {line["id"]: line for line in lines_of(args.tokens)}
    for line in lines_of(args.prompts):
        ours, prompt = found[line["id"]], oracle.prompt_ids(line["prompt"])
        if ours["prompt"] != prompt:
            tally.prompt(line["id"], ["other prompt tokens"], [], [])
            continue
        best, gaps = oracle.best_after(prompt, ours["tokens"])
        faults = end_faults(ours["tokens"], oracle.ends, args.max_tokens)
        tally.prompt(line["id"], faults, [i for i, (a, b) in enumerate(zip(best, ours["tokens"])) if a != b], gaps)
    return tally.report()


def check(args):
    tally, expected = Tally(), {line["id"]: line for line in lines_of(args.expected)}
    for ours in lines_of(args.tokens):
        want = expected[ours["id"]]
        faults = [] if want["prompt"] == ours["prompt"] else ["other prompt tokens"]
        # After the first difference the texts have other prefixes.
        first = [i for i, (a, b) in enumerate(zip(want["tokens"], ours["tokens"])) if a != b][:1]
        if not first and len(want["tokens"]) != len(ours["tokens"]):
            faults.append(f"{len(want['tokens'])} tokens expected, {len(ours['tokens'])} found")
        tally.prompt(ours["id"], faults, first, want["gaps"])
    return tally.report()


COMMANDS = {
    "prompts": (["data", "out"], lambda args: write_prompts(args.data, args.out, args.count)),
    "generate": (["program", "model", "prompts", "out"], generate),
    "verify": (["model", "prompts", "tokens"], verify),
    "expect": (["model", "prompts", "out"], expect),
    "check": (["tokens", "expected"], check),
    "logits": (["model", "text", "out"], logits),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (places, _) in COMMANDS.items():
        command = commands.add_parser(name)
        for place in places:
            command.add_argument(place)
        if name == "prompts":
            command.add_argument("--count", type=int, default=100)
        if name in ("generate", "verify", "expect"):
            command.add_argument("--max-tokens", type=int, default=128)
        if name in ("generate", "verify", "expect", "logits"):
            command.add_argument("--raw", action="store_true")
    args = parser.parse_args()
    return COMMANDS[args.command][1](args)


if __name__ == "__main__":
    sys.exit(main())

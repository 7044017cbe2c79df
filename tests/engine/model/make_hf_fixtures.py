#!/usr/bin/env python3
"""Small random models and the greedy tokens that Hugging Face transformers makes of them.

    make_hf_fixtures.py make [OUT [NAME..]] writes tests/fixtures/hf/<name>/ (committed; hf_parity_test.cpp reads it)
    make_hf_fixtures.py same DIR_A DIR_B    do two model directories give the same tokens in transformers?
    make_hf_fixtures.py scaled PROGRAM      enlarges every fixture with `PROGRAM model scale` and compares as `same` does

Needs torch and transformers 5. Every choice of a fixture is clear: the best logit leads the second by at least MARGIN, so
that another order of f32 sums (about 1e-5 here) cannot change a token.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from transformers import LlamaConfig, MistralConfig, Qwen2Config

MARGIN = 1e-3
NEW_TOKENS = 40
PROMPT_LENGTHS = [1, 7, 30, 62, 70]  # with 40 more tokens: over the edge of a page of 64, over every sliding window
FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "hf"

SHAPE = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
             vocab_size=128, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
ORIGINAL = dict(original_max_position_embeddings=64)


def llama(**change):
    return LlamaConfig(**{**SHAPE, **change})


def rope(**parameters):
    return dict(rope_parameters=dict(rope_theta=10000.0, **parameters))


CONFIGS = {
    "llama_untied": llama(),
    "llama_tied": llama(tie_word_embeddings=True),
    "llama_gqa": llama(num_key_value_heads=2, rms_norm_eps=1e-5),
    "llama_head_dim": llama(head_dim=12, num_key_value_heads=1),
    "llama_biases": llama(attention_bias=True, mlp_bias=True),
    "mistral_window": MistralConfig(**{**SHAPE, "num_key_value_heads": 2, "sliding_window": 16}),
    "qwen2_bias": Qwen2Config(**{**SHAPE, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    "qwen2_window": Qwen2Config(**SHAPE, use_sliding_window=True, sliding_window=20, max_window_layers=1),
    "rope_linear": llama(**rope(rope_type="linear", factor=4.0)),
    "rope_dynamic": llama(**{**rope(rope_type="dynamic", factor=2.0), "max_position_embeddings": 64}),
    "rope_llama3": llama(**rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, **ORIGINAL)),
    "rope_yarn": llama(**rope(rope_type="yarn", factor=4.0, **ORIGINAL)),
    "rope_yarn_mscale": llama(**rope(rope_type="yarn", factor=4.0, mscale=0.7, mscale_all_dim=1.3, truncate=False,
                                     beta_fast=16.0, beta_slow=2.0, **ORIGINAL)),
    # Of these the rope scaling extends the context beyond max_position_embeddings, which most of the texts need.
    "extended_linear": llama(**{**rope(rope_type="linear", factor=4.0), "max_position_embeddings": 64}),
    "extended_yarn": Qwen2Config(**{**SHAPE, **rope(rope_type="yarn", factor=4.0, **ORIGINAL),
                                    "max_position_embeddings": 64}),
    "extended_llama3": llama(**{**rope(rope_type="llama3", factor=2.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                       **ORIGINAL), "max_position_embeddings": 64}),
    "rope_longrope": llama(**rope(rope_type="longrope", short_factor=[1.0, 1.1, 1.2, 1.3],
                                  long_factor=[1.0, 2.0, 3.5, 4.0], **ORIGINAL)),
}
WRITTEN_AS_TRANSFORMERS_4 = ["llama_tied", "rope_linear", "rope_llama3", "qwen2_bias"]
SHARDED = ["llama_untied"]


def random_model(config, seed):
    """Weights large enough that logits spread over several units."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("norm.weight"):
                weight.normal_(1.0, 0.2)
            elif name.endswith("bias"):
                weight.normal_(0.0, 0.4)
            elif "embed" in name:
                weight.normal_(0.0, 0.3 if config.tie_word_embeddings else 1.0)
            else:
                weight.normal_(0.0, 1.2 / weight.shape[1] ** 0.5)
    return model


@torch.no_grad()
def greedy(model, prompt, n):
    """n tokens, one forward each after the prompt's, and the smallest lead of a best logit over the second."""
    # Dynamic scaling remembers the longest sequence; each of these is the first of its model.
    model.model.rotary_emb = type(model.model.rotary_emb)(model.config)
    ids, cache, tokens, margin = torch.tensor([prompt]), None, [], float("inf")
    for _ in range(n):
        out = model(ids, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        best = out.logits[0, -1].float().topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        tokens.append(best.indices[0].item())
        ids = torch.tensor([[tokens[-1]]])
    return tokens, margin


def runs_of(model, seed, lengths):
    generator = torch.Generator().manual_seed(seed)
    runs = []
    for length in lengths:
        prompt = torch.randint(3, model.config.vocab_size, (length,), generator=generator).tolist()
        tokens, margin = greedy(model, prompt, NEW_TOKENS)
        runs.append(dict(prompt=prompt, tokens=tokens, margin=margin))
    return runs


def as_transformers_4(path):
    config = json.loads(path.read_text())
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters.pop("rope_theta")
    if parameters.get("rope_type", "default") != "default":
        config["rope_scaling"] = parameters
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.46.0"
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def make(out, names):
    for name, config in CONFIGS.items():
        if names and name not in names:
            continue
        for seed in range(1, 100):
            model = random_model(config, seed)
            runs = runs_of(model, seed, PROMPT_LENGTHS)
            if min(run["margin"] for run in runs) >= MARGIN and all(len(set(run["tokens"])) > 8 for run in runs):
                break
        else:
            raise SystemExit(f"{name}: no seed gives clear choices")
        folder = out / name
        model.save_pretrained(folder, max_shard_size="60KB" if name in SHARDED else "10GB")
        if name in WRITTEN_AS_TRANSFORMERS_4:
            as_transformers_4(folder / "config.json")
        expected = dict(transformers=transformers.__version__, seed=seed, runs=runs)
        (folder / "expected_tokens.json").write_text(json.dumps(expected) + "\n")
        print(f"{name}: seed {seed}, margin {min(run['margin'] for run in runs):.4f}")


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()


def same(a, b):
    """True if both directories give the same greedy tokens; prints what differs."""
    one, two = load(a), load(b)
    equal = True
    for x, y in zip(runs_of(one, 5, PROMPT_LENGTHS), runs_of(two, 5, PROMPT_LENGTHS)):
        if x["tokens"] != y["tokens"]:
            equal = False
            print(f"{a} and {b} differ after a prompt of {len(x['prompt'])} (margins {x['margin']:.5f}, {y['margin']:.5f})")
    return equal


def scaled(program):
    n_bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        for folder in sorted(FIXTURES.iterdir()):
            for scale in ["4x1", "4x2", "16x1"]:
                large = pathlib.Path(scratch) / f"{folder.name}-{scale}"
                subprocess.run([program, "model", "scale", folder, large, "--scale", scale], check=True,
                               stdout=subprocess.DEVNULL)
                good = same(folder, large)
                n_bad += not good
                print(f"{folder.name} {scale}: {'same tokens' if good else 'DIFFERENT'}")
    return n_bad == 0


def main():
    command, *rest = sys.argv[1:] or ["help"]
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)  # the models are tiny
    if command == "make":
        make(pathlib.Path(rest[0]) if rest else FIXTURES, rest[1:])
    elif command == "same" and len(rest) == 2:
        sys.exit(0 if same(*rest) else 1)
    elif command == "scaled" and len(rest) == 1:
        sys.exit(0 if scaled(rest[0]) else 1)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares the lossless decoders with plain decoding, token for token, for every type of weights that the program writes: greedy and
coupled (temperature 0.8, top-p 0.95, seed 7), with the sizes that `auto` chooses and with fixed ones.

  exactness_types.py PROGRAM MODEL.gguf PROMPTS.jsonl OUT_DIR [--stored FILE.gguf]... [--max-tokens N (32)] [--threads N (all)]
                     [--pieces FIRST-LAST] [--only DECODER,...] [--types TYPE,...]

PROMPTS: as `tests/peers/greedy_parity.py prompts` writes them. MODEL is converted to every type, or to those of --types; --stored adds a
file of another model as it is. MODEL has the bundled draft model and heads of SmolLM2. Prompts run in pieces of ten, alternately with `auto`
and with fixed sizes; --pieces runs some of them, from 0 on, --only some of the decoders. Results of a piece stay in OUT_DIR, so the same
command continues a stopped run; OUT_DIR/exactness_types.json has the counts. Exit codes: 1 if a text differs, otherwise the program's.
"""
import argparse
import json
import os
import subprocess
import sys

TYPES = ["Q4_0", "Q4_1", "Q8_0", "F16", "BF16", "F32"]
LANES = "jacobi,lookahead,prompt-lookup,suffix,recycling,fastcot"
BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../assets/models")
# Decoders that need trained parts, with the option that names the part.
TRAINED = {"smollm2-draft": ("speculative,mcsd", "--draft"), "smollm2-medusa": ("medusa", "--heads"), "smollm2-chimera": ("chimera", "--heads")}
SAMPLINGS = {"greedy": [], "coupled": ["--temperature", "0.8", "--top-p", "0.95", "--seed", "7"]}
# Fixed sizes, with the decoders that have the option; those of TRAINED only where the model has trained parts.
FIXED = {"block=8": "jacobi", "window=6": "lookahead fastcot", "ngram_size=4": "lookahead", "n_guesses=6": "lookahead",
         "n_tokens=8": "prompt-lookup suffix", "rows=16": "recycling", "gamma=4": "speculative", "tree=rows8": "medusa chimera"}
PIECE = 10


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


def converted(args, kind):
    path = f"{args.out}/{kind}.gguf"
    if not os.path.exists(path):
        run([args.program, "model", "convert", args.model, path + ".part.gguf", "--type", kind])
        os.rename(path + ".part.gguf", path)
    return path


def models(args):
    """Names and files of the models; only the types of MODEL have trained parts."""
    return [(kind, converted(args, kind), True) for kind in args.types] + \
           [(os.path.basename(path).removesuffix(".gguf"), path, False) for path in args.stored]


def lanes_of(args, has_parts):
    """The lanes, and the options that name their trained parts."""
    def chosen(decoders):
        return [decoder for decoder in decoders.split(",") if not args.only or decoder in args.only]

    lanes, named = ["ar", *chosen(LANES)], {}
    for part, (decoders, option) in TRAINED.items():
        path = os.path.join(BUNDLED, part)
        if has_parts and chosen(decoders) and os.path.isdir(path):
            lanes += chosen(decoders)
            named.setdefault(option, []).append(path)
    return ",".join(lanes), [word for option, paths in named.items() for word in (option, ",".join(paths))]


def compare(args, model, has_parts, prompts, options):
    lanes, parts = lanes_of(args, has_parts)
    command = [args.program, "compare", "--model", model, *parts, "--decoders", lanes, "--prompt-file", prompts, "--json",
               "--max-tokens", str(args.max_tokens), "--threads", str(args.threads), *options]
    found = json.loads(run(command))
    found = found if isinstance(found, list) else found.get("results", [found])
    return [{key: one[key] for key in ("id", "decoder", "identical_to_ar", "n_steps") if key in one} | {"n_tokens": len(one["tokens"])}
            for one in found if one["decoder"] != "ar"]


def pieces(args):
    """The settings of every piece: [(file of results, model, has_parts, prompts, options)]."""
    with open(args.prompts, encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    n_pieces = -(-len(lines) // PIECE)
    first, last = args.pieces or (0, n_pieces - 1)
    for at in range(first, min(last, n_pieces - 1) + 1):
        prompts = f"{args.out}/prompts-{at}.jsonl"
        with open(prompts, "w", encoding="utf-8") as file:
            file.writelines(lines[at::n_pieces])  # of every set
        for name, model, has_parts in models(args):
            lanes = lanes_of(args, has_parts)[0].split(",")
            chosen = [option for option, decoders in FIXED.items() if set(decoders.split()) & set(lanes)]
            sizes, fixed = ("fixed", [word for one in chosen for word in ("--set", one)]) if at % 2 else ("auto", [])
            for sampling, options in SAMPLINGS.items():
                yield f"{args.out}/{name}-{sampling}-{sizes}-{at}.json", model, has_parts, prompts, options + fixed


def summary(files):
    """Counts by model, sampling, sizes and decoder, and the texts that differ."""
    counts, differ = {}, []
    for path in files:
        setting = os.path.basename(path).rsplit("-", 1)[0]
        with open(path, encoding="utf-8") as file:
            for one in json.load(file):
                of = counts.setdefault(setting, {}).setdefault(one["decoder"], [0, 0])
                of[0] += one["identical_to_ar"]
                of[1] += 1
                if not one["identical_to_ar"]:
                    differ.append(f"{setting}: {one['decoder']}: {one['id']}")
    every = [of for setting in counts.values() for of in setting.values()]
    return {"identical": sum(same for same, _ in every), "texts": sum(n for _, n in every), "differ": differ, "settings": counts}


def write(path, document):
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "model", "prompts", "out"):
        parser.add_argument(name)
    parser.add_argument("--stored", action="append", default=[])
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--pieces", type=lambda text: tuple(int(end) for end in text.split("-", 1)))
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--types", type=lambda text: text.split(","), default=TYPES)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    files = []
    for file, *setting in pieces(args):
        if not os.path.exists(file):
            write(file, compare(args, *setting))
        files.append(file)
        write(f"{args.out}/exactness_types.json", summary(files))
    found = summary(files)
    print(f"{found['identical']} of {found['texts']} texts are those of plain decoding", *found["differ"], sep="\n")
    return 1 if found["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compares `decoscope model tokenize` with other programs on 10,000 random strings, naughty strings and this repository's texts.

    compare_tokenizers.py PROGRAM llama.cpp DIR      DIR: llama.cpp's models/, whose ggml-vocab-*.gguf have texts (.inp) and ids (.out)
    compare_tokenizers.py PROGRAM gguf FILE..        the vocabulary and merges of a GGUF file in Hugging Face's tokenizers, with the
                                                     pre-tokeniser that its tokenizer.ggml.pre names; also the tokenizer.json that this gives.
                                                     Vocabularies with scores (tokenizer.ggml.model llama) in sentencepiece
    compare_tokenizers.py PROGRAM tiktoken FILE..    tiktoken with Llama 3's, Llama 4's, Qwen's or Mistral's vocabulary (tekken*.json)
    compare_tokenizers.py PROGRAM sentencepiece FILE..

PROGRAM is the decoscope program. Needs the packages tokenizers, gguf, tiktoken or sentencepiece. Prints the number of differences and the
first ones. Exit code 1 if there are any.
"""

import base64
import glob
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ""
n_differences = 0

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
_WORD = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s|")
O200K = _WORD % ((r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",) * 2) + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# tokenizer.ggml.pre: patterns that split one after the other
PATTERNS = {"gpt-2": [GPT2], "mpt": [GPT2], "llama-bpe": [LLAMA3], "llama4": [O200K], "qwen2": [QWEN2], "qwen35": [QWEN35],
            **dict.fromkeys(["smollm", "starcoder", "refact", "command-r"], [r"\p{N}", GPT2]),
            "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
            "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+", r"\p{N}"]}
# number of tokens in the file: pattern, whether texts are brought to NFC
TIKTOKEN = {128000: (LLAMA3, False), 200000: (O200K, False), 151643: (QWEN2, True), 248044: (QWEN35, True)}

NAUGHTY = ["", "田中さんにあげて下さい", "表ポあA鷗ŒéＢ逍Üßªąñ丂㐀𠀀", "ヽ༼ຈل͜ຈ༽ﾉ", "👨‍👩‍👧‍👦👩🏽‍🚀", "🇺🇸🇷🇺🇸", "١٢٣", "مُنَاقَشَةُ سُبُلِ", "הָיְתָהtestالصفحات", "﷽", "\u202atest\u202c",
           "Ṱ̺̺̕o͞ ̷i̲̬͇̪͙n̝̗͕", "𝕿𝖍𝖊", "\u0000a\u0000", "\ufeffBOM", "e\u0301\u0327 e\u0327\u0301", "ｶﾞ ﾊﾟ", "Ⅷ ½ ﬁ ㍿", "İstanbul", "\t\t\n \r\n \n\n\n   x",
           "a" * 300, " " * 300, "\n" * 40, "1" * 100, "e\u0301" * 100, "\u0300" * 500, "'s't're've'm'll'd'S'T'RE", "<|endoftext|>", "▁▁ Ġ <0x41>"]
POOLS = [[chr(c) for c in range(32, 127)], list("abcdefghijklmnopqrstuvwxyzABCXYZ"), list("0123456789"), list(" \n\t\r\u00a0\u3000\u2028\x85\u180e\u200b") + ["  "],
         [chr(c) for c in range(0xA0, 0x530)], [chr(c) for c in range(0x590, 0xE80)], [chr(c) for c in range(0x2000, 0x2C00)],
         [chr(c) for c in range(0x3040, 0x3100)], [chr(c) for c in range(0x4E00, 0xD7A4, 13)], [chr(c) for c in range(0x1F300, 0x1FB00)] + ["\u200d"],
         [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cs", "Cn")], [chr(c) for c in range(0xE000, 0x110000, 17)],
         ["'s", "'RE", "don't", "HELLO", " the", "camelCase", "123", "3.14", "foo_bar", "http://x.y/z?a=b", "    ", "\n    return x;", "!!!", "ſ", "▁"]]


def texts():
    rng = random.Random(7)
    made = []
    for _ in range(10_000):
        pools = [rng.choice(POOLS) for _ in range(rng.choice([1, 2, 3]))] + [POOLS[3]] * rng.randrange(2)
        n = rng.choice([1, 2, 4, 8, 16, 32, 64])
        made.append("".join(rng.choice(rng.choice(pools)) * rng.choice([1, 1, 1, 2, 5]) for _ in range(n)))
    for path in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("engine/*/*.cpp")]):
        text = path.read_text()
        made += [text[i:i + 1200] for i in range(0, len(text), 1200)]
    return NAUGHTY + made[:11_000]


def ours(path, all_texts, special=False):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps({"prompt": text}) + "\n" for text in all_texts)
        file.flush()
        run = subprocess.run([PROGRAM, "model", "tokenize", path, "--file", file.name, "--json", *(["--special"] if special else [])],
                             capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)
    return [json.loads(line)["tokens"] for line in run.stdout.split("\n") if line]  # pieces may contain other line ends


def compare(name, all_texts, found, expected):
    global n_differences
    if not len(found) == len(expected) == len(all_texts):
        sys.exit(f"{name}: found {len(found)} lines of tokens and {len(expected)} expected ones for {len(all_texts)} texts")
    different = [i for i, ids in enumerate(found) if ids != list(expected[i])]
    n_differences += len(different)
    print(f"{name}: {len(different)} differences in {len(all_texts)} texts", flush=True)
    for i in different[:3]:
        print(f"  {all_texts[i][:80]!r}\n    found    {found[i][:20]}\n    expected {list(expected[i])[:20]}")


def compare_llama_cpp(directory):
    paths = sorted(glob.glob(f"{directory}/ggml-vocab-*.gguf.inp"))
    if not paths:
        sys.exit(f"{directory}: found no ggml-vocab-*.gguf.inp")
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            tests = file.read().split("\n__ggml_vocab_test__\n")
        with open(path[:-4] + ".out", encoding="utf-8") as file:
            expected = [[int(id) for id in line.split()] for line in file.read().split("\n")[:len(tests)]]
        if "bert" not in path:  # WordPiece and Unigram, which are not read from GGUF
            compare(pathlib.Path(path).stem, tests, ours(path[:-4], tests), expected)


def compare_gguf(path):
    from gguf import GGUFReader
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    fields = GGUFReader(path).fields
    if fields["tokenizer.ggml.model"].contents() == "llama":
        compare_scores(path, {key[len("tokenizer.ggml."):]: field.contents() for key, field in fields.items() if key.startswith("tokenizer.ggml.")})
        return
    pre = fields["tokenizer.ggml.pre"].contents()
    tokens, types = (fields["tokenizer.ggml." + name].contents() for name in ("tokens", "token_type"))
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"].contents()]
    made = Tokenizer(models.BPE({text: id for id, text in enumerate(tokens)}, merges, ignore_merges=pre == "llama-bpe"))
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in PATTERNS[pre]]
    made.pre_tokenizer = pre_tokenizers.Sequence(splits + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.add_tokens([AddedToken(text, normalized=False, special=kind == 3) for text, kind in zip(tokens, types) if kind in (3, 4)])
    made.encode_special_tokens = True
    all_texts = texts()
    expected = [encoding.ids for encoding in made.encode_batch(all_texts)]
    compare(f"{path} ({pre})", all_texts, ours(path, all_texts), expected)
    with tempfile.TemporaryDirectory() as folder:
        made.save(folder + "/tokenizer.json")
        compare(f"{path} as tokenizer.json", all_texts, ours(folder + "/tokenizer.json", all_texts), expected)


def compare_scores(path, fields):
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    unknown = fields.get("unknown_token_id", 0)
    for id, (text, score, kind) in enumerate(zip(fields["tokens"], fields["scores"], fields["token_type"])):
        kind = 2 if id == unknown else 3 if kind == 2 else kind
        model.pieces.add(piece=text.replace(" ", "▁") if kind == 4 else text, score=score, type=kind)
    trainer, rules = model.trainer_spec, model.normalizer_spec
    trainer.model_type, trainer.byte_fallback, trainer.vocab_size = 2, True, len(model.pieces)
    trainer.unk_id, trainer.pad_id = unknown, -1
    trainer.bos_id, trainer.eos_id = fields["bos_token_id"], fields["eos_token_id"]
    rules.name, rules.add_dummy_prefix, rules.remove_extra_whitespaces = "identity", bool(fields.get("add_space_prefix", True)), False
    with tempfile.NamedTemporaryFile(suffix=".model") as file:
        file.write(model.SerializeToString())
        file.flush()
        # Phi-3's user-defined "</s>" absorbs the spaces after it, which sentencepiece cannot.
        is_phi3 = "phi" in os.path.basename(path).lower()
        compare_sentencepiece(file.name, path, [text for text in texts() if not (is_phi3 and "</s>" in text)])


def compare_tiktoken(path):
    import tiktoken

    first = 0
    if path.endswith(".json"):
        content = json.loads(pathlib.Path(path).read_text())
        config = content["config"]
        first = config["default_num_special_tokens"]
        ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in content["vocab"][:config["default_vocab_size"] - first]}
        pattern, nfc = config["pattern"], False
    else:
        ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, pathlib.Path(path).read_bytes().splitlines())}
        pattern, nfc = TIKTOKEN[len(ranks)]
    encoding = tiktoken.Encoding("file", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    # Qwen's added tokens that are not special become ids in every text, as in Hugging Face's tokenizers.
    all_texts = [text for text in texts() if "<think>" not in text and "<tool_call>" not in text]
    read = [unicodedata.normalize("NFC", text) if nfc else text for text in all_texts]
    compare(path, all_texts, ours(path, all_texts), [[first + id for id in encoding.encode_ordinary(text)] for text in read])


def compare_sentencepiece(path, ours_path=None, all_texts=None):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=path)
    all_texts = all_texts or texts()
    compare(ours_path or path, all_texts, ours(ours_path or path, all_texts), [processor.encode(text) for text in all_texts])


KINDS = {"llama.cpp": compare_llama_cpp, "gguf": compare_gguf, "tiktoken": compare_tiktoken, "sentencepiece": compare_sentencepiece}

if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[2] not in KINDS:
        sys.exit(__doc__)
    PROGRAM = sys.argv[1]
    for argument in sys.argv[3:]:
        KINDS[sys.argv[2]](argument)
    sys.exit(n_differences > 0)

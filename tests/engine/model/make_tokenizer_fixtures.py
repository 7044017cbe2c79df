#!/usr/bin/env python3
"""Small tokenizers and the ids that Hugging Face transformers makes of random strings with special tokens in them.

    make_tokenizer_fixtures.py make [OUT]   writes tests/fixtures/tokenizers/<name>/ (committed; tokenizer_parity_test.cpp
                                            reads it): tokenizer.model, the JSON files beside it, cases.jsonl
    make_tokenizer_fixtures.py classes      prints the tables of engine/tokenizer/unicode_classes.cpp, read off tokenizers

Needs transformers 5 (made with 5.24), tokenizers and sentencepiece. A line of cases.jsonl is {"text", "ids", "plain",
"decoded"}: the ids of the text; those with split_special_tokens (`--no-special`); and decode of "ids" without special tokens. "plain" is null where a
tokenizer without a LLaMA class has a symbol's name in the text: transformers reads it as the symbol even then.
"""

import json
import pathlib
import random
import sys
import tempfile
import unicodedata

import sentencepiece
import transformers
from transformers import AutoTokenizer

N_CASES = 500
ROOT = pathlib.Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "tokenizers"

CHATML = ["<|im_start|>", "<|im_end|>"]


def flags(content, **change):
    return {**dict(content=content, lstrip=False, normalized=False, rstrip=False, single_word=False, special=True), **change}


def train(prefix, **options):
    """A tokenizer of some 500 pieces, from this repository's own texts."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as corpus:
        for path in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("scripts/*.sh"), *ROOT.glob("engine/model/*.h")])[:60]:
            corpus.write(path.read_text(errors="ignore"))
        corpus.write("def f(x):\n    return x + 1\n" * 100)
        corpus.flush()
        sentencepiece.SentencePieceTrainer.train(**{**dict(
            input=corpus.name, model_prefix=str(prefix), vocab_size=500, byte_fallback=True, normalization_rule_name="identity",
            allow_whitespace_only_pieces=True, minloglevel=2, hard_vocab_limit=False), **options})


LLAMA = dict(model_type="bpe", add_dummy_prefix=True, remove_extra_whitespaces=False)
# name: options of the sentencepiece trainer; tokenizer_config.json, without the ids of further tokens; what else there is
KINDS = {
    # LLaMA 2 and fine-tunes of it as transformers 4 wrote them: ids in added_tokens.json alone.
    "llama_legacy": dict(
        spm=LLAMA,
        config=dict(tokenizer_class="LlamaTokenizer", add_bos_token=True, add_eos_token=False, legacy=True, bos_token="<s>",
                    eos_token="</s>", unk_token="<unk>"),
        added=["<|im_start|>", "<|im_end|>", "[PAD]", "new word"],
        special_map=dict(bos_token=dict(content="<s>", lstrip=False, normalized=True, rstrip=False, single_word=False),
                         eos_token="<|im_end|>", pad_token="[PAD]")),
    # The same not legacy, with added_tokens_decoder and every flag.
    "llama": dict(
        spm=dict(LLAMA, user_defined_symbols=["\n", "<sym>"], control_symbols=["<ctl>"], pad_id=3),
        config=dict(tokenizer_class="LlamaTokenizerFast", add_bos_token=True, add_eos_token=True, legacy=False,
                    bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>"),
        decoder=[flags("<|im_start|>"), flags("<|im_end|>", rstrip=True), flags("<L>", lstrip=True, special=False),
                 flags("<R>", rstrip=True, special=False), flags("<B>", lstrip=True, rstrip=True),
                 flags("word", single_word=True, special=False), flags("nor mal", normalized=True, special=False),
                 flags("<N>", normalized=True, lstrip=True, special=False), flags("<|im", special=False)]),
    # No class that transformers knows: it follows the SentencePiece model's own settings.
    "unigram": dict(
        spm=dict(model_type="unigram", add_dummy_prefix=True, remove_extra_whitespaces=True),
        config=dict(tokenizer_class="PreTrainedTokenizerFast", add_bos_token=True, bos_token="<s>", eos_token="</s>"),
        decoder=[flags("<|im_start|>"), flags("<|im_end|>", rstrip=True), flags("<L>", lstrip=True, special=False),
                 flags("<B>", lstrip=True, rstrip=True), flags("word", single_word=True, special=False),
                 flags("nor mal", normalized=True, special=False)]),
    # Without a dummy prefix, as this program trains them; tokens that are looked for in normalised text.
    "no_prefix": dict(
        spm=dict(model_type="bpe", add_dummy_prefix=False, remove_extra_whitespaces=False, user_defined_symbols=["\n"]),
        config=dict(add_bos_token=False, additional_special_tokens=["<|im_start|>"]),
        decoder=[flags("<|im_start|>"), flags("<|im_end|>"), flags("<L>", lstrip=True, special=False),
                 flags("<R>", rstrip=True, normalized=True, special=False), flags("word", single_word=True, special=False),
                 flags("nor mal", normalized=True, special=False, single_word=True)]),
    # Likewise with a table that replaces characters; the strip flags of normalised tokens find no white space, which is U+2581 there.
    "nfkc": dict(
        spm=dict(model_type="bpe", add_dummy_prefix=False, remove_extra_whitespaces=True, normalization_rule_name="nmt_nfkc"),
        config=dict(add_bos_token=False, additional_special_tokens=["<|im_start|>"]),
        decoder=[flags("<|im_start|>"), flags("<|im_end|>", lstrip=True), flags("<L>", lstrip=True, special=False),
                 flags("<R>", rstrip=True, normalized=True, special=False), flags("<N>", lstrip=True, normalized=True, special=False),
                 flags("word", single_word=True, special=False), flags("nor mal", normalized=True, special=False)]),
}


def make_folder(folder, kind):
    folder.mkdir(parents=True, exist_ok=True)
    train(folder / "tokenizer", **kind["spm"])
    (folder / "tokenizer.vocab").unlink()
    n = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model")).vocab_size()
    config = dict(kind["config"])
    if "decoder" in kind:
        config["added_tokens_decoder"] = {str(n + i): token for i, token in enumerate(kind["decoder"])}
    if "added" in kind:
        write(folder / "added_tokens.json", {token: n + i for i, token in enumerate(kind["added"])})
    if "special_map" in kind:
        write(folder / "special_tokens_map.json", kind["special_map"])
    write(folder / "tokenizer_config.json", config)


def write(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


WORDS = ["the", "token", "word", "words", "aword", "model", "return", "def f(x):", "x1", "42", "é", "naïve", "日本", "한국어", "€", "🙂",
         "👩‍👩‍👧", "ﬁ", "Ａ", "\u2581", "\u2581the", "<", ">", "<s", "s>", "<|im", "im_start|>", "[PAD", "nor", "mal", "<0x41>", "_", "-",
         "(", "\u00a0", "\u3000", "\u200b", "\u0301", "\u00b2", "\r\n", "\ufeff"]
SPACES = ["", "", " ", " ", "  ", "\n", "\n\n", "\t", "   \n ", " \u00a0"]


# What transformers reads otherwise than the SentencePiece library that it means to follow: the name of a byte piece as that
# byte, a U+2581 of the text at an end where spaces are removed, and a combining mark after a space where a table replaces characters,
# which it loses. There the library is right and the texts have none.
LEFT_OUT = {"unigram": ["<0x41>", "\u2581", "\u2581the"], "no_prefix": ["<0x41>"], "nfkc": ["<0x41>", "\u0301"]}


def random_character(source, with_marks):
    c = chr(source.randint(32, 0x2000))
    return c if with_marks or not unicodedata.category(c).startswith("M") else "x"


def random_text(source, specials, words, with_marks=True):
    parts = []
    for _ in range(source.randint(0, 9)):
        part = source.random()
        parts.append(source.choice(specials) if part < 0.4 else source.choice(words) if part < 0.9 else random_character(source, with_marks))
        parts.append(source.choice(SPACES))
    return source.choice(SPACES) + "".join(parts)


def make(out):
    for name, kind in KINDS.items():
        folder = out / name
        make_folder(folder, kind)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        plain = AutoTokenizer.from_pretrained(folder, split_special_tokens=True)
        specials = ["<s>", "</s>", "<unk>", "<pad>", *CHATML, *(token.content for token in tokenizer.added_tokens_decoder.values())]
        words = [word for word in WORDS if word not in LEFT_OUT.get(name, [])]
        source = random.Random(name)
        lines = []
        for _ in range(N_CASES):
            text = random_text(source, specials, words, with_marks=name != "nfkc")
            ids = tokenizer(text).input_ids
            is_clear = name.startswith("llama") or not any(symbol in text for symbol in tokenizer.all_special_tokens + ["<unk>"])
            lines.append(json.dumps(dict(text=text, ids=ids, plain=plain(text).input_ids if is_clear else None,
                                         decoded=tokenizer.decode(ids, skip_special_tokens=True)), ensure_ascii=False))
        (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
        print(name, type(tokenizer).__name__, len(tokenizer), "tokens,", N_CASES, "texts")


def print_classes():
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.models import WordLevel

    tokenizer = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    tokenizer.add_special_tokens([AddedToken("~@~", single_word=True, normalized=False)])
    tokenizer.add_special_tokens([AddedToken("~#~", lstrip=True, normalized=False)])

    def ranges(matches):
        found = []
        for first in range(0, 0x110000, 4096):
            points = [c for c in range(first, first + 4096) if not 0xD800 <= c <= 0xDFFF]
            for c, encoding in zip(points, tokenizer.encode_batch([chr(c) + matches[0] for c in points])):
                if not matches[1](encoding.ids):
                    continue
                if found and found[-1][1] == c - 1:
                    found[-1][1] = c
                else:
                    found.append([c, c])
        return " ".join(f"{{0x{a:X}, 0x{b:X}}}," for a, b in found)

    print("kWhiteSpace", ranges(("~#~", lambda ids: ids == [2])))
    print("kWord", ranges(("~@~", lambda ids: 1 not in ids)))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    if sys.argv[1:2] == ["make"]:
        make(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else FIXTURES)
    elif sys.argv[1:] == ["classes"]:
        print_classes()
    else:
        sys.exit(__doc__)

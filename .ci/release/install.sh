#!/bin/sh
# Installs a release of yolo for the current user. Needs neither Rust nor root:
#
#   sh install.sh                     from the folder that contains this script
#   sh install.sh --from SOURCE       from a folder or an http(s) URL that contains a release
#   sh install.sh --to FOLDER         into FOLDER/bin and FOLDER/lib instead of ~/.local
#
# The archive is verified against SHA256SUMS before it is unpacked, and installed by a rename, so that
# an interrupted installation leaves the previous one intact.
set -eu

stop() {
  echo "error: $1" >&2
  exit 1
}

from=$(dirname "$0")
to=${HOME:-}/.local
while [ $# -gt 0 ]; do
  case $1 in
    --from) [ $# -ge 2 ] || stop "--from needs a folder or a URL"; from=$2; shift 2 ;;
    --to) [ $# -ge 2 ] || stop "--to needs a folder"; to=$2; shift 2 ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) stop "unknown argument \`$1\`; usage: install.sh [--from SOURCE] [--to FOLDER]" ;;
  esac
done
[ "$to" != /.local ] || stop "HOME is not set; choose a folder with --to"

# libtorch exists only for x86-64 Linux with glibc.
system=$(uname -s)
machine=$(uname -m)
case $system in
  Linux) ;;
  Darwin) stop "yolo does not support macOS: it needs x86-64 Linux, or Windows with WSL2" ;;
  *) stop "yolo does not support $system; on Windows, run install.ps1 in PowerShell" ;;
esac
case $machine in
  x86_64 | amd64) ;;
  *) stop "yolo does not support $machine CPUs: it needs x86-64 Linux" ;;
esac
library=$( (ldd --version 2>&1 || true) | head -1)
case $library in
  *musl*) stop "this system's C library is musl, but libtorch needs glibc: use Debian, Ubuntu, Fedora or similar" ;;
esac
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //') || glibc=
case $glibc in
  '') ;;
  2.[0-9] | 2.[0-9].* | 2.[12][0-9]* | 2.3[0-4]*)
    stop "this system's glibc is $glibc, but yolo needs 2.35 or newer (Ubuntu 22.04, Debian 12)" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
get() { # file, into $work
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --retry 3 --output "$work/$1" "${from%/}/$1"
      elif command -v wget >/dev/null 2>&1; then
        wget --quiet --tries=3 --output-document="$work/$1" "${from%/}/$1"
      else
        stop "neither curl nor wget is installed; download the release yourself and use --from FOLDER"
      fi ;;
    *) cp "$from/$1" "$work/$1" ;;
  esac || stop "cannot get $1 from $from"
}

get SHA256SUMS
archive=$(sed -n 's/^[0-9a-f]\{64\} [ *]\(yolo-[0-9][^ /]*-x86_64-unknown-linux-gnu\.tar\.gz\)$/\1/p' "$work/SHA256SUMS" | head -1)
[ -n "$archive" ] || stop "SHA256SUMS of $from lists no archive for x86-64 Linux"
get "$archive"
command -v sha256sum >/dev/null 2>&1 || stop "sha256sum is not installed, so the archive cannot be verified"
expected=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$archive\$/\1/p" "$work/SHA256SUMS" | head -1)
found=$(sha256sum "$work/$archive" | cut -c1-64)
[ "$expected" = "$found" ] ||
  stop "$archive is damaged: its SHA-256 is $found, but SHA256SUMS says $expected; nothing was changed"

mkdir -p "$to/lib" "$to/bin" || stop "cannot write to $to; choose another folder with --to"
rm -rf "$to/lib/.yolo-new" "$to/lib/.yolo-old"
mkdir "$to/lib/.yolo-new"
tar -xzf "$work/$archive" -C "$to/lib/.yolo-new" --strip-components=1
"$to/lib/.yolo-new/yolo" --version >"$work/version" 2>&1 ||
  { cat "$work/version" >&2; rm -rf "$to/lib/.yolo-new"; stop "the yolo of $archive does not run here; nothing was changed"; }
if [ -e "$to/lib/yolo" ]; then mv "$to/lib/yolo" "$to/lib/.yolo-old"; fi
mv "$to/lib/.yolo-new" "$to/lib/yolo"
rm -rf "$to/lib/.yolo-old"
ln -sfn "$to/lib/yolo/yolo" "$to/bin/yolo"

echo "installed $(cat "$work/version"): $to/bin/yolo"
case :$PATH: in
  *":$to/bin:"*) echo "Next: yolo doctor" ;;
  *) echo "$to/bin is not in PATH. Next: export PATH=\"$to/bin:\$PATH\" && yolo doctor" ;;
esac

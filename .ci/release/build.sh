#!/usr/bin/env bash
# Builds the release archives in dist/: for Linux (yolo, yolo-trainer, the NCCL plugin, man pages,
# completions), for Windows (yolo.exe, completions, and the Linux archive, which `yolo setup --wsl`
# installs in WSL), the two install scripts, and SHA256SUMS of all of them.
#
#   .ci/release/build.sh            both archives
#   .ci/release/build.sh linux      the Linux archive alone
#
# It needs Rust, a C++ compiler, pip, binutils, patchelf and, for Windows, what `.ci/windows --install`
# installs; and libtorch with headers, which `cargo run --release -- setup` installs in .libtorch.
# A release runs on Ubuntu 22.04 and newer: no symbol may need a newer glibc or libstdc++.
set -euo pipefail
cd "$(dirname "$0")/../.."

newest_glibc=2.35
newest_glibcxx=3.4.30

stop() {
  echo "error: $1" >&2
  exit 1
}

case "$(uname -s) $(uname -m)" in
  "Linux x86_64") ;;
  *) stop "releases are built on x86-64 Linux, but this is $(uname -s) on $(uname -m)" ;;
esac
if (ldd --version 2>&1 || true) | grep -qi musl; then
  stop "releases are built against glibc, but this system has musl: libtorch needs glibc"
fi
for tool in cargo objdump patchelf python3 tar sha256sum; do
  command -v $tool >/dev/null || stop "$tool is missing (on Debian: apt-get install binutils patchelf python3)"
done
what=${1:-all}
[ "$what" = all ] || [ "$what" = linux ] || stop "usage: .ci/release/build.sh [linux]"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
linux=yolo-$version-x86_64-unknown-linux-gnu
windows=yolo-$version-x86_64-pc-windows-gnu
target=${CARGO_TARGET_DIR:-target}
work=$target/release-archives
rm -rf "$work"
mkdir -p "$work/$linux" dist

# Files, owners and times of an archive depend on the commit alone.
# SOURCE_DATE_EPOCH stays unset: it would make cc recompile all C and C++, including torch-sys.
when=$(git log -1 --format=%ct 2>/dev/null || echo 0)
pack() { # folder, in $work, into dist/
  tar -C "$work" --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner -cf - "$1" | gzip -n -9 >"dist/$1.tar.gz"
}

cargo build --release --locked --bin yolo
cargo build --release --locked -p yolo-trainer --bin yolo-trainer
"$target/release/yolo" setup --nccl --quiet
cp "$target/release/libtch_nccl.so" "$work/$linux/"
for program in yolo yolo-trainer; do
  cp "$target/release/$program" "$work/$linux/"
  # `yolo` names libtorch's folder when it starts the trainer; the path on the build machine must not be published.
  patchelf --remove-rpath "$work/$linux/$program"
done
cp LICENSE-MIT LICENSE-APACHE README.md "$work/$linux/"
.ci/release/notices --target x86_64-unknown-linux-gnu yolo yolo-trainer >"$work/$linux/THIRD-PARTY-NOTICES.txt"

# The highest version of a library that a program's symbols need.
highest() { # program, library
  objdump -T "$1" | sed -n "s/.*\b$2_\([0-9][0-9.]*\).*/\1/p" | sort -Vu | tail -1
}
at_most() { # found, limit
  [ -z "$1" ] || [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -1)" = "$2" ]
}
for program in yolo yolo-trainer libtch_nccl.so; do
  glibc=$(highest "$work/$linux/$program" GLIBC)
  glibcxx=$(highest "$work/$linux/$program" GLIBCXX)
  echo "$program needs glibc $glibc${glibcxx:+ and GLIBCXX $glibcxx}"
  [ -n "$glibc" ] && at_most "$glibc" $newest_glibc || stop "$program needs glibc $glibc, but Ubuntu 22.04 has $newest_glibc"
  at_most "$glibcxx" $newest_glibcxx || stop "$program needs GLIBCXX $glibcxx, but Ubuntu 22.04 has $newest_glibcxx"
  # Not `grep -q`: it would leave objdump with a broken pipe, which counts as a failure.
  objdump -p "$work/$linux/$program" | grep 'NEEDED *libc\.so\.6' >/dev/null ||
    stop "$program is static; a static program cannot load the NVIDIA driver"
done

# Both are generated from the command line's definition.
completions() { # folder
  mkdir "$1/completions"
  for pair in bash:yolo.bash zsh:_yolo fish:yolo.fish powershell:yolo.ps1; do
    "$work/$linux/yolo" completions "${pair%%:*}" >"$1/completions/${pair#*:}"
  done
}
completions "$work/$linux"
"$work/$linux/yolo" man --to "$work/$linux/man"

pack "$linux"
archives=("$linux.tar.gz")

if [ "$what" = all ]; then
  command -v zip >/dev/null || stop "zip is missing (on Debian: apt-get install zip)"
  .ci/windows --build
  mkdir "$work/$windows"
  cp target/windows/yolo.exe "dist/$linux.tar.gz" LICENSE-MIT LICENSE-APACHE README.md "$work/$windows/"
  completions "$work/$windows"
  .ci/release/notices --target x86_64-pc-windows-gnu yolo >"$work/$windows/THIRD-PARTY-NOTICES.txt"
  (cd "$work/$windows" && sha256sum "$linux.tar.gz" yolo.exe >SHA256SUMS)
  find "$work/$windows" -exec touch -d "@$when" {} +
  rm -f "dist/$windows.zip"
  (cd "$work" && find "$windows" -type f | LC_ALL=C sort | zip -q -X -9 "$OLDPWD/dist/$windows.zip" -@)
  archives+=("$windows.zip")
fi

cp .ci/release/install.sh .ci/release/install.ps1 dist/
(cd dist && sha256sum "${archives[@]}" install.sh install.ps1 >SHA256SUMS && cat SHA256SUMS)
ls -l dist

#!/usr/bin/env bash
# Makes an arm64 user land in a folder, of Debian's Python and wheels, and FOLDER/python, which runs it: land.sh FOLDER
# Needs Debian 12 with its apt, and Python 3.11; qemu-user-static is fetched where it is not installed. The system's own packages stay as they are.
set -euo pipefail
here="$(cd "$(dirname "$0")/../.." && pwd)"
land="$(mkdir -p "$1" && cd "$1" && pwd)"
root="$land/root" state="$land/apt" python="${PYTHON:-python3}"
packages="$root/usr/local/lib/python3.11/dist-packages"
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "PYTHON must be 3.11, as Debian's"; exit 1; }

# apt keeps a state of its own, for each architecture.
fetched() { # ARCHITECTURE FOLDER PACKAGES…
  local of="$state/$1" to="$2" apt
  mkdir -p "$of"/{lists/partial,cache/archives/partial,etc} "$to"
  touch "$of/status"
  apt=(apt-get -qq -o "APT::Architecture=$1" -o "APT::Architectures=$1" -o "Dir::State=$of"
    -o "Dir::State::status=$of/status" -o "Dir::Cache=$of/cache" -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1)
  "${apt[@]}" update
  "${apt[@]}" install --yes --download-only --no-install-recommends "${@:3}"
  for package in "$of"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$to" --keep-directory-symlink
  done
}
qemu="$(command -v qemu-aarch64-static)" || qemu="$land/qemu/usr/bin/qemu-aarch64-static"
[ -e "$qemu" ] || fetched "$(dpkg --print-architecture)" "$land/qemu" qemu-user-static
if [ ! -e "$root/usr/bin/python3.11" ]; then
  for name in bin lib sbin; do mkdir -p "$root/usr/$name" && ln -sfn "usr/$name" "$root/$name"; done
  fetched arm64 "$root" python3.11 libstdc++6 libgomp1 libatomic1 libc-bin
fi

# Installed by what makes a whole system; psutil looks there for file systems.
ln -sfn /proc/self/mounts "$root/etc/mtab"

# What Redraft and its tests import, without torch. Wheels for the glibc of that Debian (2.36), and older ones.
if [ ! -e "$packages/numba" ]; then
  platforms=(--platform manylinux2014_aarch64)
  for version in 17 24 26 27 28 31 34 35; do platforms+=(--platform "manylinux_2_${version}_aarch64"); done
  mapfile -t needed < <("$python" -c 'import sys, tomllib; print(*tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"], sep="\n")' "$here/pyproject.toml")
  "$python" -m pip install --quiet --disable-pip-version-check --target "$packages" --only-binary=:all: --implementation cp \
    --python-version 3.11 --abi cp311 --abi abi3 --abi none "${platforms[@]}" --constraint "$here/constraints.txt" \
    "${needed[@]}" pytest pytest-asyncio pytest-timeout
fi

cat > "$land/python" <<END
#!/bin/bash
export ARM_PYTHON="$land/python" QEMU_CPU="\${QEMU_CPU:-max}"
export QEMU_LD_PREFIX="$land/\$QEMU_CPU"
exec "$qemu" "$root/usr/bin/python3.11" "\$@"
END
chmod +x "$land/python"
# Where the kernel knows no way to start such a program, Python's children are started by the same script.
cat > "$land/sitecustomize.py" <<'END'
import os
import sys

sys.executable = sys._base_executable = os.environ["ARM_PYTHON"]
END
mv "$land/sitecustomize.py" "$root/usr/lib/python3.11/sitecustomize.py"

# What Linux says of a processor: QEMU shows the host's, unless the root has such a file. Each processor is a root of links.
says() { # PROCESSOR FEATURES PART
  mkdir -p "$land/$1/proc"
  for each in "$root"/*; do ln -sfn "$each" "$land/$1/${each##*/}"; done
  printf '%s\n' "processor : 0" "Features : $2" "CPU implementer : 0x41" "CPU part : $3" "" > "$land/$1/proc/cpuinfo"
}
plain="fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
products="$plain atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp ssbs"
says cortex-a72 "$plain" 0xd08
says neoverse-n1 "$products" 0xd0c
says max "$products jscvt fcma sha3 sha512 asimdfhm dit uscat ilrcpc flagm sve i8mm bf16" 0xd40

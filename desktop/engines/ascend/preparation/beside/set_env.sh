# shellcheck shell=bash
# Sets the environment of an Ascend NPU in this shell: source set_env.sh
#
# The scripts here do it for themselves; this is for other programs. What it finds and sets:
# python3 verso_npu_environment.py

if [ -n "${BASH_SOURCE:-}" ]; then
    verso_npu_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
else
    verso_npu_here=$(cd "$(dirname "$0")" && pwd)
fi
# The one that runs the model: ATB has to match its torch.
verso_npu_python=$(command -v python || command -v python3)
if verso_npu_exports=$("$verso_npu_python" "$verso_npu_here/verso_npu_environment.py"); then
    eval "$verso_npu_exports"
else
    echo "The environment of the NPU could not be set; the lines above say why." >&2
fi
unset verso_npu_here verso_npu_python verso_npu_exports

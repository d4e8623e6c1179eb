"""Where the time of vLLM's processes goes: stacks of all threads, and the device's kernels.

A plugin of vLLM's, so that it is in the engine core's process too. Does nothing unless
VERSO_SAMPLE names a file: while FILE.go exists, stacks are sampled, and a second after its
beginning the device's kernels are added up for two seconds; FILE.PID.json is written when it goes.
"""

import collections
import json
import os
import sys
import threading
import time

_PERIOD = 0.004
_KERNELS_AFTER, _KERNELS_FOR = 2.0, 2.0


def register():
    """The entry point."""
    target = os.environ.get("VERSO_SAMPLE")
    if target and not any(t.name == "verso-sampler" for t in threading.enumerate()):
        _start(target)
        # The engine core may be a fork of this process, which has no other threads of it.
        os.register_at_fork(after_in_child=lambda: _start(target))


def _start(target):
    threading.Thread(target=_watch, args=(target,), name="verso-sampler", daemon=True).start()


def _watch(target):
    while True:
        while not os.path.exists(target + ".go"):
            time.sleep(0.05)
        result = _sample(target)
        with open(f"{target}.{os.getpid()}.json", "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


def _sample(target):
    leaves = collections.defaultdict(collections.Counter)
    within = collections.defaultdict(collections.Counter)
    samples, started, kernels = 0, time.monotonic(), None
    own = threading.get_ident()
    done = False
    while os.path.exists(target + ".go"):
        names = {t.ident: t.name for t in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident == own:
                continue
            name = names.get(ident, "?").rstrip("0123456789_-")
            stack, seen = [], set()
            while frame is not None:
                code = frame.f_code
                stack.append(f"{'/'.join(code.co_filename.split('/')[-2:])}:{code.co_name}")
                if len(stack) == 1:
                    stack[0] += f":{frame.f_lineno}"
                frame = frame.f_back
            leaves[name][" < ".join(stack[:4])] += 1
            for part in stack:
                if part not in seen:
                    seen.add(part)
                    within[name][part] += 1
        samples += 1
        time.sleep(_PERIOD)
        if not done and os.environ.get("VERSO_SAMPLE_KERNELS") and "torch" in sys.modules:
            import torch

            if torch.cuda.is_initialized() and time.monotonic() - started > _KERNELS_AFTER:
                kernels, done = _kernels(), True
    return {"process": " ".join(sys.argv)[:100], "samples": samples, "kernels": kernels,
            "threads": {name: {"leaves": leaves[name].most_common(25),
                               "within": within[name].most_common(60)} for name in leaves}}


def _kernels():
    from torch.profiler import ProfilerActivity, profile

    started = time.monotonic()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        time.sleep(_KERNELS_FOR)
    spans = sorted((e.time_range.start, e.time_range.end) for e in found.events()
                   if str(e.device_type).endswith("CUDA"))
    busy, end = 0.0, 0.0
    for begin, stop in spans:
        busy += max(0.0, stop - max(begin, end))
        end = max(end, stop)
    span = spans[-1][1] - spans[0][0] if spans else 0
    top = collections.Counter()
    count = collections.Counter()
    for event in found.events():
        if str(event.device_type).endswith("CUDA"):
            top[event.name[:110]] += event.time_range.elapsed_us()
            count[event.name[:110]] += 1
    return {"busy_share": round(busy / span, 3) if span else None, "span_s": span / 1e6,
            "wall_s": round(time.monotonic() - started, 2),
            "top": [[name, round(us / 1e3, 1), count[name]] for name, us in top.most_common(40)]}

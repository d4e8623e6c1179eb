import os
from importlib.metadata import entry_points

plugins_loaded = False


def load_general_plugins():
    global plugins_loaded
    if plugins_loaded:
        return
    plugins_loaded = True
    chosen = os.environ.get("VLLM_PLUGINS")
    groups = entry_points()
    found = (groups.select(group="vllm.general_plugins") if hasattr(groups, "select")
             else groups.get("vllm.general_plugins", ()))
    for plugin in found:
        if chosen is None or plugin.name in chosen.split(","):
            plugin.load()()

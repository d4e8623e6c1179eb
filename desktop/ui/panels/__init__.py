"""The docks: run settings, problems, log."""

"""The command line. Nothing here imports Qt; the window is imported when it is asked for."""

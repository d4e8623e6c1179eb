"""Examines the machine and every engine: what is there, what is missing, what to do. No Qt."""

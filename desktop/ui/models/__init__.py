"""Qt models over plain objects."""

"""Where the model comes from, and whether it is complete. Knows no Qt."""

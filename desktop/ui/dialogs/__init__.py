"""Windows beside the main one; none of them blocks it."""

"""The model: found, fetched, checked."""

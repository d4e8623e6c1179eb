"""The review pane: page and text, linked."""

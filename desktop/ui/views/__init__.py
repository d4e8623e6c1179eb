"""Views and their delegates."""

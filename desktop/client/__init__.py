"""The application's end of the worker process."""

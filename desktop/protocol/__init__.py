"""The typed boundary between the application and the worker process."""

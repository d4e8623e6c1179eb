"""The process that runs an engine, apart from the application."""

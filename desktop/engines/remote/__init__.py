"""The engine that asks OpenAI-compatible servers, such as vLLM's, to read pages."""

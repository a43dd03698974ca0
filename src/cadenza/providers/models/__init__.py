"""Models: ``openai`` (any server that speaks its wire format) and ``scripted``."""

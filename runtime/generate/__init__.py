"""The tiered engine: prefill and decode, KV cache, sampling, the life of a request."""

"""The window: shows state, emits intent; everything heavy happens in the runtime."""

"""Memory and queues of accelerators: arenas, copies, events, launches."""

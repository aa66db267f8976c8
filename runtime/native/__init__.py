"""The C++ extension: thread pool and kernels on addresses; no policy, no Python callbacks."""

"""How many needs would be hit with each number of slots."""

from runtime.simulate.trace import Trace


def lru_hits(trace: Trace) -> list[list[int]]:
    """Return for each layer what LRU hits with 0, 1, 2 and so on slots.

    A need is hit with so many slots as its expert stood from the last used one when the token came.
    Of several experts that a token needs, LRU orders hits before misses, which depends on the slots
    and is left out here: what is found is near it, and exact where a token needs one expert.
    """
    curves = []
    for layer in range(trace.num_layers):
        found = [0] * (trace.num_experts + 1)
        latest_last: list[int] = []
        for row in trace.rows(layer):
            for expert in row:
                if expert in latest_last:
                    found[len(latest_last) - latest_last.index(expert)] += 1
            latest_last = [expert for expert in latest_last if expert not in row] + row
        for num_slots in range(trace.num_experts):
            found[num_slots + 1] += found[num_slots]
        curves.append(found)
    return curves

"""How experts are chosen, as several families' configs spell it."""

from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import refuse_variant
from runtime.spec.blocks import ExpertGroups, Routing, Score


def read_routing(reader: ConfigReader) -> Routing:
    """Return the routing by softmax, normalised where the config says so."""
    return Routing(
        top_k=reader.integer("num_experts_per_tok", maximum=1 << 16),
        is_normalised=reader.boolean("norm_topk_prob", default=False),
    )


def read_num_experts(reader: ConfigReader) -> int:
    """Return how many routed experts a layer has."""
    names = ("n_routed_experts", "num_local_experts", "num_experts")
    return reader.integer(*names, maximum=1 << 16)


def read_sigmoid_routing(reader: ConfigReader, *, scale: float, groups: tuple[int, int]) -> Routing:
    """Return routing by sigmoids that a stored vector corrects for the choice.

    ``scale`` and the number of groups and of kept ones are the family's defaults.
    """
    require_text(reader, "scoring_func", "sigmoid")
    require_text(reader, "topk_method", "noaux_tc")
    return Routing(
        top_k=reader.integer("num_experts_per_tok", maximum=1 << 16),
        score=Score.SIGMOID,
        is_normalised=reader.boolean("norm_topk_prob", default=True),
        least_sum=1e-20,
        scale=reader.number("routed_scaling_factor", scale),
        has_correction=True,
        groups=read_groups(reader, num_best=2, num_groups=groups[0], num_kept=groups[1]),
    )


def read_groups(
    reader: ConfigReader, *, num_best: int, num_groups: int, num_kept: int
) -> ExpertGroups | None:
    """Return the groups of experts, None if all are in one; the counts are the defaults."""
    num_groups = reader.integer("n_group", maximum=1 << 16, default=num_groups)
    num_kept = reader.integer("topk_group", maximum=1 << 16, default=num_kept)
    if num_groups == 1:
        return None
    num_experts = read_num_experts(reader)
    if num_experts % num_groups or num_experts // num_groups < num_best:
        expected = f"a divisor of {num_experts} that leaves at least {num_best} in a group"
        reader.refuse("n_group", num_groups, expected)
        return None
    if num_kept > num_groups:
        reader.refuse("topk_group", num_kept, f"at most {num_groups}")
    top_k = reader.integer("num_experts_per_tok", maximum=1 << 16)
    num_open = num_kept * (num_experts // num_groups)
    if top_k > num_open:
        reader.refuse("num_experts_per_tok", top_k, f"at most {num_open}")
    return ExpertGroups(num_groups, num_kept, num_best)


def require_text(reader: ConfigReader, name: str, *known: str) -> str:
    """Return a field that has one of the known values, the first if absent; refuse others."""
    value = reader[name]
    if value is None:
        return known[0]
    if value not in known:
        refuse_variant(reader, f"{name} {spelled(value)}", f"{name} {', '.join(known)}")
        return known[0]
    return str(value)

"""The page that shows a newcomer how to add a policy does what it says."""

import re
from pathlib import Path

from runtime.policy import catalogue
from runtime.policy.base import RankingPolicy
from runtime.simulate.gap import judge, slots_of_share
from tests.support.policy_drive import drive
from tests.support.traces import sticky_trace

PAGE = Path(__file__).resolve().parents[3] / "docs" / "adding-a-policy.md"


def test_page_policy_can_be_added_and_judged() -> None:
    policy_source, kind_source = re.findall(
        r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    names = {**vars(catalogue)}
    exec(compile(policy_source, str(PAGE), "exec"), names)

    kind = eval(kind_source, names)
    trace = sticky_trace()
    (judged,) = judge(trace, [kind], slots_of_share(trace, 0.25))

    assert policy_source.count("\n") < 80
    assert judged.replay.policy == kind.name
    assert judged.replay.hits > 0
    policy = kind.make(2, catalogue.LayerFacts(8))
    assert isinstance(policy, RankingPolicy)
    assert drive(policy, [[1, 2], [3], [1]], 2, is_forced=True)

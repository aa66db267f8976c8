"""The window's part of the cost of expert maps."""

from collections.abc import Callable

from pytestqt.qtbot import QtBot

from tests.support.map_cost import share_of_a_core

MAX_SHARE = 0.05
"""Of a core, for 94 x 512 experts at 10 Hz; asserted at three times its value."""


def test_maps_at_ten_hertz_take_little_of_a_core(
    qtbot: QtBot, record_property: Callable[[str, object], None]
) -> None:
    share = share_of_a_core(3.0)
    record_property("share_of_a_core", str(share))
    assert share < 3 * MAX_SHARE

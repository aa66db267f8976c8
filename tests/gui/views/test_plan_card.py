"""The card of a choice: the recommended one says why in two sentences."""

import msgspec
import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.theme.palette import LIGHT
from app.views.plan_card import PlanCard
from runtime.protocol.plan import Reason, ReasonCode
from tests.support.window_values import some_forecast, some_plan

BECAUSE = [Reason(code=ReasonCode.BEST_IN_MEMORY), Reason(code=ReasonCode.ONLY_CHOICE)]


@pytest.mark.parametrize("is_recommended", [True, False])
def test_card_says_why_it_is_recommended(qtbot: QtBot, is_recommended: bool) -> None:
    plan = msgspec.structs.replace(
        some_plan(forecast=some_forecast()), recommended_because=BECAUSE if is_recommended else []
    )
    card = PlanCard(plan, LIGHT, is_recommended=is_recommended, is_chosen=True)
    qtbot.addWidget(card)
    told = (
        "It is the most exact choice whose experts all stay in memory."
        " It is the only choice that can be loaded."
    )
    assert (told in [each.text() for each in card.findChildren(QLabel)]) is is_recommended
    assert (told in card._radio.accessibleName()) is is_recommended

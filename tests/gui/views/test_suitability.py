"""How well a model suits offloading, in words and on the Models page."""

import msgspec
from pytestqt.qtbot import QtBot

from app.text.suitability_words import suitability_explained, suitability_line
from app.theme.palette import LIGHT
from app.views.candidate_view import CandidateView
from runtime.protocol.messages import ModelPlanned, PlanModel
from runtime.protocol.model import ModelReport, Suitability, SuitabilityRating
from runtime.protocol.values import HitsBasis
from tests.gui.text.test_units import plain
from tests.support.monitor_stage import MonitorStage
from tests.support.session_replies import plan_candidate
from tests.support.window_values import some_plan, some_report

KNOWN = Suitability(
    rating=SuitabilityRating.FAIRLY, segment_ratio=0.541, hit_ratios=[0.42, 0.61, 0.73]
)


def test_each_rating_has_its_words_and_says_whose_routing_it_rests_on() -> None:
    assert suitability_line(KNOWN) == "Suits offloading fairly · recorded of its family"
    own = msgspec.structs.replace(KNOWN, basis=HitsBasis.OWN, num_tokens=1204)
    assert (
        plain(suitability_line(own)) == "Suits offloading fairly · counted over 1,204 tokens here"
    )
    lines = {
        suitability_line(msgspec.structs.replace(KNOWN, rating=rating))
        for rating in SuitabilityRating
    }
    assert len(lines) == 3
    assert suitability_line(None) == suitability_explained(None) == ""


def test_what_it_rests_on_is_explained() -> None:
    lines = plain(suitability_explained(KNOWN)).splitlines()
    assert lines[1] == "Of the experts, 54 % can be told for 16 tokens in a row at once."
    assert lines[2] == "A memory of 1 times the experts of a token answers at most 42 %."
    assert len(lines) == 5


def test_models_page_says_it_below_what_the_model_is(stage: MonitorStage, qtbot: QtBot) -> None:
    session = stage.monitor.session
    view = CandidateView(LIGHT)
    qtbot.addWidget(view)

    def shown(known: Suitability | None) -> str:
        plan_candidate(session, stage.client)
        report: ModelReport = msgspec.structs.replace(some_report(), suitability=known)
        session.budgets.set_context(session.budgets.context_tokens + 1024)
        stage.client.answer(
            ModelPlanned(
                request_id=stage.client.last(PlanModel).request_id,
                report=report,
                plans=[some_plan()],
                recommended=None,
            )
        )
        candidate = session.candidate
        assert candidate is not None
        limits = session.budgets.limits()
        view.show_candidate(
            candidate,
            loaded_folder="",
            is_busy=False,
            machine=session.machine,
            limits=limits,
        )
        return "" if view.suits.isHidden() else view.suits.text()

    assert shown(KNOWN).startswith("Suits offloading fairly")
    assert "54" in view.suits.toolTip()
    assert shown(None) == ""

"""The line below plans about figures of this PC that a person states."""

import msgspec
from pytestqt.qtbot import QtBot

from app.theme.palette import LIGHT
from app.views.candidate_view import CandidateView
from runtime.protocol.figure_messages import Figure, FigureUnit, StatedFigures
from runtime.protocol.machine import Measured
from runtime.protocol.messages import ModelPlanned, PlanModel
from tests.gui.text.test_units import plain
from tests.support.monitor_stage import MonitorStage
from tests.support.session_replies import plan_candidate
from tests.support.window_values import some_plan, some_report

READ = Figure(
    name="ram.read_gb_per_s",
    unit=FigureUnit.GB_PER_S,
    found=Measured(value=29.5, method="measured"),
    stated=40.0,
)
METERS = Figure(name="energy_sources", unit=FigureUnit.TEXT, stated_text="none")


def test_plans_say_how_many_figures_are_stated_which_and_where(
    stage: MonitorStage, qtbot: QtBot
) -> None:
    session = stage.monitor.session
    view = CandidateView(LIGHT)
    qtbot.addWidget(view)

    def show(stated: StatedFigures | None) -> None:
        plan_candidate(session, stage.client)
        session.budgets.set_context(session.budgets.context_tokens + 1024)
        stage.client.answer(
            ModelPlanned(
                request_id=stage.client.last(PlanModel).request_id,
                report=some_report(),
                plans=[some_plan()],
                recommended=None,
                stated=stated,
            )
        )
        assert session.candidate is not None
        view.show_candidate(
            session.candidate,
            loaded_folder="",
            is_busy=False,
            machine=session.machine,
            limits=session.budgets.limits(),
        )

    show(None)
    assert view.stated.isHidden()
    stated = StatedFigures(figures=[READ, METERS], file="/settings/machine.json")
    show(stated)
    assert not view.stated.isHidden()
    assert view.stated.text() == (
        "2 figures of this PC are stated in the settings and count in place of what was found."
    )
    assert plain(view.stated.told()) == (
        "Speed of reading RAM: 40 GB/s; found: 29.5 GB/s · measured\n"
        "Energy meters that count: none; found: not found"
    )
    with qtbot.waitSignal(view.settings_wanted):
        view.stated.settings.click()
    show(msgspec.structs.replace(stated, figures=[READ], is_fixed=True))
    assert view.stated.text() == (
        "1 figure of this PC is stated in /settings/machine.json and counts in place of what was"
        " found."
    )

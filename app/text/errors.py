"""Sentences for errors and reasons: the templates of the protocol, translated and filled."""

from app.text.translate import tr
from runtime.protocol.errors import ErrorReport
from runtime.protocol.plan import Reason
from runtime.protocol.sentences import fill, template


def sentence(report: ErrorReport) -> str:
    """What happened, with its numbers, and what to do next."""
    return fill(tr(template(report.code)), report.parameters)


def reason_text(reason: Reason) -> str:
    """Why a plan is as it is."""
    return fill(tr(template(reason.code)), reason.parameters)

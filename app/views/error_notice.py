"""An error as a notice: headline, cause with numbers, the next step as a button, details."""

from collections.abc import Callable

from app.text.error_heads import NextStep, headline, next_step, step_name
from app.text.errors import sentence
from app.views.notice_bar import NoticeBar, NoticeSource
from runtime.protocol.errors import ErrorReport


def show_error(
    bar: NoticeBar,
    source: NoticeSource,
    error: ErrorReport,
    take: Callable[[NextStep], None],
    *,
    is_ended: bool = False,
    log_text: str = "",
    on_closed: Callable[[], None] | None = None,
) -> None:
    """Show an error; ``take`` is called with the step whose button is pressed.

    ``is_ended``: there is no background process, and starting it comes first. One that runs is not
    started again.
    """
    step = NextStep.RESTART if is_ended else next_step(error.code)
    is_offered = is_ended or step is not NextStep.RESTART
    bar.show_notice(
        source,
        sentence(error),
        [(step_name(step), lambda: take(step))] if is_offered else [],
        headline=headline(error.code),
        detail="\n".join(part for part in (error.detail, log_text) if part),
        on_closed=on_closed,
    )

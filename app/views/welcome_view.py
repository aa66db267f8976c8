"""The first start, in place of the pages: three steps, each of which can be skipped."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.state.welcome import NUM_STEPS, Welcome
from app.text import welcome_words
from app.text.welcome_words import WelcomeWords
from app.theme import metrics
from app.theme.palette import Palette
from app.views.announce import announce
from app.views.pieces import Card, button, label, scrolling
from app.views.tier_bar import Dot

WIDTH = 660


class WelcomeView(QWidget):
    """Shows ``Welcome`` and passes on what the person wants."""

    demo_wanted = Signal()
    folder_wanted = Signal()
    discover_wanted = Signal()

    def __init__(self, welcome: Welcome, palette: Palette, *, has_demo: bool) -> None:
        super().__init__()
        self._welcome = welcome
        self._shown_step = -1
        self._dots: list[Dot] = []
        self._values: dict[str, QLabel] = {}
        self._has_demo = has_demo
        self.setProperty("look", "page")
        self.setAccessibleName(WelcomeWords.NAME)
        self._titles = (
            WelcomeWords.WHAT_TITLE,
            WelcomeWords.PC_TITLE,
            WelcomeWords.MODEL_TITLE,
        )
        self._title = label("", "title", is_wrapping=True)
        self._line = label("", "dim")
        self._steps = QStackedWidget()
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.skip_button = button(WelcomeWords.SKIP, "quiet")
        self.back_button = button(WelcomeWords.BACK)
        self.next_button = button(WelcomeWords.NEXT, "primary")
        self.demo_button = button(WelcomeWords.TAKE_DEMO, "primary")
        self.choose_button = button(WelcomeWords.CHOOSE, "" if has_demo else "primary")
        self.discover_button = button(WelcomeWords.DISCOVER)
        self._build(palette)
        self.skip_button.clicked.connect(welcome.finish)
        self.back_button.clicked.connect(lambda: welcome.go(welcome.step - 1))
        self.next_button.clicked.connect(lambda: welcome.go(welcome.step + 1))
        self.demo_button.clicked.connect(self.demo_wanted)
        self.choose_button.clicked.connect(self.folder_wanted)
        self.discover_button.clicked.connect(self.discover_wanted)
        welcome.changed.connect(self.show_state)
        self.show_state()

    def _build(self, palette: Palette) -> None:
        for step in (self._what(palette), self._pc(), self._models()):
            self._steps.addWidget(step)
        foot = QHBoxLayout()
        foot.addWidget(self.skip_button)
        foot.addStretch(1)
        foot.addWidget(self._line)
        foot.addStretch(1)
        for each in (self.back_button, self.next_button):
            # Neither comes to stand where the other was just pressed.
            policy = each.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            each.setSizePolicy(policy)
            foot.addWidget(each)
        inside = QWidget()
        inside.setMaximumWidth(WIDTH)
        column = QVBoxLayout(inside)
        column.addStretch(2)
        card = Card()
        card.body.setContentsMargins(28, 24, 28, 20)
        card.body.setSpacing(16)
        card.body.addWidget(self._title)
        card.body.addWidget(self._steps)
        card.body.addLayout(foot)
        column.addWidget(card)
        column.addStretch(3)
        holder = QWidget()
        middle = QHBoxLayout(holder)
        middle.addStretch(1)
        middle.addWidget(inside, 100)
        middle.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(metrics.PAGE_MARGIN, 14, metrics.PAGE_MARGIN, 14)
        area = scrolling(holder, WelcomeWords.NAME)
        # There is a button in every step, which the keys begin with.
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        layout.addWidget(area)

    def _what(self, palette: Palette) -> QWidget:
        step, column = _step()
        column.addWidget(label(WelcomeWords.WHAT_TEXT, is_wrapping=True))
        for tier, text in (
            ("vram", WelcomeWords.WHAT_VRAM),
            ("ram", WelcomeWords.WHAT_RAM),
            ("drive", WelcomeWords.WHAT_DRIVE),
        ):
            dot = Dot(palette, tier)
            self._dots.append(dot)
            line = QHBoxLayout()
            line.setSpacing(10)
            line.addWidget(dot)
            line.addWidget(label(text, is_wrapping=True), 1)
            column.addLayout(line)
        column.addWidget(label(WelcomeWords.WHAT_END, is_wrapping=True))
        column.addStretch(1)
        return step

    def _pc(self) -> QWidget:
        step, column = _step()
        column.addWidget(label(WelcomeWords.PC_TEXT, is_wrapping=True))
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(1, 1)
        names = (
            WelcomeWords.PROCESSOR,
            WelcomeWords.RAM,
            WelcomeWords.CARD,
            WelcomeWords.DRIVE,
        )
        for row, name in enumerate(names):
            value = self._values[name] = label(WelcomeWords.MEASURING, is_wrapping=True)
            grid.addWidget(label(name, "dim"), row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, row, 1)
        column.addLayout(grid)
        column.addWidget(self.progress)
        self._measuring = label("", "dim", is_wrapping=True)
        column.addWidget(self._measuring)
        column.addStretch(1)
        return step

    def _models(self) -> QWidget:
        step, column = _step()
        if self._has_demo:
            column.addWidget(label(WelcomeWords.DEMO_TEXT, is_wrapping=True))
            column.addWidget(self.demo_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(label(WelcomeWords.OWN_TEXT, is_wrapping=True))
        row = QHBoxLayout()
        row.addWidget(self.choose_button)
        row.addWidget(self.discover_button)
        row.addStretch(1)
        column.addLayout(row)
        column.addStretch(1)
        return step

    def show_state(self) -> None:
        """Show the step, and what is known of the PC."""
        step = self._welcome.step
        self._show_machine()
        if step == self._shown_step:
            return
        self._shown_step = step
        self._title.setText(self._titles[step])
        self._line.setText(welcome_words.step_line(step, NUM_STEPS))
        self._steps.setCurrentIndex(step)
        is_last = step == NUM_STEPS - 1
        self.back_button.setVisible(step > 0)
        self.next_button.setVisible(not is_last)
        self.focus_first()
        announce(self, f"{self._line.text()}. {self._title.text()}")

    def focus_first(self) -> None:
        """Put the focus on what most people press next."""
        last = self.demo_button if self._has_demo else self.choose_button
        is_last = self._welcome.step == NUM_STEPS - 1
        (last if is_last else self.next_button).setFocus(Qt.FocusReason.TabFocusReason)

    def show_palette(self, palette: Palette) -> None:
        """Draw with another palette."""
        for dot in self._dots:
            dot.show_palette(palette)

    def machine_lines(self) -> Sequence[str]:
        """Return what is said of this PC."""
        return [value.text() for value in self._values.values()]

    def _show_machine(self) -> None:
        welcome, machine = self._welcome, self._welcome.machine
        num_known = 0
        if machine is not None:
            self._values[WelcomeWords.PROCESSOR].setText(welcome_words.processor_line(machine))
            self._values[WelcomeWords.RAM].setText(welcome_words.ram_line(machine))
            self._values[WelcomeWords.CARD].setText(welcome_words.card_line(machine))
            num_known = len(self._values) - 1
        if machine is not None and welcome.is_measured:
            drive = next(iter(machine.drives), None)
            self._values[WelcomeWords.DRIVE].setText(welcome_words.drive_line(drive))
            num_known = len(self._values)
        self.progress.setRange(0, len(self._values))
        self.progress.setValue(num_known)
        text = WelcomeWords.MEASURING
        if welcome.is_measured:
            text = WelcomeWords.MEASURED if num_known == len(self._values) else WelcomeWords.FAILED
        self._measuring.setText(text)
        self.progress.setAccessibleName(text)


def _step() -> tuple[QWidget, QVBoxLayout]:
    step = QWidget()
    column = QVBoxLayout(step)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(12)
    return step, column

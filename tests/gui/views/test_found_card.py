"""What was found about a model, in words that can be taken along."""

import msgspec
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.text.errors import sentence
from app.text.words import ModelWords, ShellWords
from app.views.found_card import FoundCard
from runtime.protocol.errors import ErrorCode
from tests.support.window_values import some_error


def test_problems_are_copied_with_their_details(qtbot: QtBot) -> None:
    first = msgspec.structs.replace(some_error(), detail="at byte 7")
    second = some_error(ErrorCode.FOLDER_NOT_FOUND)
    card = FoundCard(ModelWords.PROBLEMS, [first, second], "error")
    qtbot.addWidget(card)
    shown = [each.text() for each in card.findChildren(QLabel)]
    assert shown == [ModelWords.PROBLEMS, sentence(first), sentence(second)]
    assert card.copy_button.text() == ShellWords.COPY_DETAILS
    card.copy_button.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.split("\n\n") == [*shown[:2], "at byte 7", shown[2]]


def test_notes_have_nothing_to_copy(qtbot: QtBot) -> None:
    card = FoundCard(ModelWords.NOTES, [some_error()])
    qtbot.addWidget(card)
    assert card.findChildren(QPushButton) == []

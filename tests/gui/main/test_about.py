"""About the program: versions, licences, and a report without a word of any chat."""

import zipfile
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from app.views.rail import Page
from app.views.settings_view import SettingsView
from tests.gui.main.conftest import StartWindow

QUESTION, ANSWER = "Wherefore art thou Romeo?", "Deny thy father and refuse thy name."


def test_report_is_saved_without_a_word_of_the_chat(
    start_window: StartWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = start_window([ANSWER])
    driver.send(QUESTION)
    assert driver.wait_for_answer() == ANSWER
    driver.program.window.show_page(Page.SETTINGS)
    page = driver.program.window.page(Page.SETTINGS)
    assert isinstance(page, SettingsView)
    place = tmp_path / "report.zip"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(place), ""))
    page.about.report_button.click()
    assert str(place) in page.about.told()
    with zipfile.ZipFile(place) as bundle:
        texts = {name: bundle.read(name).decode(errors="replace") for name in bundle.namelist()}
    assert {"versions.txt", "settings.json", "machine.json", "plan.json"} <= set(texts)
    for word in (*QUESTION.split(), *ANSWER.split()):
        if len(word) > 5:
            assert word.strip("?.") not in "".join(texts.values())
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path), ""))
    page.about.report_button.click()
    assert "could not be written" in page.about.told()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    page.about.report_button.click()
    page.about.parts_button.click()
    parts, licence = page.about.parts, page.about.licence
    assert parts.isVisible()
    lines = [parts.item(row).text() for row in range(parts.count())]
    assert lines[0].startswith("Larder ")
    assert any(line.startswith("PySide6_Essentials ") for line in lines)
    assert "Apache License" in licence.toPlainText()
    parts.setCurrentRow(next(row for row, line in enumerate(lines) if line.startswith("Inter ")))
    assert "SIL OPEN FONT LICENSE" in licence.toPlainText()
    page.about.parts_button.click()
    assert parts.isHidden()
    assert licence.isHidden()

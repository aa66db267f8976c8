"""What a screen reader and a keyboard find in a window."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QScrollArea,
    QSlider,
    QWidget,
)

_CONTROLS = (QAbstractButton, QAbstractSpinBox, QComboBox, QLineEdit, QSlider)
_NO_ROLES = (QAccessible.Role.NoRole, QAccessible.Role.Client)


def interface_of(widget: QWidget) -> QAccessibleInterface:
    """Return what assistive programs see of a widget."""
    interface = QAccessible.queryAccessibleInterface(widget)
    assert interface is not None, widget
    return interface


def name_of(widget: QWidget) -> str:
    """Return the name that a screen reader says.

    Where Qt takes the choice of a list for its name, the name is in the caption that it is tied to.
    """
    if isinstance(widget, QComboBox):
        return widget.accessibleName()
    return interface_of(widget).text(QAccessible.Text.Name)


def controls(window: QWidget) -> list[QWidget]:
    """Return what can be used in a window now: controls, and what takes the focus by Tab."""
    return [
        widget
        for widget in window.findChildren(QWidget)
        if widget.isVisibleTo(window)
        and widget.isEnabled()
        and not _is_inside(widget)
        and (isinstance(widget, _CONTROLS) or takes_tab(widget))
    ]


def takes_tab(widget: QWidget) -> bool:
    """Whether the focus comes to a widget by the Tab key."""
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)


def unnamed(window: QWidget) -> list[str]:
    """Return the controls without a name or a role, described."""
    return [
        f"{type(widget).__name__} in {_path(widget)}: name {name_of(widget)!r},"
        f" role {interface_of(widget).role().name}"
        for widget in controls(window)
        if not name_of(widget).strip() or not _has_role(widget)
    ]


def _has_role(widget: QWidget) -> bool:
    """Whether it is said what a widget is; areas that scroll are only named in Qt."""
    return isinstance(widget, QScrollArea) or interface_of(widget).role() not in _NO_ROLES


def tour(window: QWidget, start: QWidget) -> list[QWidget]:
    """Return what the focus goes through by Tab, until it is where it began."""
    start.setFocus(Qt.FocusReason.TabFocusReason)
    found: list[QWidget] = []
    for _ in range(500):
        widget = QApplication.focusWidget()
        assert widget is not None
        if found and widget is found[0]:
            return found
        assert widget not in found, f"the focus turns in a circle at {_path(widget)}"
        found.append(widget)
        QTest.keyClick(widget, Qt.Key.Key_Tab)
    raise AssertionError("the focus does not come back to where it began")


def is_focus_seen(window: QWidget, widget: QWidget) -> bool:
    """Whether a widget looks different once it has the focus."""
    window.setFocus()
    before = _picture(window, widget)
    widget.setFocus(Qt.FocusReason.TabFocusReason)
    return before != _picture(window, widget)


def _picture(window: QWidget, widget: QWidget) -> QImage:
    QApplication.processEvents()
    return widget.grab().toImage()


def _is_inside(widget: QWidget) -> bool:
    """Whether a widget is the inside of another control: a spin box's field, a list of choices."""
    return any(isinstance(above, (QAbstractSpinBox, QComboBox)) for above in _above(widget))


def _above(widget: QWidget) -> Iterator[QWidget]:
    parent = widget.parentWidget()
    while parent is not None:
        yield parent
        parent = parent.parentWidget()


def _path(widget: QWidget) -> str:
    names = [type(widget).__name__, *(type(above).__name__ for above in _above(widget))]
    return " < ".join(names[1:5])

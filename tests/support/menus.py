"""Menus as a person uses them."""

from PySide6.QtWidgets import QMenu


def act(menu: QMenu, *names: str) -> None:
    """Trigger the action that lies below these names."""
    for name in names[:-1]:
        inner = next(each.menu() for each in menu.actions() if each.text() == name)
        assert isinstance(inner, QMenu)
        menu = inner
    next(each for each in menu.actions() if each.text() == names[-1]).trigger()

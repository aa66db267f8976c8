"""The style sheet of the whole window, made from a palette.

Widgets choose a look by the dynamic property ``look`` (``card``, ``primary``, ``quiet`` …), never
by a colour of their own.
"""

from app.theme import metrics
from app.theme.palette import Palette


def style_sheet(palette: Palette, icons: str = "") -> str:
    """Return the style sheet for a palette; ``icons`` is the folder of the icons, with slashes."""
    parts = (_base(palette), _buttons(palette), _inputs(palette), _pieces(palette))
    return "\n".join((*parts, _marks(palette, icons), _edges(palette)))


def _base(p: Palette) -> str:
    return f"""
* {{ font-size: {metrics.BODY_PX}px; color: {p.text}; }}
QMainWindow, QWidget[look="page"] {{ background: {p.background}; }}
QToolTip {{ background: {p.surface}; color: {p.text}; border: 1px solid {p.line}; padding: 4px; }}
QLabel {{ background: transparent; }}
QLabel[look="dim"] {{ color: {p.dim}; font-size: {metrics.DIM_PX}px; }}
QLabel[look="heading"] {{ font-size: {metrics.HEADING_PX}px; font-weight: 600; }}
QLabel[look="title"] {{ font-size: {metrics.FIGURE_PX}px; font-weight: 600; }}
QLabel[look="figure"] {{ font-size: {metrics.FIGURE_PX}px; font-weight: 600; }}
QLabel[look="strong"] {{ font-weight: 600; }}
QLabel[look="accent"] {{ color: {p.accent_text}; }}
QLabel[look="problem"] {{ color: {p.error}; font-size: {metrics.DIM_PX}px; }}
QFrame[look="card"] {{
  background: {p.surface}; border: 1px solid {p.line}; border-radius: {metrics.CARD_RADIUS}px;
}}
QFrame[look="warning"] {{
  background: {p.surface}; border: 1px solid {p.drive};
  border-radius: {metrics.CARD_RADIUS}px;
}}
QFrame[look="card"][isCurrent="true"] {{ border: 1px solid {p.accent}; }}
QFrame[look="card"]:focus {{ border: 2px solid {p.focus}; }}
QFrame[look="error"] {{
  background: {p.error_area}; border: 1px solid {p.error}; border-radius: {metrics.CARD_RADIUS}px;
}}
/* A label is a frame too: its look is that of the text alone. */
QLabel[look="error"] {{ background: transparent; border: 0; color: {p.error}; }}
QFrame[look="own"] {{ background: {p.own}; border-radius: {metrics.CARD_RADIUS}px; }}
QFrame[look="code"] {{
  background: {p.code}; border: 1px solid {p.line}; border-radius: {metrics.CONTROL_RADIUS}px;
}}
QFrame[look="strip"] {{ background: {p.background}; border: 0; border-bottom: 1px solid {p.line}; }}
QFrame[look="rail"] {{ background: {p.background}; border: 0; border-right: 1px solid {p.line}; }}
QScrollArea, QScrollArea > QWidget > QWidget {{ background: transparent; border: 0; }}
QScrollArea[look="scroller"] {{ border: 1px solid transparent; border-radius: 6px; }}
QScrollArea[look="scroller"]:focus {{ border: 1px solid {p.focus}; }}
QScrollBar:vertical {{ background: transparent; width: 10px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: 10px; margin: 0; }}
QScrollBar::handle {{ background: {p.line}; border-radius: 4px; margin: 1px; min-height: 24px;
  min-width: 24px; }}
QScrollBar::handle:hover {{ background: {p.dim}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QMenu {{ background: {p.surface}; border: 1px solid {p.line}; padding: 4px; }}
QMenu::item {{ padding: 6px 20px; border-radius: 4px; }}
QMenu::item:selected {{ background: {p.own}; }}
QMenu::item:disabled {{ color: {p.dim}; }}
"""


def _buttons(p: Palette) -> str:
    return f"""
QPushButton {{
  background: {p.surface}; border: 1px solid {p.line}; border-radius: {metrics.CONTROL_RADIUS}px;
  padding: 6px 14px; min-height: 18px;
}}
QPushButton:hover {{ background: {p.hover}; }}
QPushButton:focus {{ border: 2px solid {p.focus}; padding: 5px 13px; }}
QPushButton:disabled {{ color: {p.dim}; background: {p.background}; }}
QPushButton[look="primary"] {{
  background: {p.accent}; color: {p.on_accent}; border: 1px solid {p.accent}; font-weight: 600;
}}
QPushButton[look="primary"]:hover {{ background: {p.accent_hover}; }}
QPushButton[look="primary"]:focus {{ border: 2px solid {p.text}; }}
QPushButton[look="primary"]:disabled {{
  background: {p.empty}; color: {p.dim}; border: 1px solid {p.empty};
}}
QPushButton[look="tab"] {{
    background: transparent; border: none; border-bottom: 2px solid transparent;
    border-radius: 0px; padding: 6px 4px; margin-right: 14px; color: {p.dim};
}}
QPushButton[look="tab"]:hover, QPushButton[look="tab"]:focus {{ color: {p.text}; }}
QPushButton[look="tab"]:checked {{ color: {p.text}; border-bottom: 2px solid {p.accent}; }}
QPushButton[look="tab"]:focus {{ background: {p.hover}; border-bottom: 2px solid {p.focus}; }}
QPushButton[look="quiet"], QToolButton {{
  background: transparent; border: 1px solid transparent; border-radius: 6px; padding: 3px 6px;
  color: {p.dim};
}}
QPushButton[look="quiet"]:hover, QToolButton:hover {{ background: {p.hover}; color: {p.text}; }}
QPushButton[look="quiet"]:focus, QToolButton:focus {{ border: 1px solid {p.focus}; }}
QToolButton[look="rail"] {{
  border: 1px solid transparent; border-radius: {metrics.CONTROL_RADIUS}px; padding: 6px 2px;
  color: {p.dim}; font-size: {metrics.BODY_PX}px;
}}
QToolButton[look="rail"]:checked {{
  background: {p.own}; color: {p.accent_text}; font-weight: 600;
}}
QToolButton[look="rail"]:focus {{ border: 1px solid {p.focus}; }}
QToolButton[look="menu"]::menu-indicator {{ image: none; }}
QToolButton[look="segment"] {{ padding: 3px 8px; font-size: {metrics.DIM_PX}px; }}
QToolButton[look="segment"]:checked {{ background: {p.own}; color: {p.text}; font-weight: 600; }}
QPushButton[look="warning"] {{
  background: {p.own}; color: {p.text}; border: 1px solid {p.drive}; border-radius: 9px;
  padding: 1px 10px; min-height: 16px; font-size: {metrics.DIM_PX}px;
}}
QPushButton[look="warning"]:hover {{ background: {p.hover}; }}
QPushButton[look="warning"]:focus {{ border: 2px solid {p.focus}; padding: 0 9px; }}
QRadioButton, QCheckBox {{ background: transparent; spacing: 8px; }}
QRadioButton:focus, QCheckBox:focus {{ color: {p.accent_text}; }}
QRadioButton::indicator, QCheckBox::indicator {{ width: 14px; height: 14px;
  border: 1px solid {p.dim}; background: {p.surface}; }}
QRadioButton::indicator {{ border-radius: 8px; }}
QCheckBox::indicator {{ border-radius: 4px; }}
QRadioButton::indicator:checked {{ border: 4px solid {p.accent}; width: 8px; height: 8px;
  background: {p.on_accent}; }}
QCheckBox::indicator:checked {{ background: {p.accent}; border: 1px solid {p.accent}; }}
QCheckBox::indicator:focus {{ width: 12px; height: 12px; border: 2px solid {p.focus}; }}
QRadioButton::indicator:focus {{ border-color: {p.focus}; }}
QRadioButton::indicator:unchecked:focus {{
  width: 12px; height: 12px; border: 2px solid {p.focus};
}}
"""


def _inputs(p: Palette) -> str:
    return f"""
QLineEdit, QPlainTextEdit, QSpinBox, QDoubleSpinBox, QComboBox {{
  background: {p.surface}; border: 1px solid {p.line}; border-radius: {metrics.CONTROL_RADIUS}px;
  padding: 5px 10px; selection-background-color: {p.accent}; selection-color: {p.on_accent};
}}
QLineEdit:focus, QPlainTextEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus {{
  border: 1px solid {p.focus};
}}
QSpinBox:disabled, QDoubleSpinBox:disabled {{ color: {p.dim}; background: {p.background}; }}
QComboBox::drop-down {{ border: 0; width: 26px; }}
QComboBox QAbstractItemView {{
  background: {p.surface}; border: 1px solid {p.line}; selection-background-color: {p.own};
  selection-color: {p.text}; outline: 0;
}}
QSpinBox, QDoubleSpinBox {{ padding: 5px 8px; }}
QPlainTextEdit[look="composer"] {{ border-radius: {metrics.CARD_RADIUS}px; padding: 8px; }}
QPlainTextEdit[look="code"] {{
  background: transparent; border: 1px solid transparent; border-radius: 6px; padding: 0;
}}
QPlainTextEdit[look="code"]:focus {{ border: 1px solid {p.focus}; }}
QTextBrowser[look="prose"], QTextBrowser[look="plain"], QTextBrowser[look="thought"] {{
  background: transparent; border: 0; padding: 0;
  selection-background-color: {p.accent}; selection-color: {p.on_accent};
}}
QTextBrowser[look="thought"] {{ color: {p.dim}; font-size: {metrics.DIM_PX}px; }}
QListWidget {{ background: transparent; border: 0; outline: 0; }}
QListWidget::item {{ padding: 7px 12px; border-radius: {metrics.CONTROL_RADIUS}px; }}
QListWidget::item:hover {{ background: {p.hover}; }}
QListWidget::item:selected {{ background: {p.own}; color: {p.text}; }}
QListWidget::item:focus {{ border: 1px solid {p.focus}; }}
QSlider {{ min-height: 22px; background: transparent; }}
QSlider::groove:horizontal {{ height: 6px; border-radius: 3px; background: {p.empty}; }}
QSlider::sub-page:horizontal {{ height: 6px; border-radius: 3px; background: {p.ram}; }}
QSlider::handle:horizontal {{
  width: 14px; height: 14px; margin: -6px 0; border-radius: 9px; background: {p.surface};
  border: 2px solid {p.ram};
}}
QSlider::handle:horizontal:focus {{ border: 3px solid {p.focus}; width: 12px; height: 12px; }}
"""


def _edges(p: Palette) -> str:
    """Return what tells chosen and focused things where areas and edges have one colour each."""
    if not p.has_edges:
        return ""
    return f"""
QToolButton[look="rail"]:checked, QToolButton[look="segment"]:checked,
QListWidget::item:selected, QPushButton[look="primary"]:disabled {{ border: 1px solid {p.line}; }}
QToolButton[look="rail"]:checked:focus, QToolButton[look="segment"]:checked:focus {{
  border: 3px solid {p.focus};
}}
QListWidget::item:selected:focus {{ border: 3px solid {p.focus}; }}
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus {{
  border: 3px solid {p.focus}; padding: 3px 8px;
}}
QSpinBox:focus, QDoubleSpinBox:focus {{ padding: 3px 6px; }}
QPlainTextEdit:focus {{ border: 3px solid {p.focus}; padding: 3px 8px; }}
QPlainTextEdit[look="composer"]:focus {{ padding: 6px; }}
QPlainTextEdit[look="code"]:focus {{ border: 1px solid {p.focus}; padding: 0; }}
QFrame[look="own"] {{ border: 1px solid {p.line}; }}
QMenu::item {{ border: 2px solid transparent; padding: 4px 18px; }}
QMenu::item:selected {{ border: 2px solid {p.focus}; }}
QComboBox QAbstractItemView {{
  selection-background-color: {p.text}; selection-color: {p.surface};
}}
QProgressBar {{ border: 1px solid {p.line}; }}
"""


def _pieces(p: Palette) -> str:
    return f"""
QProgressBar {{ background: {p.empty}; border: 0; border-radius: 4px; max-height: 8px; }}
QProgressBar::chunk {{ background: {p.accent}; border-radius: 4px; }}
QFrame[look="dropzone"] {{
  border: 2px dashed {p.line}; border-radius: {metrics.CARD_RADIUS}px; background: transparent;
}}
QFrame[look="dropzone"][isWelcome="true"] {{ border: 2px dashed {p.accent}; background: {p.own}; }}
QLabel[look="drophint"] {{
  background: {p.surface}; border: 2px dashed {p.accent}; border-radius: {metrics.CARD_RADIUS}px;
  font-size: {metrics.FIGURE_PX}px;
}}
QFrame[look="separator"] {{ background: {p.line}; max-height: 1px; border: 0; }}
"""


def _marks(p: Palette, icons: str) -> str:
    if not icons:
        return ""
    check = "check-dark" if p.is_dark else "check-light"
    return f"""
QCheckBox::indicator:checked {{ image: url({icons}/{check}.svg); }}
QComboBox::down-arrow {{ image: url({icons}/chevron-down-dim.svg); width: 12px; height: 12px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ width: 20px; border: 0; }}
QAbstractSpinBox::up-arrow {{ image: url({icons}/chevron-up-dim.svg); width: 10px; height: 10px; }}
QAbstractSpinBox::down-arrow {{
  image: url({icons}/chevron-down-dim.svg); width: 10px; height: 10px;
}}
"""

"""What is told of figures of this PC that a person states in place of those that were found."""

from runtime.cli.screen import method_text, print_rows, safe_text
from runtime.protocol.figure_messages import Figure, FigureUnit, StatedFigures

_UNITS = {
    FigureUnit.GIB: " GiB",
    FigureUnit.GB_PER_S: " GB/s",
    FigureUnit.WATT: " W",
    FigureUnit.J_PER_GB: " J/GB",
    FigureUnit.COUNT: "",
}


def print_stated(stated: StatedFigures | None) -> None:
    """Print which figures plans take from the person, and what was found instead; else nothing."""
    if stated is None:
        return
    print(safe_text(f"stated in {stated.file}, and counted with in place of what was found"))
    print_rows([_row(each) for each in stated.figures], indent="  ")


def _row(figure: Figure) -> tuple[str, str, str]:
    """Return name, stated value and what was found, as ``doctor`` tells figures."""
    if figure.unit is FigureUnit.TEXT:
        return figure.name, figure.stated_text, f"found: {figure.found_text or 'nothing'}"
    found = figure.found
    told = "nothing"
    if found is not None:
        told = f"{_number(found.value, figure.unit)} ({method_text(found)})"
    return figure.name, _number(figure.stated or 0.0, figure.unit), f"found: {told}"


def _number(value: float, unit: FigureUnit) -> str:
    is_whole = unit is FigureUnit.COUNT or abs(value) >= 1000
    return f"{value:.0f}{_UNITS[unit]}" if is_whole else f"{value:.4g}{_UNITS[unit]}"

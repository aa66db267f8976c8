"""What was measured, as a table for other programs. Pure."""

import csv
import io

from app.graphs.series import Curve, SampleSeries

COLUMNS = {
    Curve.RAM_READ: "ram_read_bytes_per_s",
    Curve.LINK: "link_bytes_per_s",
    Curve.DRIVE: "drive_bytes_per_s",
    Curve.POWER: "watts",
}


def curve_table(series: SampleSeries, now_s: float) -> str:
    """Return the points of all curves as CSV, oldest first; times are seconds before now."""
    columns = [
        [point for part in series.segments(curve, now_s) for point in part] for curve in COLUMNS
    ]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["seconds", *COLUMNS.values()])
    for points in zip(*columns, strict=True):
        table.writerow([f"{points[0][0]:.2f}", *(f"{value:.6g}" for _, value in points)])
    return text.getvalue()

"""`make bench-expert_map`: what maps of 94 x 512 at 10 Hz cost the window process.

Each sample comes as a frame, as it does through the pipe, is decoded, kept and drawn on the Monitor
page of a shown window, with curves and numbers. CPU time of the process by elapsed time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from reporting import row, write_result

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 12.0
TARGET_SHARE = 0.05


def main() -> None:
    """Measure, print, write `benchmarks/results/expert_map.json`."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    sys.path.insert(0, str(ROOT))
    from app.main import make_application
    from app.theme.apply import apply_theme
    from app.theme.palette import DARK
    from tests.support.map_cost import NUM_EXPERTS, NUM_LAYERS, RATE_HZ, share_of_a_core

    application = make_application(["bench"])
    apply_theme(application, DARK)
    share = share_of_a_core(SECONDS)
    print(f"the window takes {share:.1%} of a core for maps of {NUM_LAYERS} x {NUM_EXPERTS}")
    write_result(
        "expert_map",
        [
            row(
                what=f"share of a core for {NUM_LAYERS} x {NUM_EXPERTS} maps at {RATE_HZ} Hz,"
                " decoded and drawn with curves and numbers in a window of 1276 x 810",
                ours=round(share, 4),
                target=f"under {TARGET_SHARE}",
                is_reached=share < TARGET_SHARE,
            )
        ],
    )


if __name__ == "__main__":
    main()

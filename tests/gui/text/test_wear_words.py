"""What was read and written, and what that does to a drive, in words."""

import msgspec

from app.state.energy_book import EnergySum
from app.text import phrases
from app.text.wear_words import share, wear_line, wear_lines
from runtime.protocol.chat import GenerationStats
from tests.gui.text.test_units import plain
from tests.support.window_values import some_stats


def test_nothing_is_said_before_anything_was_moved() -> None:
    assert wear_lines(EnergySum(), EnergySum(), 0.0) == ""


def test_lines_say_reads_and_writes_and_what_wears() -> None:
    session = EnergySum(num_answers=1, drive_bytes_read=400_000_000)
    month = EnergySum(num_answers=9, drive_bytes_read=12 * 10**9, drive_bytes_written=6 * 10**9)
    assert plain(wear_lines(session, month, 0.0)) == (
        "This session read 0.4 GB from drives and wrote nothing, this month 12.0 GB and 6.0 GB."
        " Reading does not wear a drive; what was written is about 0.002 % of the 300 TB that a"
        " typical one bears (estimated)."
    )
    assert plain(wear_line(6 * 10**9, 600.0)).endswith("is 0.001 % of the 600 TB it bears.")
    only_copy = EnergySum(drive_bytes_written=10**9)
    assert "wrote 1.0 GB" in plain(wear_lines(only_copy, only_copy, 0.0))


def test_small_parts_never_read_as_nothing() -> None:
    assert plain(share(1e-9)) == "<0.001 %"
    assert plain(share(0.0012)) == "0.12 %"
    assert plain(share(0.25)) == "25 %"


def test_answer_says_what_it_wrote_where_that_is_told() -> None:
    assert "written to it" not in phrases.stats_tooltip(some_stats())
    told: GenerationStats = msgspec.structs.replace(some_stats(), drive_bytes_written=8192)
    text = plain(phrases.stats_tooltip(told))
    assert "read from the drive, which does not wear it; 8 KiB written to it" in text

"""Small files of facts: whole whoever writes them at once."""

import threading
from pathlib import Path

from runtime.hardware.kept_file import kept_text, replace_file
from runtime.hardware.rates import RAM, RateCache, link_key

NUM_TIMES = 200


def test_file_that_two_threads_write_at_once_is_always_whole(tmp_path: Path) -> None:
    path = tmp_path / "facts" / "rates.json"
    contents = ["a" * 50_000, "b" * 70_000]
    replace_file(path, contents[0], "facts")
    seen: set[str] = set()
    is_over = threading.Event()

    def write(content: str) -> None:
        for _ in range(NUM_TIMES):
            replace_file(path, content, "facts")

    def look() -> None:
        while not is_over.is_set():
            seen.add(kept_text(path))

    writers = [threading.Thread(target=write, args=(each,)) for each in contents]
    reader = threading.Thread(target=look)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    reader.join()
    assert seen <= set(contents)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_what_cannot_be_written_counts_while_the_process_lives(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.write_text("a file lies where the folder should be")
    path = folder / "rates.json"

    RateCache(path).record(RAM, 2e10, "measured")
    RateCache(path).fail(link_key("cuda:0"), "no answer")

    rate, failure = RateCache(path).rate(RAM), RateCache(path).failure(link_key("cuda:0"))
    assert rate is not None
    assert (rate.value, rate.method) == (2e10, "measured")
    assert failure is not None
    folder.unlink()
    RateCache(path).record(RAM, 3e10, "measured")
    assert '"bytes_per_s": 30000000000.0' in path.read_text()
    path.unlink()
    assert RateCache(path).rate(RAM) is None

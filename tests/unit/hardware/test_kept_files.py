"""Small files of facts: whole whoever writes them at once."""

import threading
from pathlib import Path

from runtime.hardware.kept_file import kept_text, replace_file

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

"""The table of what people say names tests that exist, for the window and for memory."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TABLE = ROOT / "docs" / "user-voices.md"


def test_every_voice_of_the_interface_and_of_memory_has_tests_that_exist() -> None:
    text = TABLE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([VH]\d+) \|(.*)\|$", text, flags=re.MULTILINE)
    memory = {f"V{number:02}" for number in range(1, 24)} | {"H07"}
    window = {f"V{number}" for number in range(77, 89)}
    assert memory | window <= {voice for voice, _ in rows}
    assert len(rows) == len({voice for voice, _ in rows}), "each stands once"
    for voice, row in rows:
        named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", row)
        assert named, voice
        for path, test in named:
            source = (ROOT / path).read_text(encoding="utf-8")
            assert re.search(rf"def {test or 'test_'}", source), f"{voice}: {path} {test}"

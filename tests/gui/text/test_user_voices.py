"""The table of what people say names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TABLE = ROOT / "docs" / "user-voices.md"


def test_every_voice_of_the_interface_has_tests_that_exist() -> None:
    text = TABLE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (V\d+) \|(.*)\|$", text, flags=re.MULTILINE)
    assert {f"V{number}" for number in range(77, 89)} <= {voice for voice, _ in rows}
    for voice, row in rows:
        named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", row)
        assert named, voice
        for path, test in named:
            source = (ROOT / path).read_text(encoding="utf-8")
            assert re.search(rf"def {test or 'test_'}", source), f"{voice}: {path} {test}"

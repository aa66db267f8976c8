"""Chat templates judged before they are needed."""

from pathlib import Path

import pytest

from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.judge import MAX_TEMPLATE_CHARACTERS, template_problem
from tests.support.checkpoint_folders import write_checkpoint

TEMPLATES = sorted((Path(__file__).parents[2] / "golden" / "chat-templates").glob("*.jinja"))


def with_template(folder: Path, template: str) -> Path:
    write_checkpoint(folder)
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_template_published_has_no_problem(tmp_path: Path, path: Path) -> None:
    assert template_problem(with_template(tmp_path / "m", path.read_text(encoding="utf-8"))) is None


@pytest.mark.parametrize(
    "template",
    [
        "{% for message in messages %}",
        "{{ messages | nothing_like_it }}",
        "{{ messages[7].content }}",
        "{{ unknown_function() }}",
        "{{ 1 / 0 }}",
        "{% for a in range(10 ** 9) %}x{% endfor %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "x" * (MAX_TEMPLATE_CHARACTERS + 1),
    ],
    ids=["unclosed", "filter", "index", "function", "division", "endless", "deep", "long"],
)
def test_template_that_fails_at_the_first_question_is_a_problem(
    tmp_path: Path, template: str
) -> None:
    problem = template_problem(with_template(tmp_path / "m", template))
    assert problem is not None
    assert problem.code is ErrorCode.CHAT_TEMPLATE_INVALID
    assert problem.parameters["reason"]


def test_template_that_refuses_in_its_own_words_is_in_order(tmp_path: Path) -> None:
    refusing = "{{ raise_exception('a system message is needed') }}"
    assert template_problem(with_template(tmp_path / "m", refusing)) is None

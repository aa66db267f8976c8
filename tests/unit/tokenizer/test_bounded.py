"""Templates that would never end, or fill the memory, are given up; ordinary ones are not."""

import itertools

import pytest

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer import bounded
from runtime.tokenizer.bounded import BoundedEnvironment
from runtime.tokenizer.template import ChatTemplate

GROWING = "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = "
NESTED = "{% set n = namespace(x=['ab']) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}"
TWINS = (
    "{% set n = namespace(x=['ab'], y=['ab']) %}{% for i in range(60) %}"
    "{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}"
)
COMPARISONS = (
    "{{ n.x == n.y }}",
    "{{ 1 < 2 != n.x }}",
    "{{ n.x in [n.y] }}",
    "{{ n.x is eq(n.y) }}",
    "{{ n.x is in([n.y]) }}",
    "{{ [n.x] | select('equalto', n.y) | list }}",
    "{{ [n.x, n.y] | sort }}",
    "{{ [n.x].count(n.y) }}",
)
"""Things that would be compared part by part, each part as often as it is shown."""


def render(source: str, content: str = "hello") -> str:
    messages = [{"role": "user", "content": content}]
    return ChatTemplate(source, {"eos_token": "</s>"}).render(messages, True)


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) if range(99999) | sum %}{% endfor %}",
        "{% macro m(d) %}{{ m(d + 1) if d < 99 }}{{ m(d + 1) if d < 99 }}{% endmacro %}{{ m(0) }}",
        GROWING + "n.x + n.x %}{% endfor %}",
        GROWING + "n.x ~ n.x %}{% endfor %}",
        GROWING + "n.x * 9 %}{% endfor %}",
        GROWING + "9 * n.x %}{% endfor %}",
        GROWING + "n.x.replace('a', n.x) %}{% endfor %}",
        GROWING + "n.x | replace('a', n.x) %}{% endfor %}",
        GROWING + "n.x.join([n.x, n.x]) %}{% endfor %}",
        GROWING + "[n.x, n.x] | join(n.x) %}{% endfor %}",
        "{{ 'a' * 9999999999 }}",
        "{{ 'a'.ljust(9999999999) }}",
        "{{ 'a' | center(9999999999) }}",
        "{{ '%9999999999d' % 5 }}",
        "{{ '%9999999999d' | format(5) }}",
        "{{ '{:9999999999}'.format(5) }}",
        "{{ '{:{}}'.format(5, 9999999999) }}",
        "{{ 9 ** 99999999 }}",
        "{{ range(99999) | list | string * 99999 }}",
        NESTED + "{% endfor %}{{ n.x }}",
        NESTED + "{% endfor %}{{ n.x ~ 'a' }}",
        NESTED + "{% endfor %}{{ n.x | tojson }}",
        NESTED + "{% endfor %}{{ n.x | string }}",
        NESTED + "{% endfor %}{{ n.x | join }}",
        NESTED + "{% endfor %}{{ '%s' % n.x }}",
        NESTED + "{% endfor %}{{ '{}'.format(n.x) }}",
        *(TWINS + comparison for comparison in COMPARISONS),
        "{{ '%*d' % (99999999, 1) }}",
        "{{ '%(a)9999999999d' % {'a': 1} }}",
        "{{ ['%9999999999d'] | map('format', 5) | list }}",
        "{{ ('{:9999999999}' | attr('format'))(5) }}",
        "{{ '%.*f' % (99999999, 1) }}",
        "{{ '%*d' | format(99999999, 1) }}",
        "{{ ('a\n' * 9999) | indent(99999) }}",
        "{{ '{:{}}'.format(5, '>9999999999') }}",
        "{{ '{:{a}}'.format_map({'a': '>9999999999'}) }}",
        "{{ '{{{:9999999999}'.format(5) }}",
    ],
)
def test_template_that_would_not_end_is_refused(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "MAX_STEPS", bounded.MAX_STEPS // 10)
    with pytest.raises(LarderError) as caught:
        render(source)
    assert caught.value.code is ErrorCode.CHAT_TEMPLATE_INVALID


def test_template_lorem_ipsum_is_not_there() -> None:
    with pytest.raises(LarderError):
        render("{{ lipsum(99999999) }}")


def test_template_slow_machine_ends_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_STEPS", 10**12)
    ticks = itertools.count()
    environment = BoundedEnvironment(clock=lambda: float(next(ticks)))
    template = environment.from_string("{% for a in range(100) %}a{% endfor %}")
    environment.allowance.renew()
    with pytest.raises(bounded.TemplateTooLongError):
        template.render()


def test_template_each_rendering_has_all_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_STEPS", 310)
    template = ChatTemplate("{% for a in range(100) %}{{ a }}{% endfor %}", {})
    first = template.render([], False)
    assert first == "".join(map(str, range(100))) == template.render([], False)


def test_template_long_conversation_is_far_from_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded, "MAX_STEPS", bounded.MAX_STEPS // 3)
    source = (
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + (m.content | trim)"
        " | replace('\r\n', '\n') ~ '<|im_end|>' }}{% endfor %}"
    )
    messages = [{"role": "user", "content": "word " * 2000}] * 200
    text = ChatTemplate(source, {}).render(messages, True)
    assert len(text) > 200 * 9999


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{{ 'a' ~ 1 ~ none ~ true }}", "a1NoneTrue"),
        ("{{ missing ~ 'a' }}", "a"),
        ("{{ 2 + 3 }} {{ 2 * 3 }} {{ 2 ** 3 }} {{ 7 % 4 }}", "5 6 8 3"),
        ("{{ '%s-%02d' % ('a', 5) }}", "a-05"),
        ("{{ '{}-{:>3}'.format('a', 5) }}", "a-  5"),
        ("{{ [1, 2] + [3] }}", "[1, 2, 3]"),
        ("{{ messages[0].content.replace('l', 'L').split('e') | join('-') }}", "h-LLo"),
        ("{{ messages | map(attribute='role') | join }}", "user"),
        ("{{ messages | tojson }}", '[{"role": "user", "content": "hello"}]'),
        ("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m('x') ~ m('y') }}", "<x><y>"),
        ("{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{% endcall %}", "[x]"),
        ("{% for a in [1, 2] recursive %}{{ loop.index }}{{ a }}{% else %}n{% endfor %}", "1122"),
        ("{% for a in [] %}x{% else %}none{% endfor %}", "none"),
        (
            "{% for a in [1, 2, 3] %}{% if a == 2 %}{% continue %}{% endif %}{{ a }}{% endfor %}",
            "13",
        ),
        ("{% set x %}a{{ 1 }}{% endset %}{{ x ~ x }}", "a1a1"),
        ("{% filter upper %}a{{ 'b' }}{% endfilter %}", "AB"),
        ("{{ 'l' in messages[0].content and [1, [2]] == [1, [2]] and 1 < 2 <= 2 }}", "True"),
        ("{{ 3 in [1, 2] or [2, 1] | sort != [1, 2] }}", "False"),
        ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
        ("{{ '<' ~ messages[0].content ~ '>' if messages }}", "<hello>"),
    ],
)
def test_template_bounded_shows_what_the_plain_sandbox_shows(source: str, shown: str) -> None:
    assert render(source) == shown


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[0].content | string }}",
        "{{ messages[0].content | tojson }}",
        "{{ '{}'.format(messages[0].content) }}",
        '{{ \'{{"number": {}, "at": {:>3}}}\'.format(messages[0].content, 5) }}',
        "{{ '1234567 %s' % messages[0].content }}",
        "{{ '%s, %05.1f %%' | format(messages[0].content, 0.5) }}",
    ],
)
def test_large_number_that_a_person_types_is_not_a_width(source: str) -> None:
    assert "1234567 5% * 3" in render(source, "1234567 5% * 3 %*d {:{}}")

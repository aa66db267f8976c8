from hypothesis import given
from hypothesis import strategies as st

from runtime.generate.stopping import StopFilter

LETTERS = st.text("ab<", max_size=4)


def whole_answer(text: str, stops: list[str]) -> tuple[str, bool]:
    """What is shown of a text, looked at letter by letter from its beginning."""
    stops = [stop for stop in stops if stop]
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(map(len, found))], True
    return text, False


@given(pieces=st.lists(LETTERS, max_size=12), stops=st.lists(LETTERS, max_size=3))
def test_stop_filter_any_pieces_show_the_text_before_the_first_stop(
    pieces: list[str], stops: list[str]
) -> None:
    filtered = StopFilter(stops)
    shown = [filtered.feed(piece) for piece in pieces]
    shown.append(filtered.finish())

    assert ("".join(shown), filtered.is_stopped) == whole_answer("".join(pieces), stops)


def test_stop_filter_possible_beginning_is_held_back_until_certain() -> None:
    filtered = StopFilter(["END"])

    assert filtered.feed("the E") == "the "
    assert filtered.feed("N") == ""
    assert filtered.feed("E") == "EN"
    assert filtered.feed("ND of it") == ""
    assert filtered.is_stopped
    assert filtered.feed("more") == filtered.finish() == ""


def test_stop_filter_without_stops_passes_everything_at_once() -> None:
    filtered = StopFilter([])

    assert filtered.feed("anything") == "anything"
    assert filtered.finish() == ""
    assert not filtered.is_stopped

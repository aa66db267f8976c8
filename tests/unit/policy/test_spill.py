"""A card that becomes several times slower is noticed; hiccups and slow links are not."""

from runtime.policy.spill import WINDOW_STEPS, SpillWatch

USUAL_S, SLOW_S = 0.01, 0.05
LEARNT_STEPS = 4 * WINDOW_STEPS


def learnt() -> SpillWatch:
    """Return a watch that knows what is usual."""
    watch = SpillWatch()
    assert not any(watch.note(USUAL_S) for _ in range(LEARNT_STEPS))
    return watch


def test_rate_that_collapses_for_two_windows_is_noticed() -> None:
    watch = learnt()

    told = [watch.note(SLOW_S) for _ in range(2 * WINDOW_STEPS)]

    assert told == [False] * (2 * WINDOW_STEPS - 1) + [True]
    assert [watch.note(SLOW_S) for _ in range(WINDOW_STEPS)][-1]


def test_hiccup_between_usual_steps_is_none() -> None:
    watch = learnt()

    for _ in range(5):
        assert not any(watch.note(SLOW_S) for _ in range(WINDOW_STEPS))
        assert not any(watch.note(2 * USUAL_S) for _ in range(WINDOW_STEPS))


def test_card_that_is_slow_from_the_beginning_is_usual() -> None:
    watch = SpillWatch()

    assert not any(watch.note(SLOW_S) for _ in range(10 * WINDOW_STEPS))


def test_restart_learns_what_is_usual_anew() -> None:
    watch = learnt()
    watch.note(SLOW_S)

    watch.restart()

    assert not any(watch.note(SLOW_S) for _ in range(10 * WINDOW_STEPS))

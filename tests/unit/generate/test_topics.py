from runtime.generate.topics import WINDOW_TOKENS, TopicWatch
from runtime.telemetry.recorder import Counters


class Bench:
    """A watch over counters that a test moves window by window."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.told: list[int] = []
        self.watch = TopicWatch(self.counters, self.told.append)

    def windows(self, *misses: int) -> None:
        for number in misses:
            for _ in range(WINDOW_TOKENS):
                self.counters.num_decoded_tokens += 1
                self.watch.look()
            self.counters.expert_misses += number


def test_topic_watch_many_more_exchanges_than_usual_are_told_once() -> None:
    bench = Bench()
    bench.watch.begin_answer()
    bench.watch.look()

    bench.windows(20, 24, 18, 22, 20, 300, 300, 20)

    assert bench.told == [300]


def test_topic_watch_steady_or_rare_exchanges_are_not_told() -> None:
    bench = Bench()

    bench.windows(100, 110, 90, 100, 120, 150)
    bench.watch.forget()
    bench.windows(0, 0, 0, 0, 9, 9)

    assert bench.told == []


def test_topic_watch_nothing_is_unusual_before_it_knows_what_is_usual() -> None:
    bench = Bench()

    bench.windows(10, 400, 10)
    bench.watch.forget()
    bench.windows(500, 500, 500)

    assert bench.told == []


def test_topic_watch_reads_of_a_prompt_do_not_count() -> None:
    bench = Bench()
    bench.windows(20, 20, 20, 20)

    bench.watch.begin_answer()
    bench.counters.expert_misses += 1000
    bench.watch.look()
    bench.windows(20, 20)

    assert bench.told == []

from __future__ import annotations

from reprobuild.in_image.twice import hints, thread_hints
from reprobuild.twice import known_causes
from reprobuild.twice.known_causes import of_source


def test_the_recorder_s_words_for_lines_of_threads_are_known() -> None:
    assert thread_hints.FILLED == known_causes.FILLED
    told = (thread_hints.FILLED, thread_hints.CHANGED, hints.TAKEN, thread_hints.SHARED_GENERATOR)
    assert [known_causes.of_hint(each) for each in told] == [
        *(known_causes.THREADS, known_causes.THREADS, known_causes.TAKEN, known_causes.SHARED_GENERATOR)
    ]


def test_a_librarys_own_generator_is_not_seeded_by_pythons() -> None:
    remedy = of_source("draw", "random.Random.choice in faker.utils.distribution:76")
    assert remedy is not None
    assert "Faker.seed(SEED)" in remedy.remedy
    assert remedy != of_source("draw", "random.choice in networkx.utils:9")

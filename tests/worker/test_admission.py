"""Which page begins next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from desktop.protocol.messages import SubmitPage
from desktop.worker.admission import PATIENCE, Admission


def page(name: str, cost: int = 0, priority: int = 1) -> SubmitPage:
    return SubmitPage(name, "", 1, 1, settings={"cost": cost}, priority=priority)


class Engine:
    """As many pages as the admission lets it read."""

    def __init__(self, limit: int = 2, budget: int = 0, strict: bool = False) -> None:
        self.admission = Admission()
        self.running: dict[str, int] = {}
        self.limit, self.budget, self.strict = limit, budget, strict
        self.begun: list[str] = []
        self.priorities: dict[str, int] = {}

    def fill(self) -> list[str]:
        new = []
        while (one := self.admission.next(self.running, self.limit, self.strict, self.budget,
                                          lambda page: page.settings["cost"])) is not None:
            self.running[one.page_id] = one.settings["cost"] if self.budget else 0
            new.append(one.page_id)
            self.priorities[one.page_id] = one.priority
        self.begun += new
        return new

    def submit(self, *pages: SubmitPage) -> list[str]:
        for one in pages:
            self.admission.add(one)
        return self.fill()

    def end(self, name: str) -> list[str]:
        del self.running[name]
        return self.fill()


def test_in_order_of_priority_and_arrival() -> None:
    engine = Engine(limit=1, strict=True)
    assert engine.submit(page("a"), page("b"), page("c", priority=0), page("d")) == ["c"]
    assert engine.end("c") == ["a"]
    engine.admission.urge("d")
    engine.admission.urge("gone")
    assert engine.end("a") == ["d"]
    assert engine.admission.remove("b")
    assert not engine.admission.remove("b")
    assert engine.end("d") == []


def test_the_page_looked_at_begins_one_above_the_limit() -> None:
    engine = Engine(limit=2)
    assert engine.submit(page("a"), page("b"), page("c"), page("d"), page("e")) == ["a", "b"]
    engine.admission.urge("d")
    assert engine.fill() == ["d"]
    engine.admission.urge("e")
    assert engine.fill() == []  # one above, not two
    assert engine.end("a") == []
    assert engine.end("d") == ["e"]
    assert engine.end("b") == ["c"]
    assert engine.priorities == {"a": 1, "b": 1, "c": 1, "d": 0, "e": 0}


def test_a_limit_that_a_person_chose_is_kept() -> None:
    engine = Engine(limit=1, strict=True)
    engine.submit(page("a"), page("b"))
    engine.admission.urge("b")
    assert engine.fill() == []
    assert engine.end("a") == ["b"]


def test_a_large_page_is_overtaken_only_so_often() -> None:
    engine = Engine(limit=100, budget=100)
    assert engine.submit(page("half", 50), page("large", 80)) == ["half"]
    small = [page(f"s{number}", 1) for number in range(3 * PATIENCE)]
    assert len(engine.submit(*small)) == PATIENCE
    assert engine.end("half") == ["large"] + [f"s{PATIENCE + n}" for n in range(12)]


def test_nothing_overtakes_the_page_looked_at() -> None:
    engine = Engine(limit=100, budget=100)
    assert engine.submit(page("half", 50)) == ["half"]
    assert engine.submit(page("wanted", 80, priority=0), page("small", 1)) == []
    assert engine.end("half") == ["wanted", "small"]


def test_a_page_larger_than_the_budget_is_read_alone() -> None:
    engine = Engine(limit=9, budget=100)
    assert engine.submit(page("huge", 500), page("small", 1)) == ["huge"]
    assert engine.end("huge") == ["small"]
    assert engine.submit(page("huge", 500)) == []
    assert engine.end("small") == ["huge"]


def test_a_page_submitted_again_waits_for_its_cancelled_reading() -> None:
    engine = Engine(limit=9)
    engine.submit(page("a"))
    assert engine.submit(page("a"), page("b")) == ["b"]
    assert engine.end("a") == ["a"]


@given(st.lists(st.tuples(st.integers(1, 150), st.integers(0, 2), st.integers(0, 5)),
                max_size=60), st.integers(1, 6), st.booleans())
def test_none_starves_and_nothing_overflows(
        pages: list[tuple[int, int, int]], limit: int, strict: bool) -> None:
    engine = Engine(limit, 100, strict)
    waited: dict[str, int] = {}

    def check(new: list[str]) -> None:
        assert len(engine.running) <= limit + (not strict)
        assert len(engine.running) == 1 or sum(engine.running.values()) <= 100
        for name in waited:
            if name not in engine.begun:
                waited[name] += sum(one in ranks and ranks[one] >= ranks[name] for one in new)
                assert waited[name] <= PATIENCE

    ranks: dict[str, tuple[int, int]] = {}
    for number, (cost, priority, ends) in enumerate(pages):
        name = f"p{number}"
        ranks[name] = (priority, number)
        waited[name] = 0
        check(engine.submit(page(name, cost, priority)))
        for one in list(engine.running)[:ends]:
            check(engine.end(one))
    while engine.running:
        check(engine.end(next(iter(engine.running))))
    assert sorted(engine.begun) == sorted(ranks)  # all were read

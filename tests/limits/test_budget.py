"""A budget counts what was used when it was settled, and lets running calls hold the rest."""

from gateway.limits.budget import Budget


def test_what_is_held_and_what_is_spent_is_not_left() -> None:
    """A call holds what it asks for."""
    budget = Budget(1)
    assert budget.hold(100, 30) == 30
    budget.spend(50, 1)
    assert budget.left(100, 1) == 20


def test_a_call_holds_no_more_than_is_left() -> None:
    """So a large estimate does not make a small budget useless."""
    budget = Budget(1, 95)
    assert budget.hold(100, 10**9) == 5
    assert budget.hold(100, 10**9) == 0
    budget.spend(50, 1)
    assert budget.hold(100, 10) == 0


def test_another_window_begins_with_nothing_spent_and_what_running_calls_hold() -> None:
    """They will end in it."""
    budget = Budget(1, 95)
    budget.hold(100, 3)
    assert budget.left(100, 2) == 97
    budget.spend(3, 2)
    assert budget.spent(2) == 3


def test_the_books_replace_what_is_spent_and_not_what_is_held() -> None:
    """At start, and when the zone changes."""
    budget = Budget(1, 95)
    budget.hold(100, 3)
    budget.begin(2, 40)
    assert budget.left(100, 2) == 57

"""Calls of one kind that came to nothing, by the hundred: counted in one row, lest they fill the disk."""

from collections.abc import Iterator

from gateway.store import UsageRow

KEPT = 100  # of one kind, each with a row of its own


class Refusals:
    """What was refused, or failed without tokens, since the last `begin`, by key, model, route and reason."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str, str], int] = {}
        self._folded: dict[tuple[str, str, str, str], UsageRow] = {}

    def folds(self, row: UsageRow) -> bool:
        """Whether this row is one of many alike and was counted here, in the place of a row of its own."""
        if row.status < 400 or row.prompt_tokens or row.completion_tokens:
            return False
        kind = row.key, row.model, row.route, row.reason
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        if seen <= KEPT:
            return False
        folded = self._folded.get(kind)
        self._folded[kind] = row if folded is None else row._replace(requests=folded.requests + 1)
        return True

    def take(self) -> Iterator[UsageRow]:
        """A row for each kind with a count of what was folded since it was last taken."""
        folded, self._folded = self._folded, {}
        yield from folded.values()

    def begin(self) -> None:
        """From now on the first of each kind have rows of their own again."""
        self._seen.clear()

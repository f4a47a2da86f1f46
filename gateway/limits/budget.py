"""What one key has spent in the running day or month, and what its running calls hold of the rest."""

from collections.abc import Mapping


class Budget:
    """Tokens of one key in one window. What is spent counts for the window in which the call ended."""

    __slots__ = ("_spent", "_window", "held")

    def __init__(self, window: int, spent: int = 0) -> None:
        self._window = window
        self._spent = spent
        self.held = 0

    def spent(self, window: int) -> int:
        """Tokens of calls that ended in this window."""
        if window != self._window:
            self._window, self._spent = window, 0
        return self._spent

    def left(self, limit: int, window: int) -> int:
        """What is neither spent nor held; below zero after an overshoot or a lowered limit."""
        if window != self._window:
            self._window, self._spent = window, 0
        return limit - self._spent - self.held

    def hold(self, limit: int, tokens: int) -> int:
        """Hold so many, or what is left in the window last asked about; how many those are."""
        held = max(0, min(tokens, limit - self._spent - self.held))
        self.held += held
        return held

    def spend(self, tokens: int, window: int) -> None:
        """A call has ended that used so many."""
        if window != self._window:
            self._window, self._spent = window, 0
        self._spent += tokens

    def begin(self, window: int, spent: int) -> None:
        """So many are spent in this window, by the books; what is held stays held."""
        self._window, self._spent = window, spent


class Remembered:
    """What keys have spent in one window that have no account: not since the start, or not any more."""

    __slots__ = ("_spent", "_window")

    def __init__(self, window: int) -> None:
        self._window = window
        self._spent: dict[str, int] = {}

    def begin(self, window: int, spent: Mapping[str, int]) -> None:
        """What the books tell, by the key's id."""
        self._window, self._spent = window, dict(spent)

    def take(self, key_id: str, window: int) -> int:
        """What this key has spent in this window; it is remembered elsewhere from now on."""
        self._turn(window)
        return self._spent.pop(key_id, 0)

    def put(self, key_id: str, budget: Budget, window: int) -> None:
        """Remember what this key has spent, until the window is over."""
        self._turn(window)
        if spent := budget.spent(window):
            self._spent[key_id] = spent

    def __len__(self) -> int:
        return len(self._spent)

    def _turn(self, window: int) -> None:
        if window != self._window:
            self._window = window
            self._spent.clear()

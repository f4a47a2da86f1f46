"""One token bucket in whole numbers: it refills continuously and holds one minute's worth when full.

What is given back must not be worth more than it was: a call that took all and gives it back a minute
later, when the bucket has refilled by itself, would let the limit pass twice. The right value is known:
as though the call had never taken it. If `missing(t)` is what the bucket lacks, that is the least of
`missing` since the call took its part (the workload of a queue without one of its jobs). So what is
missing is kept as layers, the latest on top: refilling eats from the top, and a call gives back from its
own layer downwards, never from what came after it. Layers that nobody can give back from are joined to
those above them, so there are never more than calls running, and each is made and eaten once.
"""

MINUTE_NS = 60_000_000_000


class Layer:
    """Some of what a bucket lacks, in parts of a token. `claims`: how many calls may give back from here."""

    __slots__ = ("above", "below", "claims", "moved", "parts")

    def __init__(self, parts: int, claims: int, below: "Layer | None") -> None:
        self.parts = parts  # 0 once it is gone
        self.claims = claims
        self.below = below
        self.above: Layer | None = None
        self.moved: Layer | None = None  # where claims on a layer that is gone lie now

    def found(self) -> "Layer":
        """The layer that a claim on this one is worth now."""
        layer = self
        while (moved := layer.moved) is not None:
            if moved.moved is not None:
                layer.moved = moved.moved
            layer = moved
        return layer


class Bucket:
    """Tokens (or requests) of one key, `limit` a minute. Times are nanoseconds of one monotonic clock.

    A token has 60·10⁹ parts, so that each nanosecond brings back `limit` whole parts and nothing is rounded.
    """

    __slots__ = ("_at_ns", "_missing", "_top", "limit")

    def __init__(self, limit: int, now_ns: int) -> None:
        self.limit = limit
        self._at_ns = now_ns
        self._missing = 0
        self._top: Layer | None = None

    def has(self, tokens: int, now_ns: int) -> bool:
        """Whether so many are there now."""
        self._refill(now_ns)
        return self._missing <= (self.limit - tokens) * MINUTE_NS

    def wait_ns(self, tokens: int, now_ns: int) -> int:
        """How long until so many are there, 0 if they are now. More than the limit never are: ask before."""
        self._refill(now_ns)
        over = self._missing + (tokens - self.limit) * MINUTE_NS
        return -(-over // self.limit) if over > 0 else 0

    def take(self, tokens: int) -> "Claim":
        """Take so many, whether or not they are there, to settle later. As of the last time it was asked."""
        return Claim(self, tokens, self._lay(tokens * MINUTE_NS, 1) if tokens else None)

    def spend(self, tokens: int, now_ns: int) -> None:
        """Take so many for good, whether or not they are there."""
        self._refill(now_ns)
        self._lay(tokens * MINUTE_NS, 0)

    def remaining(self, now_ns: int) -> int:
        """Whole tokens that are there; 0 while it is below zero."""
        return self.standing(now_ns)[0]

    def standing(self, now_ns: int) -> tuple[int, int]:
        """Whole tokens that are there, 0 while it is below zero, and the nanoseconds until it is full."""
        self._refill(now_ns)
        missing = self._missing
        if not missing:
            return self.limit, 0
        return max(0, self.limit - -(-missing // MINUTE_NS)), -(-missing // self.limit)

    def change(self, limit: int, now_ns: int) -> None:
        """Another limit: it stays as full as it is, as a share."""
        self._refill(now_ns)
        before, self.limit = self.limit, limit
        self._missing, layer = 0, self._top
        while layer is not None:
            layer.parts = -(-layer.parts * limit // before)
            self._missing += layer.parts
            layer = layer.below

    def settle(self, claim: "Claim", used: int, now_ns: int) -> None:
        """So many were used of a claim, or beyond it; it is void afterwards.

        Under another limit since, they are the share of it that they were of the one before.
        """
        self._refill(now_ns)
        back = (claim.tokens - used) * MINUTE_NS
        if claim.limit != self.limit:
            back = back * self.limit // claim.limit
        layer = claim.layer
        if layer is not None and layer.moved is not None:
            layer = layer.found()
        if layer is not None and layer.parts:  # else refilled to the ground
            if back > 0:
                self._give_back(layer, back)
                layer = layer.found()
            self._release(layer)
        if back < 0:
            self._lay(-back, 0)

    def _refill(self, now_ns: int) -> None:
        passed_ns = now_ns - self._at_ns
        if passed_ns <= 0:
            return
        self._at_ns = now_ns
        if not self._missing:
            return
        left = min(passed_ns * self.limit, self._missing)
        self._missing -= left
        while left and (top := self._top) is not None:
            if top.parts > left:
                top.parts -= left
                return
            left -= top.parts
            self._drop(top)

    def _lay(self, parts: int, claims: int) -> Layer | None:
        """What is missing now is more by so many parts; the layer on which a claim to them lies."""
        if not parts:
            return None
        self._missing += parts
        top = self._top
        if top is not None and not top.claims:
            top.parts += parts
            top.claims = claims
            return top
        self._top = layer = Layer(parts, claims, top)
        if top is not None:
            top.above = layer
        return layer

    def _give_back(self, layer: Layer, parts: int) -> None:
        while parts and layer.parts:
            below = layer.below
            given = min(layer.parts, parts)
            parts -= given
            self._missing -= given
            layer.parts -= given
            if not layer.parts:
                self._drop(layer)
            if below is None:
                return
            layer = below

    def _release(self, layer: Layer) -> None:
        if not layer.parts:
            return  # given back to the ground: nothing is left to claim
        layer.claims -= 1
        above = layer.above
        if layer.claims or above is None:
            return
        above.parts += layer.parts
        above.below = layer.below
        if layer.below is not None:
            layer.below.above = above
        layer.below = layer.above = None

    def _drop(self, layer: Layer) -> None:
        """Take out a layer that is used up. Claims on it lie on the one below, or are worth nothing."""
        below, above = layer.below, layer.above
        layer.parts, layer.below, layer.above = 0, None, None
        if above is None:
            self._top = below
        else:
            above.below = below
        if below is not None:
            below.above = above
            below.claims += layer.claims
            layer.moved = below


class Claim:
    """What one call has taken from a bucket, and under which limit."""

    __slots__ = ("bucket", "layer", "limit", "tokens")

    def __init__(self, bucket: Bucket, tokens: int, layer: Layer | None) -> None:
        self.bucket = bucket
        self.tokens = tokens
        self.layer = layer
        self.limit = bucket.limit

    def settle(self, used: int, now_ns: int) -> None:
        """So many were used; call it once."""
        self.bucket.settle(self, used, now_ns)

"""What is changed in a request: pure functions from a parsed body to the body that the engine gets.

No I/O, no clock, no randomness here: the same body, model, key and settings give the same answer, be it
for a live call, a line of a batch or a question of the operator's.
"""

from gateway.policy.catalogue import Catalogue, Target, allows
from gateway.policy.prepare import Prepared, apply, explain
from gateway.policy.salts import Salts

__all__ = ["Catalogue", "Prepared", "Salts", "Target", "allows", "apply", "explain"]

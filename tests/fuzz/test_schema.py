"""schemathesis at the public port: data that fits a description of it, and data that does not."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from gateway.routes import OF_ENGINES
from tests.callers import MODEL
from tests.fake_engine import scripts
from tests.fuzz import schema
from tests.fuzz.gateways import Fuzzed

# Beside them each route gets some hundred cases that schemathesis takes from the description itself.
EXAMPLES, MANY_EXAMPLES = 3, 50
SEEDED = settings(phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))

described = schemathesis.openapi.from_dict(schema.document(MODEL, "default"))


@pytest.fixture
async def answered(fuzzed: Fuzzed) -> AsyncIterator[Fuzzed]:
    """The gateway before an engine that answers whatever it is asked; checked afterwards."""
    for route in OF_ENGINES:
        await fuzzed.engine.script(scripts.answer(b'{"object":"list","data":[]}'), path=route)
    yield fuzzed
    await fuzzed.check()


@described.parametrize()
@settings(SEEDED, max_examples=EXAMPLES)
def test_data_that_fits_the_description_and_that_does_not(
    case: schemathesis.Case[Any], answered: Fuzzed
) -> None:
    """Only documented statuses, errors in the route's shape, 405 with Allow; never a 5xx."""
    schema.call(case, answered.gateway.url, answered.key)


@pytest.mark.long
@described.parametrize()
@settings(SEEDED, max_examples=MANY_EXAMPLES)
def test_much_more_of_such_data(case: schemathesis.Case[Any], answered: Fuzzed) -> None:
    """The same, for longer."""
    schema.call(case, answered.gateway.url, answered.key)

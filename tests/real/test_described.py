"""schemathesis through the gateway at a real engine: whatever it makes of odd data, no fault is ours."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from tests.fuzz import schema
from tests.fuzz.gateways import complaints
from tests.real.conftest import Real
from tests.running import Gateway

EXAMPLES = 8
MODEL = "tiny-qwen3"
SERVED = [
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens",
    "/tokenize", "/detokenize",
]  # fmt: skip
FEW = {"max_tokens": 2, "max_completion_tokens": 2, "max_output_tokens": 2}

described = schemathesis.openapi.from_dict(schema.document(MODEL))
described.config.phases.coverage.enabled = False


@pytest.fixture(scope="module")
async def key(gateway: Gateway, real: Real) -> AsyncIterator[str]:
    """A key whose calls end soon; afterwards the gateway has complained of nothing."""
    assert real.tiny.model == MODEL
    before = len(complaints(gateway.log()))
    made = await gateway.create_key(name="described", force=FEW)
    yield made["key"]
    assert not complaints(gateway.log())[before:]


@described.include(path=SERVED).parametrize()
@settings(
    max_examples=EXAMPLES, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
def test_odd_data_at_a_real_engine(case: schemathesis.Case[Any], gateway: Gateway, key: str) -> None:
    """Answered, or refused with a documented status in the route's shape: never a 5xx."""
    schema.call(case, gateway.url, key)

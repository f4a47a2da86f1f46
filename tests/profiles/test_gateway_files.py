"""The gateway takes the settings of every profile, and does with them what the profile says."""

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.settings import load
from tests.profiles import files


@pytest.mark.parametrize("name", files.NAMES)
def test_loads(name: str) -> None:
    """One model on the engine of compose.yaml; what is warned of is only what a later version will act on."""
    loaded = load(files.gateway_file(name), {})
    [model] = loaded.settings.models
    assert model.engines == ("http://vllm:8000",)
    assert loaded.settings.policy.media == "data"
    assert loaded.settings.engine.keep_alive_seconds == 60
    assert [warning for warning in loaded.warnings if not warning.startswith("max_inflight of model")] == []


@pytest.mark.parametrize("name", files.NAMES)
def test_gateway_check_accepts_it(name: str) -> None:
    """What an operator would run says that it is valid."""
    result = CliRunner().invoke(app, ["check", str(files.gateway_file(name))], env={"GATEWAY_CONFIG": None})
    assert result.exit_code == 0, result.output
    assert f"model {files.serve(name)['served-model-name']} (also default" in result.output


@pytest.mark.parametrize("name", [name for name in files.NAMES if name != "cpu"])
def test_thinking_is_off_unless_asked_for(name: str) -> None:
    """Every Qwen answers at once by default; the chat profiles have a variant that thinks."""
    [model] = files.gateway(name)["models"]
    assert model["defaults"]["chat_template_kwargs"] == {"enable_thinking": False}
    assert ("thinking" in model.get("variants", {})) is (name != "spark-batch")

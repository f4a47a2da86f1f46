"""Nobody is left to believe in a limit that does not exist yet."""

from pathlib import Path

import pytest

from gateway.settings import load
from tests.settings.conftest import MODEL


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[admission]\nqueue_limit = 5\n", "admission"),
        ("[files]\nexpire_days = 5\n", "files"),
        ("[batches]\nmax_lines = 5\n", "batches"),
    ],
)
def test_a_setting_without_effect_is_warned_about_by_name(tmp_path: Path, text: str, name: str) -> None:
    """Whoever sets it hears so at the start and from `gateway check`."""
    file = tmp_path / "gateway.toml"
    file.write_text(text + MODEL)
    [warning] = load(file, {}).warnings
    assert warning.startswith(f"{name} is set")


def test_a_models_setting_without_effect_names_the_model(tmp_path: Path) -> None:
    """Which of several it is about is said too."""
    file = tmp_path / "gateway.toml"
    file.write_text(MODEL + "max_inflight = 8\n")
    [warning] = load(file, {}).warnings
    assert "max_inflight of model m" in warning


@pytest.mark.parametrize("table", ["defaults", "force", "variants.v.defaults"])
def test_kwargs_that_are_never_sent_are_warned_about(tmp_path: Path, table: str) -> None:
    """Where the model's tokenizer takes none."""
    file = tmp_path / "gateway.toml"
    file.write_text(
        MODEL
        + f"template_kwargs = false\n[models.{table}]\nchat_template_kwargs = {{ enable_thinking = false }}\n"
    )
    [warning] = load(file, {}).warnings
    assert "chat_template_kwargs of model m" in warning


def test_what_is_in_force_is_not_warned_about(tmp_path: Path) -> None:
    """A warning that is always there is read by nobody."""
    file = tmp_path / "gateway.toml"
    file.write_text(
        "[limits.default]\nrpm = 5\ntpm = 5\nmax_parallel = 5\ntokens_per_day = 5\ntokens_per_month = 5\n"
        '[budgets]\ntimezone = "Europe/Berlin"\n[usage]\nrollup_days = 5\ngpu_energy = "off"\n'
        '[log]\nrequests = "all"\n' + MODEL + 'cache_isolation = "none"\n'
    )
    assert load(file, {}).warnings == ()

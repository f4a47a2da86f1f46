"""Alertmanager's configuration for an ALERT_URL. Whoever calls this writes the files."""

from pathlib import Path

from deploy.alertmanager import receivers
from deploy.alertmanager.receivers import Smtp

TEMPLATE = Path(__file__).parent / "alertmanager.yml"
SECRETS = "/run/secrets"
_NOWHERE = "receivers: [{name: operator}]\n"


def render(alert_url: str, smtp: Smtp | None = None, secrets: str = SECRETS) -> str:
    """The text of secrets/alertmanager.yml, which holds no secret itself. Raises BadAlertUrl.

    It names `alert-url` (see `address`) and `smtp-password` in the folder `secrets` of its container.
    """
    target = receivers.receiver(alert_url)
    template = TEMPLATE.read_text(encoding="utf-8")
    # Between the words for who reads the template and the line that leads nowhere. A template without either
    # raises ValueError: it would send nothing, and nobody would know.
    rules = template[template.index("route:") : template.index(_NOWHERE)]
    receiver = receivers.block(target, smtp, secrets)
    return f"# Written by `make up` from ALERT_URL ({target.kind}).\n\n{rules}{receiver}"


def address(alert_url: str) -> str:
    """What secrets/alert-url must hold for it, without a line's end: a secret. Raises BadAlertUrl."""
    return receivers.receiver(alert_url).address

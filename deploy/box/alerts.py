"""`make alert-test`: a test alert on the way that real ones take, and whether it arrived."""

from collections.abc import Sequence

from deploy.alertmanager import trial
from deploy.box import docker
from deploy.box.places import Places
from deploy.box.watch import log_lines
from deploy.local.problem import Problem
from deploy.local.progress import step

NOWHERE = (
    "Alertmanager has no ALERT_URL to send to. To name one: rm secrets/alert-url secrets/alertmanager.yml, "
    "then ALERT_URL=https://ntfy.sh/TOPIC make up, then make alert-test."
)


def send(places: Places) -> None:
    """Sends it and says that it was taken at the other end. Raises Problem if it was not, or goes nowhere."""

    def execute(argv: Sequence[str]) -> str:
        return docker.answer(places, "compose", "exec", "-T", "alertmanager", *argv)

    with step("Sending a test alert"):
        outcome = trial.send(execute)
    if outcome == "nowhere":
        raise Problem(NOWHERE)
    if outcome == "failed":
        lines = log_lines(places, "alertmanager", 4)
        raise Problem("\n    ".join(["the alert was not taken at ALERT_URL. Alertmanager says:", *lines]))
    print(
        'Delivered: a message "TestAlert" is where ALERT_URL leads; within minutes a second one says that it '
        "is over."
    )

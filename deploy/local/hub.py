"""Asks a hub whether a model may be had, before gigabytes of it are. How they are fetched: `models`."""

from collections.abc import Mapping

import httpx

from deploy.local.problem import Problem

SECONDS = 20


def check(repository: str, token: str, environ: Mapping[str, str]) -> None:
    """Returns if one small file of it may be had. Raises Problem: out of reach, gated, not there."""
    hub = environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        url = f"{hub}/{repository}/resolve/main/config.json"
        status = httpx.get(url, headers=headers, follow_redirects=True, timeout=SECONDS).status_code
    except httpx.HTTPError as error:
        raise Problem(
            f"{hub} is out of reach ({error}), so {repository} cannot be downloaded: mend the network, or "
            "name a folder that holds a model. Nothing was changed."
        ) from error
    if status in {401, 403}:
        raise Problem(
            f"{repository} is gated, or not there: accept its terms at {hub}/{repository}, and set HF_TOKEN "
            "to a token that may read it. Nothing was changed."
        )
    if status != 200:
        raise Problem(f"{hub} answers with status {status} for {repository}. Nothing was changed.")

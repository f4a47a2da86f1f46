"""Asks a hub whether a model may be had, before gigabytes of it are. How they are fetched: `models`."""

from collections.abc import Mapping

import httpx

from deploy.local.problem import Problem

SECONDS = 20
HUB = "https://huggingface.co"
PROXIES = ("all_proxy", "https_proxy", "http_proxy")
CERTIFICATES = ("ssl_cert_file", "ssl_cert_dir")


def check(repository: str, token: str, environ: Mapping[str, str]) -> None:
    """Returns if one small file of it may be had. Raises Problem: out of reach, gated, not there.

    So it does where the environment names a proxy or certificates that cannot be used.
    """
    hub = (environ.get("HF_ENDPOINT") or HUB).rstrip("/")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        status = _status(f"{hub}/{repository}/resolve/main/config.json", headers, environ)
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


def _status(url: str, headers: Mapping[str, str], environ: Mapping[str, str]) -> int:
    try:
        return httpx.get(url, headers=headers, follow_redirects=True, timeout=SECONDS).status_code
    except ImportError as error:
        raise Problem(
            f"{_named(environ, PROXIES)} names a SOCKS proxy, and those are not spoken to here: name one "
            "that speaks HTTP, as in http://host:3128. Nothing was changed."
        ) from error
    except OSError as error:
        raise Problem(
            f"{_named(environ, CERTIFICATES)} names certificates that cannot be read ({error}): name a PEM "
            "file that is there, or unset it. Nothing was changed."
        ) from error
    except (ValueError, httpx.InvalidURL) as error:
        named = _named(environ, ("hf_endpoint", *PROXIES, "no_proxy"))
        raise Problem(
            f"{named} holds no address that can be used: write it as in http://host:3128. "
            "Nothing was changed."
        ) from error


def _named(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Which of these variables are set, as they are spelled."""
    found = [name for name in environ if name.lower() in names and environ[name]]
    return " or ".join(found) or "The environment"

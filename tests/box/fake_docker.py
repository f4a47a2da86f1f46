"""A `docker` for the tests, run as a program of its own: it answers from a folder, its volumes are folders.

`FAKE_DOCKER` names the folder. `machine.json` says what the daemon and its Compose are, `stack.json` what the
compose files come to, `containers.json` what runs; `calls` gets a line for each call. `fails_while` are
failures by what .env says then; one that is called `SIGINT` is Ctrl-C instead, for whoever runs it. What real
containers do is tested with a real engine elsewhere.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(os.environ["FAKE_DOCKER"])


def read(name: str, otherwise: Any = None) -> Any:
    """A JSON file of the folder."""
    file = HERE / name
    return json.loads(file.read_text()) if file.exists() else otherwise


def say(text: str) -> None:
    """What docker prints."""
    sys.stdout.write(f"{text}\n")


def fail(message: str, code: int = 1) -> None:
    """Ends as docker does."""
    sys.stderr.write(f"{message}\n")
    sys.exit(code)


def main(argv: list[str]) -> None:
    """One command."""
    with (HERE / "calls").open("a") as calls:
        instead = [f"PROFILE_FILE={os.environ['PROFILE_FILE']}"] if "PROFILE_FILE" in os.environ else []
        calls.write(json.dumps([*instead, *(word for word in argv if len(word) < 200)]) + "\n")
    machine = read("machine.json", {})
    if "trouble" in machine and argv[0] != "compose":
        fail(machine["trouble"])
    for words, message in machine.get("fails", {}).items():
        if words in " ".join(argv):
            fail(message)
    for said, fails in machine.get("fails_while", {}).items():
        for words, message in fails.items():
            if said in Path(".env").read_text() and words in " ".join(argv):
                if message == "SIGINT":
                    os.kill(os.getppid(), signal.SIGINT)
                fail(message)
    COMMANDS[argv[0]](argv[1:], machine)


def version(_argv: list[str], machine: dict[str, Any]) -> None:
    say(machine["engine"])


def info(_argv: list[str], machine: dict[str, Any]) -> None:
    say(json.dumps(machine["info"]))


def ps(_argv: list[str], _machine: dict[str, Any]) -> None:
    say("\n".join(item["Id"] for item in read("containers.json", [])))


def inspect(argv: list[str], _machine: dict[str, Any]) -> None:
    say(json.dumps([item for item in read("containers.json", []) if item["Id"] in argv]))


def network(argv: list[str], _machine: dict[str, Any]) -> None:
    networks = read("networks.json", [])
    say("\n".join(item["Name"] for item in networks) if argv[0] == "ls" else json.dumps(networks))


def image(argv: list[str], _machine: dict[str, Any]) -> None:
    if argv[0] == "inspect" and argv[-1] in read("machine.json").get("absent", []):
        fail(f"Error: No such image: {argv[-1]}")
    say("vllm-gateway:0.1.0")


def tag(_argv: list[str], _machine: dict[str, Any]) -> None:
    """Nothing is kept of it but the call."""


def volume(argv: list[str], _machine: dict[str, Any]) -> None:
    folder = HERE / "volumes"
    there = sorted(item.name for item in folder.iterdir()) if folder.exists() else []
    if argv[0] == "ls":
        say("\n".join(there))
    elif argv[0] == "rm":
        for name in argv[1:]:
            shutil.rmtree(folder / name)
    elif argv[1] not in there:
        fail("Error: No such volume")


def run(argv: list[str], _machine: dict[str, Any]) -> None:
    """A program on a volume: by this Python, on the volume's folder."""
    [source] = [word.split("source=")[1].split(",")[0] for word in argv if "source=" in word]
    program = argv[argv.index("-c") + 1 : -1]
    folder = HERE / "volumes" / source
    sys.exit(subprocess.run([sys.executable, "-c", *program, str(folder)], check=False).returncode)


def compose(argv: list[str], machine: dict[str, Any]) -> None:
    while argv and argv[0] == "--profile":
        argv = argv[2:]
    if argv[0] == "version":
        say(machine["compose"]) if machine.get("compose") else fail(
            "docker: 'compose' is not a docker command."
        )
    elif argv[0] == "config":
        config(argv)
    elif argv[0] == "exec":
        execute(argv[argv.index("-T") + 1 :])
    elif argv[0] == "up" and "--no-start" in argv:
        for name in ("gateway-data", "caddy-data"):
            (HERE / "volumes" / f"vllm-gateway_{name}").mkdir(parents=True, exist_ok=True)
    elif argv[0] == "logs":
        say(machine.get("log", "\x1b[2Kthe last words of a service"))


def config(argv: list[str]) -> None:
    stack = read("stack.json")
    if "--services" in argv:
        say("\n".join(stack["services"]))
    elif "--images" in argv:
        say("\n".join(service["image"] for service in stack["services"].values()))
    elif "--hash" in argv:
        say(f"{argv[-1]} the-hash")
    else:
        say(json.dumps(stack))


def execute(argv: list[str]) -> None:
    """In the gateway's container: its own command, on the data of the volume."""
    if argv[:2] == ["gateway", "gateway"]:
        environ = {**os.environ, "GATEWAY_DATA_DIR": str(HERE / "volumes" / "vllm-gateway_gateway-data")}
        program = Path(sys.executable).with_name("gateway")
        sys.exit(subprocess.run([program, *argv[2:]], env=environ, check=False).returncode)
    if argv[:2] == ["gateway", "python3"]:
        sys.exit(subprocess.run([sys.executable, *argv[2:]], check=False).returncode)
    if argv == ["vllm", "cat", "/proc/1/comm"]:
        say(read("machine.json").get("engine_process", "vllm"))
    if argv[0] == "caddy":
        fail("cat: can't open: No such file or directory")


COMMANDS = {
    "version": version,
    "info": info,
    "ps": ps,
    "inspect": inspect,
    "network": network,
    "image": image,
    "tag": tag,
    "volume": volume,
    "run": run,
    "compose": compose,
}

if __name__ == "__main__":
    main(sys.argv[1:])

"""`python -m tests.planner.record`: writes down what the vLLM that is installed answers to all cases.

And what its configuration classes hold, which is the planner's own table of defaults.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.planner import answers, cases


def main() -> None:
    """One line for each case and each class, so that a change of vLLM is read in a diff."""
    with tempfile.TemporaryDirectory() as folder:
        found = answers.ask(cases.every(), Path(folder))
        held = answers.ask_defaults(Path(folder))
    wrong = {name: answer["error"] for name, answer in found.items() if "error" in answer}
    assert not wrong, wrong
    lines = [f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found)]
    answers.RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    said = answers.DEFAULTS.read_text(encoding="utf-8").partition("\n\n")[0]
    table = [f"{name} = {{ {_fields(held[name])} }}" for name in sorted(held)]
    answers.DEFAULTS.write_text(f"{said}\n\n" + "\n".join(table) + "\n", encoding="utf-8")


def _fields(of: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in of.items())


if __name__ == "__main__":
    main()

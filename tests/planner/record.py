"""`python -m tests.planner.record`: writes down what the vLLM that is installed answers to all cases."""

import json
import tempfile
from pathlib import Path

from tests.planner import answers, cases


def main() -> None:
    """One line for each case, so that a change of vLLM is read in a diff."""
    with tempfile.TemporaryDirectory() as folder:
        found = answers.ask(cases.every(), Path(folder))
    assert not any("error" in answer for answer in found.values()), found
    lines = [f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found)]
    answers.RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

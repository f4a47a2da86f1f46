# mypy: disable-error-code="import-not-found"
# vLLM is installed beside the engine alone.
"""What vLLM's own `serve` parser makes of configuration files: ask_parser.py ANSWERS-FILE CONFIG….

Run by the engine's Python, once for all files: importing vLLM takes most of the time.
"""

import argparse
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.entrypoints.launchers.launcher import validate_api_server_args
from vllm.reasoning import ReasoningParserManager
from vllm.utils.argparse_utils import FlexibleArgumentParser


def answer(parser: argparse.ArgumentParser, file: str) -> dict[str, Any]:
    """A file's accepted `values` and the `folder` of its weights, or the `error` that would end the start."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            args = parser.parse_args(["serve", "--config", file])
            ServeSubcommand().validate(args)
            validate_api_server_args(args)
            if args.reasoning_parser:
                ReasoningParserManager.get_reasoning_parser(args.reasoning_parser)
            folder = AsyncEngineArgs.from_cli_args(args).model
    except SystemExit:
        return {"error": said.getvalue()}
    except (ValueError, TypeError, KeyError) as error:
        return {"error": repr(error)}
    return {"values": vars(args), "folder": folder, "said": said.getvalue()}


def main(answers: Path, configs: list[str]) -> None:
    """Writes one JSON object: file to answer. Enumerations are given by name."""
    parser = FlexibleArgumentParser(prog="vllm")
    ServeSubcommand().subparser_init(parser.add_subparsers(dest="subparser"))
    found = {file: answer(parser, file) for file in configs}
    answers.write_text(json.dumps(found, default=lambda value: getattr(value, "name", str(value))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

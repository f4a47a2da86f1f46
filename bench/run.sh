#!/bin/sh
# Our gateway beside nginx and the prototype p8, in one run of the load kit in BENCH_KIT.
#   BENCH_KIT=folder BENCH_PROTO=venv [BENCH_BEFORE=checkout] bench/run.sh [-w W1,W3] [-r 5] [arguments of bench.py run]
# The kit: an engine mock and a client in C, `bench.py`, the prototypes. BENCH_PROTO: a virtual environment with
# uvicorn, uvloop, httptools and orjson for them. BENCH_BEFORE: another checkout of ours, as the contender `before`.
set -eu
: "${BENCH_KIT:?is the folder of the load kit (bench.py, mock_engine.c, load.c)}"
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
: "${PYTHON:=$here/.venv/bin/python}" "${BENCH_BEFORE:=}"
: "${BENCH_CONTENDERS:=direct,nginx,p8,gateway${BENCH_BEFORE:+,before}}"
before=${BENCH_BEFORE:-$here}
cat >"$out/extra.json" <<JSON
{"gateway": {"cmd": ["$here/bench/contender.sh"], "port": 9400, "args": ["-k", "Bearer sk-bench-0123456789abcdef"],
             "env": {"PYTHON": "$PYTHON", "PYTHONPATH": "$here"}, "cwd": "$out"},
 "before": {"cmd": ["$here/bench/contender.sh"], "port": 9401, "args": ["-k", "Bearer sk-bench-0123456789abcdef"],
            "env": {"PYTHON": "$PYTHON", "PYTHONPATH": "$before", "PORT": "9401"}, "cwd": "$out"}}
JSON
export BENCH_EXTRA="$out/extra.json" BENCH_BUILD="$out/build" PYTHONDONTWRITEBYTECODE=1
python3 "$BENCH_KIT/bench.py" run -o "$out/results.json" -c "$BENCH_CONTENDERS" "$@"
python3 "$BENCH_KIT/bench.py" report "$out/results.json"

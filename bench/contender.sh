#!/bin/sh
# Our gateway as a contender of a load kit: keys on, everything on, before the engine at UPSTREAM.
#   PORT=9400 UPSTREAM=http://127.0.0.1:9100 KEY=sk-bench-0123456789abcdef PYTHON=.venv/bin/python bench/contender.sh
set -eu
: "${PORT:=9400}" "${UPSTREAM:=http://127.0.0.1:9100}" "${KEY:=sk-bench-0123456789abcdef}" "${PYTHON:=python3}"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
export GATEWAY_DATA_DIR="$data" GATEWAY_UPSTREAM_URL="$UPSTREAM" GATEWAY_PORT="$PORT" GATEWAY_OPS_PORT="$((PORT + 500))"
export GATEWAY_LOG_FORMAT=json
unset GATEWAY_CONFIG
# Limits that are never reached cost what limits cost.
"$PYTHON" -m gateway keys create --name bench --key "$KEY" --rpm 1000000 --tpm 1000000000 \
  --max-parallel 100000 --tokens-per-day 1000000000000 --tokens-per-month 1000000000000 --json >/dev/null
exec "$PYTHON" -m gateway serve

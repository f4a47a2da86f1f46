#!/bin/sh
# The health check of the engine's container: 0 when its model answers. vLLM listens only once the model is loaded,
# so one success ends the count of failed starts (start.sh).

: "${START_NOTES:=/cache/starts}"
: "${HEALTH_HOST:=127.0.0.1}" "${HEALTH_PORT:=8000}" # vLLM's own default; `port` in a profile must not differ

# Straight there: a proxy named in the container's environment knows nothing of it.
if command -v curl >/dev/null; then
    curl -sS --fail --noproxy '*' --max-time 8 -o /dev/null "http://$HEALTH_HOST:$HEALTH_PORT/health" || exit 1
else
    python3 -c '
import http.client, sys
call = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=8)
try:
    call.request("GET", "/health")
    status = call.getresponse().status
except OSError as error:
    sys.exit(f"no answer: {error}")
sys.exit(None if status == 200 else f"status {status}")' "$HEALTH_HOST" "$HEALTH_PORT" || exit 1
fi
rm -f "$START_NOTES"

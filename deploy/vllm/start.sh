#!/bin/sh
# The entrypoint of the engine's container: notes each start, and holds back the third in a row that never became
# healthy. Docker restarts without end, and some thirty failed starts wedge a DGX Spark until its power is cut.
# healthy.sh and `make up` clear the notes.

: "${START_NOTES:=/cache/starts}" # one line a start: its Unix time
: "${START_WINDOW_SECONDS:=1800}"
: "${START_PAUSE_SECONDS:=1800}"
: "${START_LIMIT:=3}"

# How many starts the notes hold that lie in the window. A note from the future is of a clock that was wrong.
recent_starts() {
    now=$(date +%s)
    count=0
    while read -r at; do
        case $at in '' | *[!0-9]*) continue ;; esac
        if [ "$at" -le "$now" ] && [ $((now - at)) -lt "$START_WINDOW_SECONDS" ]; then count=$((count + 1)); fi
    done
    echo "$count"
}

# Process 1 has no default handlers, and only a background job can be waited for in a way that a signal interrupts.
# So `docker compose stop` ends the wait at once.
say_and_wait() {
    trap 'kill "$!" 2>/dev/null; exit 0' TERM INT
    echo "vllm: this is start $1 within $((START_WINDOW_SECONDS / 60)) minutes, and none of those before became" \
        "healthy. A loop of failed starts can wedge the machine, so this one waits $((START_PAUSE_SECONDS / 60))" \
        "minutes first. What failed is in the lines above: \`make logs\` shows them. Mend it, then \`make up\`: that" \
        "clears these notes and starts at once." >&2
    sleep "$START_PAUSE_SECONDS" &
    wait "$!"
    trap - TERM INT
}

this=$(($(recent_starts 2>/dev/null <"$START_NOTES" || echo 0) + 1))
if [ "$this" -ge "$START_LIMIT" ]; then
    say_and_wait "$this"
    rm -f "$START_NOTES" # not before: a container that is stopped while it waits will wait again
fi

# Before the start, since a machine that wedges writes nothing afterwards.
if ! date +%s >>"$START_NOTES"; then
    echo "vllm: $START_NOTES cannot be written as user $(id -u):$(id -g), and nothing would stop a loop of failed" \
        "starts without it: \`make up\` makes the cache volume writable." >&2
    exit 1
fi
exec vllm serve "$@"

#!/bin/sh
# The entrypoint of the engine's container: notes each start, and holds back the third in a row that never became
# healthy. Docker restarts without end, and some thirty failed starts wedge a DGX Spark until its power is cut.
# healthy.sh and `make up` clear the notes.

: "${START_NOTES:=/cache/starts}" # one line a start: its Unix time
: "${START_WINDOW_SECONDS:=1800}"
: "${START_PAUSE_SECONDS:=1800}"
: "${START_LIMIT:=3}"

# Without notes nothing would stop a loop, so what can be none is refused: a FIFO would be waited for, for ever.
refuse_notes() {
    echo "vllm: $START_NOTES cannot be written as user $(id -u):$(id -g), and nothing would stop a loop of failed" \
        "starts without it: \`make up\` makes the cache volume writable." >&2
    exit 1
}

# How many starts the notes hold that lie in the window. A note from the future is of a clock that was wrong.
# The last bytes are enough, and all that is read of a file that grew to gigabytes.
recent_starts() {
    tail -c 4000 "$START_NOTES" | count_recent
}
count_recent() {
    now=$(date +%s)
    count=0
    while read -r at || [ -n "$at" ]; do
        case $at in '' | *[!0-9]*) continue ;; esac
        at=${at#"${at%%[!0]*}"} # with a leading zero it would be octal
        [ ${#at} -gt 0 ] && [ ${#at} -le 12 ] || continue # longer than a time, and than some shells can count
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

if [ -e "$START_NOTES" ] && { [ ! -f "$START_NOTES" ] || [ ! -r "$START_NOTES" ]; }; then refuse_notes; fi
this=$(($(recent_starts 2>/dev/null) + 1))
if [ "$this" -ge "$START_LIMIT" ]; then
    say_and_wait "$this"
    rm -f "$START_NOTES" # not before: a container that is stopped while it waits will wait again
fi

# Before the start, since a machine that wedges writes nothing afterwards.
# A last line without its end, as a full disk leaves it, would swallow this note.
if [ -n "$(tail -c 1 "$START_NOTES" 2>/dev/null)" ]; then echo >>"$START_NOTES"; fi
date +%s >>"$START_NOTES" || refuse_notes
exec vllm serve "$@"

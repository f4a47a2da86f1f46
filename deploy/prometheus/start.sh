#!/bin/sh
# Prometheus cannot read the environment, so this lists what only SITE can tell, then becomes Prometheus.
set -euf

targets=${TARGETS_DIR:-/tmp/targets}
mkdir -p "$targets"

# One of several names is enough to see that Caddy answers. They are written as deploy/caddy/start.sh reads them.
set_name() {
	name=${1:-off}
}
set_name $(printf '%s' "${SITE:-}" | tr 'A-Z,\t\n' 'a-z   ')
case $name in
*[!0-9a-f:]*) ;;
*:*:*) name="[$name]" ;;
esac

caddy='[]' site='[]'
if [ "$name" != off ]; then
	caddy='[{targets: ["caddy:9180"]}]'
	site="[{targets: [\"https://caddy:443/healthz\"], labels: {__param_hostname: \"$name\"}}]"
fi
printf '%s\n' "$caddy" >"$targets/caddy.yml"
printf '%s\n' "$site" >"$targets/site.yml"

exec prometheus "$@"

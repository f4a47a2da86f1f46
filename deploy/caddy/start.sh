#!/bin/sh
# Sorts the names in SITE by who certifies them, refuses what can be no name, and starts Caddy with the result.
# With an argument it does that instead of `run`: `adapt` and `validate` check a SITE without serving it.
set -euf

# One line of what was written, whatever that holds.
shown() {
	printf '%s' "$1" | LC_ALL=C tr '\001-\037\177' '?'
}

refuse() {
	printf '%s Mend it in .env, then: make up\n' "$(shown "$1")" >&2
	exit 1
}
refuse_site() {
	refuse "SITE=$SITE: $1"
}

# grep judges line by line, so a line's end in the text would let the rest of it be anything.
matches() {
	is_plain "$1" && printf '%s\n' "$1" | grep -qxE "$2"
}
is_plain() {
	[ "$(printf '%s' "$1" | LC_ALL=C tr -d '\001-\037\177' && echo .)" = "$1." ]
}

BYTE='(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
LABEL='[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'

# Whether this is a name or an address that a certificate can be made out to.
is_address() {
	matches "$1" "($BYTE\.){3}$BYTE" || matches "$1" '\[[0-9a-f:]*:[0-9a-f:]*:[0-9a-f:]*\]'
}
is_name() {
	matches "$1" "($LABEL\.)*$LABEL" && ! matches "${1##*.}" '[0-9]+' && [ ${#1} -le 253 ]
}

# Names that no public authority certifies: addresses, single labels, and endings that the public DNS does not have.
kind() {
	case $1 in
	*.ts.net) echo tailscale ;;
	*.lan | *.local | *.internal | *.home.arpa | *.localhost | *.localdomain | *.home | *.corp | *.intranet | \
		*.private | *.test | \[*) echo lan ;;
	*.*) if is_address "$1"; then echo lan; else echo public; fi ;;
	*) echo lan ;;
	esac
}

SITE=${SITE:-}
SITES='' SITE_NAMES='' ADDRESS=''
for name in $(printf '%s' "$SITE" | tr 'A-Z,\t\n' 'a-z   '); do
	case $name in
	off) refuse_site "'off' means that no Caddy is started, so it stands alone and its service stays out." ;;
	[0-9a-f:]*:*:*) case $name in *[!0-9a-f:]*) ;; *) name="[$name]" ;; esac ;;
	esac
	is_address "$name" || is_name "$name" ||
		refuse_site "'$name' is no host name. Write names alone, as in SITE=spark.lan: no https://, no port, no path."
	case " $SITE_NAMES " in *" $name "*) continue ;; esac
	if is_address "$name"; then
		[ -z "$ADDRESS" ] || refuse_site "one address is all that works: a client that calls an address does not say which."
		ADDRESS=$name
	fi
	SITES="$SITES
import $(kind "$name") $name"
	SITE_NAMES="${SITE_NAMES:+$SITE_NAMES }$name"
done
[ -n "$SITES" ] || refuse_site "it names nothing. Write the name that clients will call, as in SITE=spark.lan."

# The address without brackets: that is how it stands in the certificate.
DEFAULT_NAME=$(printf '%s' "${ADDRESS:-${SITE_NAMES%% *}}" | tr -d '[]')

matches "${HTTPS_PORT:=443}" '[1-9][0-9]{0,4}' && [ "$HTTPS_PORT" -le 65535 ] ||
	refuse "HTTPS_PORT=$HTTPS_PORT: this is no port, which is a number from 1 to 65535."
SITE_PORT=":$HTTPS_PORT"
[ "$SITE_PORT" != :443 ] || SITE_PORT=''

EMAIL_OPTION=''
if [ -n "${ACME_EMAIL:-}" ]; then
	matches "$ACME_EMAIL" '[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+' ||
		refuse "ACME_EMAIL=$ACME_EMAIL: this is no e-mail address."
	EMAIL_OPTION="email $ACME_EMAIL"
fi

export SITES SITE_NAMES DEFAULT_NAME SITE_PORT EMAIL_OPTION
exec caddy "${1:-run}" --config "${CADDYFILE:-/etc/caddy/Caddyfile}" --adapter caddyfile

#!/bin/sh
# Makes docs/console.png, and console-light.png and console-plain.png (NO_COLOR) beside it, from the real program: the demo in tmux,
# captured with its colours. Needs tmux, aha and chromium.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'tmux -L fdpicture kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
go build -o "$work/fleetdeck" .

capture() { tmux -L fdpicture capture-pane -t p "$@"; }

# shows waits until a line of the screen matches, and gives up after a minute.
shows() {
	for _ in $(seq 300); do
		if capture -p | grep -q "$1"; then return; fi
		sleep 0.2
	done
	echo "picture.sh: the console does not show '$1':" >&2
	capture -p >&2
	exit 1
}

# picture NAME BACKGROUND FOREGROUND [VARIABLE=VALUE]: the console in a terminal of these colours, with the
# tree selected whose agent asks.
picture() {
	echo "set -g window-style 'bg=$2,fg=$3'" >"$work/$1.conf"
	tmux -L fdpicture -f "$work/$1.conf" new-session -d -x 120 -y 36 -s p "env ${4-} $work/fleetdeck demo"
	shows 'docs .* waiting'
	tmux -L fdpicture send-keys -t p j j
	shows 'Which database shall I use? *$'
	# aha does not know the bright colours beside a background, and its white is grey on a light one.
	capture -epN | sed 's/\x1b\[97m/\x1b[38;5;231m/g' | aha $([ "$2" = black ] && echo --black) |
		sed 's/<pre>/<pre style="font:13px\/1.15 DejaVu Sans Mono,monospace;margin:10px">/' >"$work/$1.html"
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=970,570 --screenshot="$PWD/docs/$1.png" "$work/$1.html" >/dev/null 2>&1
	tmux -L fdpicture send-keys -t p q
	while tmux -L fdpicture has-session 2>/dev/null; do sleep 0.2; done
}

picture console black white
picture console-light white black
picture console-plain black white NO_COLOR=1

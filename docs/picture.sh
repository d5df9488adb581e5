#!/bin/sh
# Makes docs/console.png from the real program: the demo in tmux, captured with its colours. Needs tmux, aha and chromium.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'tmux -L fdpicture kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
go build -o "$work/fleetdeck" .
tmux -L fdpicture -f /dev/null new-session -d -x 120 -y 36 -s p "$work/fleetdeck demo"
until tmux -L fdpicture capture-pane -p -t p | grep -q 'waiting for you'; do sleep 0.2; done
tmux -L fdpicture send-keys -t p j j
until tmux -L fdpicture capture-pane -p -t p | grep -q 'Which database shall I use? *$'; do sleep 0.2; done
# aha does not know the bright colours beside a background: white is white enough here.
tmux -L fdpicture capture-pane -epN -t p | sed 's/\x1b\[97m/\x1b[37m/g' | aha --black |
	sed 's/<pre>/<pre style="font:13px\/1.15 DejaVu Sans Mono,monospace;margin:10px">/' >"$work/console.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=970,570 --screenshot="$PWD/docs/console.png" "$work/console.html" >/dev/null 2>&1
tmux -L fdpicture send-keys -t p q
while tmux -L fdpicture has-session -t p 2>/dev/null; do sleep 0.2; done

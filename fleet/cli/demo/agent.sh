#!/bin/sh
# A demo agent: a real process that boots slowly, works, asks, finishes or crashes. It speaks to the fleet the way any
# agent can: by running "fleetdeck report".
set -u
kind=${1:-work}
say() { printf '\033[36m%s\033[0m %s\n' "$(date +%H:%M:%S)" "$*"; }
report() { "$FLEETDECK_EXE" report "$@"; }

say "booting: $kind on $(basename "$FLEETDECK_TREE") as $FLEETDECK_ROLE"
if [ "$kind" = broken ]; then
	sleep 0.3
	say "no credentials: giving up"
	exit 3
fi
sleep "${DEMO_BOOT:-3}"
report working --message "reading the charter"
say "charter: $(head -n 1 "$FLEETDECK_CHARTER_FILE")"
[ -s "$FLEETDECK_TASK_FILE" ] && say "task: $(cat "$FLEETDECK_TASK_FILE")"

step=0
while [ "$step" -lt "${DEMO_STEPS:-1000}" ]; do
	step=$((step + 1))
	say "step $step: looking at $(git log --oneline | wc -l | tr -d ' ') commits on $(git branch --show-current)"
	case $kind-$step in
	crash-3)
		say "something that nobody foresaw"
		exit 70
		;;
	ask-2)
		report waiting --message "Which database shall I use?"
		printf 'Which database shall I use? '
		read -r answer
		say "taking $answer"
		report working --message "using $answer"
		;;
	finish-3)
		printf 'step %s\n' "$step" >>NOTES.md
		report done --message "all done"
		exit 0
		;;
	esac
	sleep 1
done

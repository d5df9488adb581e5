/*
 * The protocol by which fleetdeck staffs trees, for the model checker SPIN. docs/model.md says which function of the program
 * each step is, what was searched, and what is left out.
 *
 * Every process can be delayed for ever between two of its steps: that is a pause. Dispatchers, keeper, holders and the daemon can also
 * be killed there. What survives them is kept apart from what does not: files are global and stay, what was in the daemon's memory
 * goes with it. Time has no length, only order: a clock of its own lets each grace run out at any moment after it began.
 *
 * Bounds and mutants are macros: spin -DKEEPER=2 -DNO_FENCE -a fleetdeck.pml
 */

#ifndef DISPATCHERS
#define DISPATCHERS 2	/* of one order each; their reservation ids are 1, 2, … */
#endif
#ifndef KEEPER
#define KEEPER 0	/* attempts that the keeper has for its one task; their ids come after those of the dispatchers */
#endif
#ifndef SCRIPT
#define SCRIPT 0	/* the dispatcher that is a foreign script, which does not ask for the roster; 0 is none */
#endif
#ifndef CRASHES
#define CRASHES 1	/* how often the daemon is killed */
#endif
#ifndef KILLS
#define KILLS 1		/* how often the keeper is killed */
#endif
#ifndef SPLIT
#define SPLIT 0		/* 1: the first dispatcher wants a tree of its own, so that only slots are in dispute */
#endif
#ifndef LIMITED
#define LIMITED 0	/* 1: every role needs the one slot there is */
#endif

#define IDS (DISPATCHERS + KEEPER)
#define TREES (1 + SPLIT)

#if IDS > 4
#error "four ids are the most"
#endif

/* The invariants: what a counterexample ends with. */
#define ONE_HOLDER "BROKEN: members, launches and standing reservations of a tree are one at most\n"
#define ONE_WORKER "BROKEN: a tree has one living worker at most, and none once it is given to somebody else\n"
#define ONE_SLOT "BROKEN: a slot has one holder at most, and who was admitted with one gets it\n"
#define FOUR_REASONS "BROKEN: an entry goes because it is listed, refused, released by hand or out of its grace\n"
#define LICENCE "BROKEN: nobody is admitted whose reservation does not stand\n"
#define ONE_AGENT "BROKEN: one id, and one task of the keeper, starts one agent at most\n"
#define REFUSED_IS_NOTHING "BROKEN: what was told to be refused does not run and never will\n"
#define NOBODY_LATE "BROKEN: nobody who is not confirmed outlives its grace, whether or not a daemon runs\n"
#define NOTHING_LEAKS "BROKEN: at rest no tree, slot, entry or lock is held for nobody\n"

/* A grace, in the order in which its parts run out. The holder's deadline comes before the reservation's. */
mtype:grace = { unreserved, running, due, expired, ancient };

/* A record of the registry. It is durable, and nobody sees it before it is. Accepted and booting are one here. */
mtype:step = { unknown, launching, listed, exited, failed };

/* A holder and its agent. */
mtype:holder = {
	none,		/* nothing was started, or provably nothing came of it */
	spawned,	/* the holder runs, its agent does not yet */
	works,		/* the agent runs */
	ending,		/* being ended: nothing confirms it any more, and it may still run */
	orphan,		/* the holder was killed, and the agent runs on */
	over		/* the agent and all that it started are gone */
};

/* A spawn request within the daemon, and what came of an order. */
mtype:request = { idle, sent, looked, held };
mtype:answer = { nothing, yes, no, stale, launch_failed, lost, unsure };

/* The daemon's one goroutine for each record that is not over. */
mtype:tender = { untended, finding, waiting, listing, watching, stopping };

/* ---- what is on disk, or is a process of its own ---- */
byte entry[TREES];		/* the reservation file: an id for each tree, or 0 */
byte lock;			/* the admission lock: its holder, 0 if it is free */
mtype:step step[IDS + 1];	/* the registry */
mtype:holder holder[IDS + 1];
bool confirmed[IDS + 1];	/* the holder's deadline is off, by the holder's own record */
mtype:grace grace[IDS + 1];
bool queued;			/* the keeper's task is in its queue */
byte attempt;			/* the id that stands beside the task in the queue, 0 if none */

/* ---- what goes with the daemon ---- */
bool up;
bool down_for_good;
byte slot;			/* the pool, of one slot: the id that it is reserved for or bound to */
mtype:request request[2 * (IDS + 1)];
mtype:tender tender[IDS + 1];

/* ---- what goes with a dispatcher ---- */
byte awaited[IDS + 1];		/* which of its requests it waits for: 1, 2, or 0 for none */
mtype:answer answer[IDS + 1];

/* ---- what only the invariants look at ---- */
bool refused[IDS + 1];		/* somebody was told that nothing of this order runs or will */
bool started[IDS + 1];		/* an agent was started */
bool task_started;
byte entry_gone;		/* for the moment of a step */
byte stray;			/* agents that run on no record; only a mutant has them */

#define MUST(condition, words) \
	if \
	:: condition \
	:: else -> printf(words); assert(false) \
	fi

#if SPLIT
#define tree(i) (i == 1)	/* 1 for the first dispatcher, 0 for everybody else */
#else
#define tree(i) 0
#endif
#define UNKNOWN(i) (step[i] == unknown)
#define of_keeper(i) (i > DISPATCHERS)

#define PRESENT(i) (step[i] == launching || step[i] == listed)
#define LIVES(i) (holder[i] == works || holder[i] == ending || holder[i] == orphan)
#define LISTED(i) (step[i] == listed || step[i] == exited)
#define EXPIRED(i) (grace[i] == expired || grace[i] == ancient)
#define DUE(i) (grace[i] == due || EXPIRED(i))
#define ON(i, t) (i <= IDS && tree(i) == t)

/* whether an id other than self is by the roster on tree t; whether a worker other than self's lives there */
#if IDS == 1
#define ROSTER(t, self) (self != 1 && PRESENT(1))
#define WORKER(t, self) (self != 1 && LIVES(1))
#elif IDS == 2
#define ROSTER(t, self) ((self != 1 && ON(1, t) && PRESENT(1)) || (self != 2 && ON(2, t) && PRESENT(2)))
#define WORKER(t, self) ((self != 1 && ON(1, t) && LIVES(1)) || (self != 2 && ON(2, t) && LIVES(2)))
#elif IDS == 3
#define ROSTER(t, self) ((self != 1 && ON(1, t) && PRESENT(1)) || (self != 2 && ON(2, t) && PRESENT(2)) || \
	(self != 3 && ON(3, t) && PRESENT(3)))
#define WORKER(t, self) ((self != 1 && ON(1, t) && LIVES(1)) || (self != 2 && ON(2, t) && LIVES(2)) || \
	(self != 3 && ON(3, t) && LIVES(3)))
#else
#define ROSTER(t, self) ((self != 1 && ON(1, t) && PRESENT(1)) || (self != 2 && ON(2, t) && PRESENT(2)) || \
	(self != 3 && ON(3, t) && PRESENT(3)) || (self != 4 && ON(4, t) && PRESENT(4)))
#define WORKER(t, self) ((self != 1 && ON(1, t) && LIVES(1)) || (self != 2 && ON(2, t) && LIVES(2)) || \
	(self != 3 && ON(3, t) && LIVES(3)) || (self != 4 && ON(4, t) && LIVES(4)))
#endif

/* whether the entry of tree t holds it: its worker is not listed, and its grace is not over */
#define STANDS(t) (entry[t] != 0 && !LISTED(entry[t]) && !EXPIRED(entry[t]))
#define DROPPABLE(t) (entry[t] != 0 && (LISTED(entry[t]) || EXPIRED(entry[t])))

/* who holds the lock */
#define THE_DAEMON 100
#define THE_KEEPER 101

/* What is over is told from what else is over no more than it must be, so that there are fewer states. */
inline tidy(i) {
	if
	:: entry[tree(i)] != i && !PRESENT(i) ->
		if :: grace[i] != ancient -> grace[i] = expired :: else fi;
		confirmed[i] = false
	:: else
	fi
}

#define REASON(i) (LISTED(i) || step[i] == failed || refused[i] || EXPIRED(i))

/* an entry goes, or another takes its place */
inline end_entry(t) {
	if
	:: entry[t] == 0
	:: else ->
		MUST(REASON(entry[t]), FOUR_REASONS);
		entry_gone = entry[t];
		entry[t] = 0;
		tidy(entry_gone);
		entry_gone = 0
	fi
}

/* ------------------------------------------------------------------ time */

/* Time that nobody looks at does not pass. Between expired and ancient lies whatever the daemon remembers an ended record for. */
proctype Clock(byte i) {
end:
	do
	:: d_step { grace[i] == running && PRESENT(i) -> printf("clock: the deadline of launch %d passes\n", i); grace[i] = due }
	:: d_step { (grace[i] == due || (grace[i] == running && !PRESENT(i))) && (entry[tree(i)] == i || PRESENT(i)) ->
		printf("clock: the grace of reservation %d runs out\n", i); grace[i] = expired }
#if KEEPER
	:: d_step { grace[i] == expired && attempt == i && (step[i] == exited || step[i] == failed) ->
		printf("clock: attempt %d is long ago\n", i); grace[i] = ancient }
#endif
	od
}

/* ------------------------------------------------------------------ a holder, which outlives the daemon */

proctype Holder(byte i) {
end:
	do
	:: d_step { holder[i] == spawned -> printf("holder %d: ends before it starts the agent: out of time, killed, no terminal\n", i); holder[i] = none }
	/* Its deadline may pass between its last look at the time and the start: that is why it looks again. */
	:: d_step { holder[i] == spawned ->
		printf("holder %d: starts the agent\n", i);
		MUST(!WORKER(tree(i), 0) && stray == 0 && !ROSTER(tree(i), i) && step[i] == launching, ONE_WORKER);
		MUST(!started[i] && !(of_keeper(i) && task_started), ONE_AGENT);
		MUST(!refused[i], REFUSED_IS_NOTHING);
		started[i] = true;
		if :: of_keeper(i) -> task_started = true :: else fi;
		holder[i] = works }
	/* That an agent ends by itself may wait for a daemon, so that at rest one is seen that does not. */
	:: d_step { holder[i] == works && (up || confirmed[i]) -> printf("holder %d: the agent exits\n", i); holder[i] = over }
#ifndef HOLDER_NO_DEADLINE
	:: d_step { holder[i] == works && DUE(i) && !confirmed[i] -> printf("holder %d: its deadline has passed\n", i); holder[i] = ending }
#endif
	:: d_step { holder[i] == ending -> printf("holder %d: the agent is ended\n", i); holder[i] = over }
	:: d_step { (holder[i] == works || holder[i] == ending) && !down_for_good -> printf("holder %d: is killed, its agent is not\n", i); holder[i] = orphan }
	od
}

/* ------------------------------------------------------------------ the daemon */

inline reply(i, k, what) {
	request[2 * i + k] = idle;
	if
	:: awaited[i] == k + 1 -> answer[i] = what
	:: else	/* nobody listens any more */
	fi
}

#ifdef NO_FENCE
#define LICENSED(i) true
#else
#define LICENSED(i) (entry[tree(i)] == i && !EXPIRED(i))
#endif

#ifdef ADMIT_BLIND
#define SOMEBODY(i) false
#else
#define SOMEBODY(i) ROSTER(tree(i), 0)
#endif

/* The k-th request of the order i. */
proctype Admit(byte i; byte k) {
end:
	do
	/* The reservation is known: what became of it is the answer. */
	:: d_step { request[2 * i + k] == sent && !UNKNOWN(i) ->
		printf("daemon: reservation %d came before, and is %e\n", i, step[i]);
		if
		:: step[i] == failed -> reply(i, k, launch_failed)
		:: else -> reply(i, k, yes)
		fi }
	/* A name, the command or the tree is not right, or the lock stays busy. */
	:: d_step { request[2 * i + k] == sent && UNKNOWN(i) -> printf("daemon: refuses %d without a look at who is there\n", i); reply(i, k, no) }
#ifdef LOOKED_UP_BEFORE_LOCK
	:: d_step { request[2 * i + k] == sent && UNKNOWN(i) -> request[2 * i + k] = looked }
	:: d_step { request[2 * i + k] == looked && lock == 0 ->
#else
	:: d_step { request[2 * i + k] == sent && UNKNOWN(i) && lock == 0 ->
#endif
		if
		:: !LICENSED(i) -> printf("daemon: the reservation %d does not stand\n", i); reply(i, k, stale)
		:: LICENSED(i) && SOMEBODY(i) -> printf("daemon: refuses %d, somebody is there\n", i); reply(i, k, no)
#if LIMITED
		:: LICENSED(i) && !SOMEBODY(i) && slot != 0 -> printf("daemon: refuses %d, the slot is taken\n", i); reply(i, k, no)
#endif
		:: else ->
			printf("daemon: may admit %d, and holds the lock\n", i);
			lock = THE_DAEMON;
#if LIMITED && !defined(SLOT_CHECK_ONLY)
			slot = i;
#endif
			request[2 * i + k] = held
		fi }
	/* Killed after the record and before the answer, it is like an answer that is lost. */
	:: d_step { request[2 * i + k] == held ->
		printf("daemon: has launch %d on record, and accepts\n", i);
		MUST(entry[tree(i)] == i, LICENCE);
		MUST(!STANDS(tree(i)) || entry[tree(i)] == i, ONE_HOLDER);
		MUST(!ROSTER(tree(i), i), ONE_HOLDER);
		MUST(!WORKER(tree(i), 0), ONE_WORKER);
		MUST(!refused[i], REFUSED_IS_NOTHING);
		step[i] = launching;
		holder[i] = none;	/* a member of its own, with a holder of its own */
		lock = 0;
		tender[i] = finding;
		reply(i, k, yes) }
	:: d_step { request[2 * i + k] == held ->
		printf("daemon: cannot record launch %d\n", i);
#if LIMITED && !defined(RELEASE_MISSING)
		slot = 0;
#endif
		lock = 0;
		reply(i, k, no) }
	od
}

/* The record says so first, the slot is free second; killed between them the pool is made anew. */
inline ended(i, how) {
	step[i] = how;
	tender[i] = untended;
#if LIMITED && !defined(RELEASE_MISSING)
	if :: slot == i -> slot = 0 :: else fi;
#endif
	tidy(i)
}

#define FOUND(i) (holder[i] == works || holder[i] == ending || holder[i] == over)

/* What carries the record i to its end. */
proctype Tender(byte i) {
end:
	do
	/* Its terminal is started, or found again by a later daemon; a holder that is only beginning is waited for. */
	:: d_step { tender[i] == finding && holder[i] == none && !DUE(i) -> printf("tender %d: starts a holder\n", i); holder[i] = spawned }
	:: d_step { tender[i] == finding && holder[i] == none -> printf("tender %d: cannot start a holder\n", i); ended(i, failed) }
	:: d_step { tender[i] == finding && FOUND(i) && step[i] == launching -> printf("tender %d: found its launch\n", i); tender[i] = waiting }
	:: d_step { tender[i] == finding && FOUND(i) && step[i] == listed -> printf("tender %d: found its member\n", i); tender[i] = watching }
	:: d_step { tender[i] == finding && holder[i] == orphan ->
		printf("tender %d: its holder was killed, so it ends the agent\n", i);
		holder[i] = over;
		if
		:: step[i] == launching -> ended(i, failed)
		:: else -> ended(i, exited)
		fi }

	/* A launch that is ready is confirmed by its holder, which alone decides whether that came before its deadline. */
	:: d_step { tender[i] == waiting -> printf("tender %d: gives up: not ready, out of time, stopped\n", i); tender[i] = stopping }
	:: d_step { tender[i] == waiting && holder[i] == works && (confirmed[i] || !DUE(i)) ->
		printf("holder %d: its deadline is off\n", i); confirmed[i] = true; tender[i] = listing }

	:: d_step { tender[i] == listing -> printf("tender %d: no answer to the confirmation, or no room to record it\n", i); tender[i] = stopping }
	:: d_step { tender[i] == listing ->
		printf("tender %d: lists its member\n", i);
#if LIMITED
#ifdef SLOT_CHECK_ONLY
		if :: slot == 0 -> slot = i :: else fi;
#endif
		MUST(slot == i, ONE_SLOT);
#endif
		MUST(!ROSTER(tree(i), i), ONE_HOLDER);
		MUST(!refused[i], REFUSED_IS_NOTHING);
		step[i] = listed;
		tender[i] = watching }

	:: d_step { tender[i] == watching && (holder[i] == over || holder[i] == orphan) ->
		printf("tender %d: its member has ended\n", i); holder[i] = over; ended(i, exited) }

	/* The processes go first, the record second. */
#ifdef FREED_BEFORE_ENDED
	:: d_step { tender[i] == stopping -> printf("tender %d: records the failure and does not wait\n", i); ended(i, failed) }
#endif
#ifdef ERROR_IS_GONE
	:: d_step { (tender[i] == stopping || tender[i] == watching) && holder[i] == works ->
		printf("tender %d: gets no answer and takes its terminal for gone\n", i);
		if
		:: step[i] == launching -> ended(i, failed)
		:: else -> ended(i, exited)
		fi }
#endif
	:: d_step { tender[i] == stopping && holder[i] == works -> printf("holder %d: is told to end its agent\n", i); holder[i] = ending }
	:: d_step { tender[i] == stopping && (holder[i] == over || holder[i] == orphan) ->
		printf("tender %d: nothing of it runs, and it records the failure\n", i); holder[i] = over; ended(i, failed) }
	od
}

/* Drops the reservation of a launch that is listed or has failed, by its id, whenever the lock is free. */
proctype Settler(byte i) {
#ifdef SETTLE_NO_ID
	bool done;
#endif
end:
	do
#ifdef SETTLE_NO_ID
	:: d_step { up && lock == 0 && !done && (LISTED(i) || step[i] == failed) ->
		printf("daemon: settles the tree of reservation %d\n", i); done = true; end_entry(tree(i)) }
#else
	:: d_step { up && lock == 0 && entry[tree(i)] == i && (LISTED(i) || step[i] == failed) ->
		printf("daemon: settles reservation %d\n", i); end_entry(tree(i)) }
#endif
	od
}

/* The daemon is killed: what it had in memory is gone, what it held of the lock is free. */
inline forget(i) {
	request[2 * i] = idle;
	request[2 * i + 1] = idle;
#ifdef LAUNCH_NOT_DURABLE
	if
	:: step[i] == launching ->
		if :: LIVES(i) -> stray++ :: else fi;
		step[i] = unknown;
		holder[i] = none
	:: else
	fi;
#endif
	tender[i] = untended
}

/* The next daemon takes over: slots first, then a tender for each record that is not over. */
inline take_over(i) {
	if
	:: PRESENT(i) ->
#if LIMITED
		MUST(slot == 0, ONE_SLOT);
		slot = i;
#endif
		tender[i] = finding
	:: else
	fi
}

#if IDS == 1
#define EACH(f) f(1)
#elif IDS == 2
#define EACH(f) f(1); f(2)
#elif IDS == 3
#define EACH(f) f(1); f(2); f(3)
#else
#define EACH(f) f(1); f(2); f(3); f(4)
#endif

proctype Daemon() {
	byte crashes = 0;
end:
	do
	:: d_step { up && crashes < CRASHES ->
		printf("daemon: is killed\n");
		crashes++;
		up = false;
		slot = 0;
		if :: lock == THE_DAEMON -> lock = 0 :: else fi;
		EACH(forget) }
	:: d_step { !up && !down_for_good ->
		printf("daemon: is started again\n");
		EACH(take_over);
		up = true }
	:: d_step { !up && !down_for_good -> printf("daemon: nobody starts it again\n"); down_for_good = true }
	od
}

#if KEEPER
/* An ended record is dropped once nobody may need it. */
proctype Memory(byte i) {
end:
	do
#ifdef FORGOTTEN_TOO_SOON
	:: d_step { up && (step[i] == exited || step[i] == failed) && EXPIRED(i) ->
#else
	:: d_step { up && (step[i] == exited || step[i] == failed) && grace[i] == ancient ->
#endif
		printf("daemon: forgets record %d\n", i); step[i] = unknown }
	od
}
#endif

/* ------------------------------------------------------------------ dispatchers */

/*
 * A dispatch from first to last. It takes the lock, reads the file, asks for the roster, writes, unlocks; sends; and drops the entry
 * if it was refused. answer is what it came to: yes, no, launch_failed, or unsure. If it is killed it goes on at the caller's label
 * dead, without the lock, which the system has let go.
 */
inline dispatch(i, who) {
	if
#ifdef ROSTER_BEFORE_LOCK
	:: d_step { up -> printf("dispatcher %d: asks for the roster without the lock\n", i); free = !ROSTER(tree(i), 0) };
		if
		:: d_step { lock == 0 -> printf("dispatcher %d: takes the lock and reads the file\n", i); lock = who; free = free && !STANDS(tree(i)) }
		:: goto dead
		fi
#else
	:: d_step { lock == 0 && up ->
		printf("dispatcher %d: takes the lock, reads the file, asks for the roster\n", i);
		lock = who;
		free = entry[tree(i)] == 0 || EXPIRED(entry[tree(i)]) || (LISTED(entry[tree(i)]) && i != SCRIPT);
		free = free && (i == SCRIPT || !ROSTER(tree(i), 0)) }
#endif
	:: d_step { (lock != 0 || !up) -> answer[i] = no }; goto finished	/* busy or out of reach: nothing was reserved */
	:: goto dead
	fi;
	if
	:: d_step { !free -> printf("dispatcher %d: is refused, the tree is not free\n", i); lock = 0; answer[i] = no }; goto finished
	:: d_step { free ->
		printf("dispatcher %d: writes its reservation\n", i);
		free = false;
		if
		:: i != SCRIPT ->
			MUST(!STANDS(tree(i)) && !ROSTER(tree(i), 0), ONE_HOLDER);
			MUST(!WORKER(tree(i), 0), ONE_WORKER)
		:: else
		fi;
		end_entry(tree(i));
		entry[tree(i)] = i;
		grace[i] = running;
		lock = 0 }
	:: d_step { true -> printf("dispatcher %d: is killed holding the lock\n", i); lock = 0 }; goto dead
	fi;
	if
	:: d_step { up -> printf("dispatcher %d: sends\n", i); request[2 * i] = sent; awaited[i] = 1 }
	:: d_step { !up -> printf("dispatcher %d: cannot send\n", i); answer[i] = no }; goto settle
	:: goto dead
	fi;
	if
	:: d_step { answer[i] != nothing -> awaited[i] = 0; if :: answer[i] == stale -> answer[i] = no :: else fi }
	:: d_step { true -> printf("dispatcher %d: the answer is lost\n", i); answer[i] = lost; awaited[i] = 0 }
	:: goto dead
	fi;
	if
	:: answer[i] != lost
	:: d_step { answer[i] == lost && up && !EXPIRED(i) ->
		printf("dispatcher %d: sends again\n", i); request[2 * i + 1] = sent; awaited[i] = 2; answer[i] = nothing };
		if
		:: d_step { answer[i] != nothing ->
			awaited[i] = 0;
#ifdef LATER_REFUSAL_IS_PROOF
			if :: answer[i] == stale -> answer[i] = unsure :: else fi
#else
			if :: answer[i] != yes -> answer[i] = unsure :: else fi
#endif
			}
		:: d_step { true -> printf("dispatcher %d: the answer is lost again\n", i); answer[i] = unsure; awaited[i] = 0 }
		:: goto dead
		fi
	:: d_step { answer[i] == lost -> printf("dispatcher %d: asks no more\n", i); answer[i] = unsure }
	fi;
	if
	:: answer[i] == yes || answer[i] == unsure -> goto finished
	:: else
	fi;
settle:
	atomic {
		printf("dispatcher %d: is refused\n", i);
		MUST(!PRESENT(i) && !LIVES(i), REFUSED_IS_NOTHING);
		refused[i] = true
	};
	if
	:: d_step { lock == 0 ->
		printf("dispatcher %d: drops its reservation\n", i);
#ifdef SETTLE_NO_ID
		end_entry(tree(i))
#else
		if :: entry[tree(i)] == i -> end_entry(tree(i)) :: else fi
#endif
		}
	:: lock != 0	/* busy: it stays until its grace runs out */
	:: goto dead
	fi;
finished:
	skip
}

/* It is gone, and nothing is told to it any more. */
inline bury(i) {
	atomic { free = false; awaited[i] = 0; answer[i] = nothing }
}

proctype Dispatcher(byte me) {
	bool free;
	dispatch(me, me);
dead:
	bury(me)
}

#if KEEPER
/* The keeper with one task in its queue, killed and started again KILLS times. */
proctype Keeper() {
	bool free, out_of_grace;
	byte kills = 0, id, seen, next = DISPATCHERS + 1;

look:
end:
	/* A pass that would only wait is left out. */
	if
	:: !queued -> goto done
	:: d_step { queued && up && (attempt == 0 || !UNKNOWN(attempt) || entry[tree(attempt)] != attempt || EXPIRED(attempt)) ->
		printf("keeper: reads the file\n"); seen = (attempt != 0 -> entry[0] == attempt : false) }
	fi;
	/* The file first, the clock second, the daemon third. */
	out_of_grace = EXPIRED(attempt);
	if
	:: d_step { up && attempt != 0 && !UNKNOWN(attempt) -> printf("keeper: attempt %d was made\n", attempt); queued = false; attempt = 0 }; goto done
	:: d_step { up && attempt != 0 && UNKNOWN(attempt) && grace[attempt] == ancient ->
		printf("keeper: nobody remembers attempt %d, so it gives up\n", attempt); queued = false; attempt = 0 }; goto done
	:: d_step { up && attempt != 0 && UNKNOWN(attempt) && grace[attempt] != ancient && seen && !out_of_grace -> seen = false }; goto look
	:: d_step { up && (attempt == 0 || (UNKNOWN(attempt) && grace[attempt] != ancient && (!seen || out_of_grace))) -> seen = false; out_of_grace = false }
	:: d_step { !up -> seen = false; out_of_grace = false }; goto look
	fi;
	if
	:: next > IDS -> goto done	/* the bound of the model */
	:: d_step { next <= IDS -> id = next; next++;
#ifndef ID_WRITTEN_AFTER
		printf("keeper: writes the id %d beside its task\n", id); attempt = id
#endif
		}
	fi;
	dispatch(id, THE_KEEPER);
#ifdef ID_WRITTEN_AFTER
	if
	:: attempt = id
	:: goto dead
	fi;
#endif
	if
	:: d_step { answer[id] == yes -> printf("keeper: takes the task out of the queue\n"); queued = false; attempt = 0 }
#ifdef ANSWER_LOST_NEW_ID
	:: d_step { answer[id] == unsure -> printf("keeper: will try again\n"); attempt = 0 }
#else
	:: answer[id] == unsure	/* the next pass asks */
#endif
	:: d_step { answer[id] == no -> printf("keeper: will try again\n"); attempt = 0 }
	:: d_step { answer[id] == launch_failed -> if :: UNKNOWN(id) -> attempt = 0 :: else fi }
	:: goto dead
	fi;
	bury(id);
	goto look;
dead:
	bury(id);
	if
	:: d_step { kills < KILLS -> printf("keeper: is killed, and started again\n"); kills++; seen = false; out_of_grace = false }; goto look
	:: kills == KILLS
	fi;
done:
	atomic { id = 0; seen = false; out_of_grace = false }
}
#endif

/* ------------------------------------------------------------------ pruner and operator */

proctype Pruner() {
	byte snapshot[TREES];
	bool read;
end:
	do
#ifdef PRUNE_NO_LOCK
	:: d_step { !read && up && (DROPPABLE(0)
#if SPLIT
		|| DROPPABLE(1)
#endif
		) ->
		printf("pruner: reads the file\n");
		snapshot[0] = (DROPPABLE(0) -> 0 : entry[0]);
#if SPLIT
		snapshot[1] = (DROPPABLE(1) -> 0 : entry[1]);
#endif
		read = true }
	:: d_step { read ->
		printf("pruner: writes what it read, without what may go\n");
		if :: snapshot[0] != entry[0] -> end_entry(0); entry[0] = snapshot[0] :: else fi;
#if SPLIT
		if :: snapshot[1] != entry[1] -> end_entry(1); entry[1] = snapshot[1] :: else fi;
#endif
		read = false }
#else
	:: d_step { up && lock == 0 && DROPPABLE(0) -> printf("pruner: drops %d\n", entry[0]); end_entry(0) }
#if SPLIT
	:: d_step { up && lock == 0 && DROPPABLE(1) -> printf("pruner: drops %d\n", entry[1]); end_entry(1) }
#endif
#endif
	od
}

proctype Operator() {
end:
	do
	:: d_step { lock == 0 && entry[0] != 0 && !REASON(entry[0]) -> printf("operator: releases %d\n", entry[0]); entry[0] = 0 }
	od
}

/* ------------------------------------------------------------------ rest */

inline at_rest(i) {
	MUST(!(LIVES(i) && !confirmed[i] && holder[i] != orphan), NOBODY_LATE);
	if
	:: up ->
		MUST(!LIVES(i), NOBODY_LATE);
		MUST(!PRESENT(i) && tender[i] == untended, NOTHING_LEAKS);
		MUST(request[2 * i] == idle && request[2 * i + 1] == idle, NOTHING_LEAKS)
	:: else
	fi
}

/* When nothing can move any more: every agent has exited, every grace has run out. */
proctype Rest() {
	atomic { timeout ->
		MUST(lock == 0, NOTHING_LEAKS);
		EACH(at_rest);
		if
		:: up ->
			MUST(slot == 0 && entry[0] == 0, NOTHING_LEAKS);
#if SPLIT
			MUST(entry[1] == 0, NOTHING_LEAKS)
#endif
		:: else
		fi }
}

inline begin(i) {
	step[i] = unknown;
	holder[i] = none;
	grace[i] = unreserved;
	request[2 * i] = idle;
	request[2 * i + 1] = idle;
	tender[i] = untended;
	answer[i] = nothing;
	run Clock(i);
	run Holder(i);
	run Admit(i, 0);
	run Admit(i, 1);
	run Tender(i);
	run Settler(i)
}

init {
	atomic {
		up = true;
		step[0] = unknown;
		grace[0] = unreserved;
		EACH(begin);
		run Daemon();
		run Pruner();
		run Operator();
#if DISPATCHERS
		run Dispatcher(1);
#endif
#if DISPATCHERS > 1
		run Dispatcher(2);
#endif
#if DISPATCHERS > 2
		run Dispatcher(3);
#endif
#if KEEPER
		queued = true;
		run Memory(DISPATCHERS + 1);
#if KEEPER > 1
		run Memory(DISPATCHERS + 2);
#endif
		run Keeper();
#endif
		run Rest()
	}
}

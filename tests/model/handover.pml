/* The queue of one lock, its leases, and the hand-over by message: a server that runs the
 * scripts of src/rules/lua, three owners that behave as src/lock/keeper.c does, and a
 * network that fails. README.md says what is modelled, what is not, and what follows for the
 * scripts.
 *
 * Each step of an owner or of the server is one d_step, as one script runs at a time. Times are
 * counters that every tick takes one from, so nothing here is absolute. A tick comes only when
 * all that is under way has arrived: whatever takes longer is a fault, and there are FAULTS of
 * them at most.
 *
 * MODE_L is a semaphore of two slots; with MODE_S one owner writes, the others read; without
 * either the lock is exclusive. With CLOCKS the owners' clocks are exact or slow, without all
 * are slow; with MIXED one owner offers no token. With AGENTS an owner's agent may die, and
 * the next one continues; with FAILOVER the server may forget the latest heartbeats of a waiter;
 * with PAUSE the lock may be paused and resumed; with LIMITS (and MODE_L) the semaphore's limit is
 * 1 or 2, and may change. */

#ifndef FAULTS
#define FAULTS 2
#endif
/* Mistakes that may be seeded, one at a time. Each of them must be found. */
mtype = {
    BUG_RECEIPT, BUG_TOKEN, BUG_DEAD_PLACE, BUG_CANCEL, BUG_STOP, BUG_LEASE, BUG_NO_EXTEND,
    BUG_ONE_TOKEN, BUG_CASCADE, BUG_AGENT, BUG_OLD_TOKEN, BUG_RESUME, BUG_LIMIT, BUG_PAUSE
}
#ifndef BUG
#define BUG 0
#endif
/* In ticks. LEASE and PLACE are the server's; DRIFT is what an owner takes off; STOP is from
 * TERM to the end. A waiter calls every tick, and so does a holder. A request is given up after
 * PATIENCE. */
#ifndef LEASE
#define LEASE 4
#define PLACE 3
#define STOP  1
#endif
#define DRIFT    1
#define PATIENCE 1
/* By how much an entry that was handed over outlasts the place. */
#define MORE     1
/* For how many ticks the owner whose turn it is may not run, once something was lost, late, dead or
 * stopped: a lease for each fault. */
#ifndef IDLE_MOST
#define IDLE_MOST (FAULTS * LEASE)
#endif

#define N    3
#define NONE 3
#ifdef LIMITS
#define LIMIT limit
#else
#define LIMIT 2 /* in MODE_L */
#endif
/* How many a script hands over to: fewer than there may be, so that the next must continue. */
#define AT_ONCE 1
#define is_writer(i) (c[i].writes) /* in MODE_S */

/* The states of an owner. */
#define AWAY  0 /* has not come yet, or is gone */
#define ASK   1 /* TRYING: an acquire is under way */
#define WAIT  2 /* WAITING: the latest acquire was answered QUEUED, and nothing is under way */
#define CONF  3 /* CONFIRMING: granted, but too late to start; a renewal is under way */
#define HELD  4 /* the command runs, or has just ended */
#define QUIT  5 /* cancelled; the request under way is waited for */
#define LEAVE 6 /* RELEASING: a release is under way */

/* Requests, and answers. */
#define ACQUIRE 1
#define RENEW   2
#define RELEASE 3
#define GRANTED 1
#define QUEUED  2
#define RENEWED 3
#define LOST    4
#define GONE    5 /* RELEASED or ABSENT */

/* Messages. */
#define POKE 1 /* "1" */
#define HAND 2 /* token, fence and slot */

/* The command. */
#define RUNS  1
#define STOPS (STOP + 1) /* TERM was sent: gone after STOP ticks at the latest */

typedef owner {
    unsigned st : 3;
    bit dead;
    bit stopped;
    bit writes;        /* in MODE_S */
    bit mute;          /* it offers no token, as one that wants several keys */
    unsigned cmd : 2;
    unsigned left : 3; /* ticks that it trusts: in HELD its lease, in WAIT its place */
    unsigned todo : 2; /* the request that it sends next, at once */
    bit busy;          /* one is under way that was not answered at once */
    unsigned age : 2;  /* how many ticks ago it was sent */
    bit behind;        /* HELD from a message: the renewal behind it continues the cascade */

    /* The network: the request, its answer, one that was given up and may be executed yet, what
     * was published. */
    unsigned req : 2;
    unsigned ans : 3;
    bit ans_told;      /* it was executed when the owner had been force-released */
    unsigned stray : 2;
    unsigned msg : 2;
    bit msg_token;
    unsigned late : 2; /* a message that was held back, doubled or forged: it comes at any time */
    bit late_token;

    /* The server: the place (q:N) with its token; the holder's entry (h:OWNER); the ticket; t. A
     * token is 1 if it is that of the latest acquire that the owner has sent: fresh random
     * numbers differ, and nothing else is asked of them. */
    bit placed;
    unsigned place : 3;
    bit token;
    bit holds;
    unsigned lease : 3;
    unsigned ticket : 2; /* only the order counts: 1 is the first, 0 none */
    bit barred;

    /* Only for the properties. */
    bit evicted; /* by force, and no answer has told it */
    bit handed;  /* its place became its entry, and it has not called since: "place" continues */
    bit hurt;    /* a fault has hit it: others may be served before it */
}
owner c[N];
unsigned faults : 2;
bit slow;             /* their clocks: they trust a tick longer than exact ones would */
bit paused;           /* no new owner is let in */
#ifdef LIMITS
unsigned limit : 2;   /* of the semaphore */
#endif
bit slowed;           /* one of the faults takes time */
unsigned idle : 4;

hidden byte k, j, head, room, count, what, before;
hidden byte fits;

#define is_waiting(i) ((c[i].st == ASK || c[i].st == WAIT) && !c[i].holds)
#define is_there(i)   (!c[i].dead && !c[i].stopped)

/* -- properties ------------------------------------------------------------------------------ */

#define counts(i) (c[i].cmd && !c[i].evicted)
#if defined(MODE_L)
#define excluded() (counts(0) + counts(1) + counts(2) <= 2)
#elif defined(MODE_S)
#define writes(i) (counts(i) && is_writer(i))
#define excluded() \
    (!writes(0) && !writes(1) && !writes(2) || counts(0) + counts(1) + counts(2) <= 1)
#else
#define excluded() (counts(0) + counts(1) + counts(2) <= 1)
#endif

/* No owner is served while one waits that came before and was not hit by a fault. */
inline check_order(i)
{
    for (k : 0 .. N - 1) {
        assert(k == i || !is_waiting(k) || c[k].hurt || !c[k].ticket || c[k].ticket > c[i].ticket);
    }
}

/* No release ends with the lock free and a living waiter that was told nothing. */
#define is_used(i)       (c[i].holds && c[i].lease)
#define is_waiting_in(i) (c[i].placed && c[i].place)
#define is_poked(i)      (c[i].mute && (c[i].msg || c[i].dead || c[i].st == AWAY))
inline check_woken()
{
    assert(paused || !(is_waiting_in(0) || is_waiting_in(1) || is_waiting_in(2)) ||
           is_used(0) || is_used(1) || is_used(2) || is_poked(0) || is_poked(1) || is_poked(2))
}

/* -- the server ------------------------------------------------------------------------------ */

/* prune() of holders.lua: entries that have run out go when somebody is in their way. */
inline prune()
{
    for (k : 0 .. N - 1) {
        if
        :: c[k].holds && !c[k].lease ->
            c[k].holds = 0;
            c[k].handed = 0
        :: else
        fi
    }
}

#define has_writer(i) (c[i].holds && is_writer(i))

/* obstacle(): none for i? */
#define is_open (!paused || BUG == BUG_PAUSE)
inline has_room(i)
{
    prune();
#if defined(MODE_L)
    fits = is_open && c[0].holds + c[1].holds + c[2].holds < LIMIT;
#elif defined(MODE_S)
    fits = is_open && (!c[0].holds && !c[1].holds && !c[2].holds ||
        !is_writer(i) && !has_writer(0) && !has_writer(1) && !has_writer(2));
#else
    fits = is_open && !c[0].holds && !c[1].holds && !c[2].holds;
#endif
}

/* first_waiter() of queue.lua: the first place that lives. The dead ones go. */
#define is_alive(i) (c[i].placed && (c[i].place || BUG == BUG_DEAD_PLACE))
inline first_waiter()
{
    head = NONE;
    for (k : 0 .. N - 1) {
        if
        :: is_alive(k) && (head == NONE || c[k].ticket < c[head].ticket) -> head = k
        :: c[k].placed && !is_alive(k) -> c[k].placed = 0
        :: else
        fi
    }
}

/* leave_queue(): the ticket is remembered by its owner, who may come back to it. */
inline leave_queue(i)
{
    c[i].placed = 0;
    c[i].place = 0;
    c[i].token = 0;
}

inline give_up_ticket(i)
{
    leave_queue(i);
    for (k : 0 .. N - 1) {
        if
        :: c[i].ticket && c[k].ticket > c[i].ticket -> c[k].ticket = c[k].ticket - 1
        :: else
        fi
    }
    c[i].ticket = 0;
}

inline publish(i, kind, token_)
{
    if
    :: !c[i].dead && c[i].st != AWAY ->
        c[i].msg = kind;
        c[i].msg_token = token_
    :: else
    fi
}

/* The entry of a waiter, with what is left of its place and a little more, and its token back to
 * it. */
inline hand_over(i)
{
    assert(!paused);
    check_order(i);
    c[i].holds = 1;
    c[i].lease = (BUG == BUG_LEASE -> LEASE : (c[i].place -> c[i].place + MORE : 0));
    c[i].evicted = 0;
    c[i].handed = 1;
    publish(i, HAND, c[i].token);
    c[i].placed = 0;
    c[i].token = 0
}

/* wake() of holders.lua. One that offers no token is poked. */
inline wake()
{
    room = AT_ONCE;
    do
    :: room > 0 ->
        room = room - 1;
        first_waiter();
        if
        :: head != NONE ->
            has_room(head);
            if
            :: fits && !c[head].mute -> hand_over(head)
            :: fits && c[head].mute ->
                publish(head, POKE, 0);
                room = 0
            :: else -> room = 0
            fi
        :: else -> room = 0
        fi
    :: else -> break
    od
}

inline answer(i, what, is_stray)
{
    if
    :: !is_stray && !c[i].dead ->
        c[i].ans = what;
        c[i].ans_told = c[i].evicted
    :: else
    fi
}

#ifdef MODE_S
#define is_alone(i) is_writer(i)
#elif defined(MODE_L)
#define is_alone(i) false
#else
#define is_alone(i) true
#endif

/* The same owner again is the same request: extend_all() of acquire.lua. It finds what a lost
 * message has not told. */
inline extend(i)
{
    c[i].lease = LEASE;
    c[i].handed = 0;
    leave_queue(i);
    if
    :: !is_alone(i) -> wake()
    :: else
    fi
}

/* find_place(), retake_place(), join_queue(), renew_place(): the place lives on, with the token
 * of this very request. */
inline sign_on(i, is_stray)
{
    if
    :: !c[i].ticket ->
        count = 0;
        for (k : 0 .. N - 1) {
            count = (c[k].ticket > count -> c[k].ticket : count)
        }
        c[i].ticket = count + 1
    :: else
    fi;
    c[i].placed = 1;
    c[i].place = PLACE;
    c[i].token = !is_stray && !c[i].mute
}

/* acquire.lua, for who does wait. */
inline acquire(i, is_stray)
{
    if
    :: c[i].barred
    :: !c[i].barred && c[i].holds && BUG != BUG_NO_EXTEND ->
        extend(i);
        answer(i, GRANTED, is_stray)
    :: else ->
        sign_on(i, is_stray);
        first_waiter();
        j = head;
        has_room(j);
        if
        :: fits && j == i ->
            assert(!paused);
            check_order(i);
            c[i].holds = 1;
            c[i].lease = LEASE;
            c[i].handed = 0;
            answer(i, GRANTED, is_stray);
            c[i].evicted = 0;
            leave_queue(i);
            if
            :: !is_alone(i) -> wake()
            :: else
            fi
        :: else ->
            answer(i, QUEUED, is_stray);
            /* passed: one before it could go, and has not called just now */
            if
            :: fits && c[j].place < PLACE -> publish(j, POKE, 0)
            :: else
            fi
        fi
    fi
}

/* renew.lua: never makes an entry; one that has run out and is still there was not passed
 * over. */
inline renew(i, is_stray, behind_)
{
    if
    :: c[i].holds ->
        c[i].lease = LEASE;
        c[i].handed = 0;
        c[i].place = 0;
        answer(i, RENEWED, is_stray);
        if
        :: behind_ -> wake()
        :: else
        fi
    :: else -> answer(i, LOST, is_stray)
    fi
}

/* release.lua, of a holder and of a waiter that goes. It takes the owner's own entry away, also one
 * that was handed over and not heard of, and bars who has sent an acquire that was not answered. */
inline release(i, is_stray)
{
    if
    :: BUG != BUG_CANCEL || !c[i].handed ->
        c[i].holds = 0;
        c[i].handed = 0;
        give_up_ticket(i)
    :: else
    fi;
    if
    :: c[i].stray == ACQUIRE -> c[i].barred = 1
    :: else
    fi;
    wake();
    check_woken();
    answer(i, GONE, is_stray)
}

/* force.lua. */
inline force(i)
{
    c[i].holds = 0;
    c[i].handed = 0;
    c[i].place = 0;
    c[i].evicted = 1;
    c[i].hurt = 1;
    wake();
    check_woken()
}

/* adjust.lua: what is waited for may be had from now on. */
#ifdef LIMITS
#define holders() (c[0].holds + c[1].holds + c[2].holds)
#define has_waiter() (is_waiting_in(0) || is_waiting_in(1) || is_waiting_in(2))
inline raise_limit()
{
    limit = 2;
    prune();
    before = holders();
    if
    :: BUG != BUG_LIMIT -> wake()
    :: else
    fi;
    assert(holders() > before || holders() == limit || paused || !has_waiter())
}
#endif

inline resume()
{
    paused = 0;
    if
    :: BUG != BUG_RESUME -> wake()
    :: else
    fi;
    prune();
    check_woken()
}

/* -- an owner -------------------------------------------------------------------------------- */

inline outdate(i)
{
    c[i].token = c[i].token && BUG == BUG_ONE_TOKEN;
    c[i].msg_token = c[i].msg_token && BUG == BUG_ONE_TOKEN;
    c[i].late_token = c[i].late_token && BUG == BUG_ONE_TOKEN
}

/* With an acquire comes a fresh token: no earlier one is worth anything. */
inline send(i)
{
    c[i].busy = 1;
    c[i].age = 0;
    if
    :: c[i].todo == ACQUIRE ->
        c[i].st = ASK;
        outdate(i);
        c[i].left = 0
    :: else
    fi
}

/* From before the request was sent, less the drift. */
#define trusted(i, ticks) \
    (ticks - DRIFT + slow > c[i].age -> ticks - DRIFT + slow - c[i].age : 0)

inline start(i)
{
    c[i].st = HELD;
    c[i].cmd = (c[i].left > STOP -> RUNS : STOPS);
    assert(excluded())
}

inline take_grant(i)
{
    c[i].left = trusted(i, LEASE);
    if
    :: c[i].left > STOP -> start(i)
    :: else ->
        c[i].st = CONF;
        c[i].todo = RENEW
    fi
}

inline end_request(i)
{
    c[i].busy = 0;
    c[i].ans = 0;
    c[i].ans_told = 0
}

inline drop_message(i)
{
    c[i].msg = 0;
    c[i].msg_token = 0
}

inline forget(i)
{
    c[i].st = AWAY;
    c[i].hurt = 0;
    c[i].cmd = 0;
    c[i].left = 0;
    c[i].todo = 0;
    c[i].age = 0;
    c[i].behind = 0;
    c[i].evicted = 0;
    c[i].late_token = 0;
    end_request(i);
    drop_message(i)
}

inline take_answer(i)
{
    j = c[i].ans;
    if
    :: c[i].ans_told && !c[i].cmd -> c[i].evicted = 0
    :: else
    fi;
    end_request(i);
    if
    :: c[i].st == QUIT ->
        c[i].st = LEAVE;
        c[i].todo = RELEASE
    :: c[i].st == LEAVE -> forget(i)
    :: c[i].st == ASK && j == GRANTED -> take_grant(i)
    :: c[i].st == ASK && j == QUEUED ->
        c[i].st = WAIT;
        c[i].left = trusted(i, PLACE)
    :: c[i].st == CONF && j == RENEWED -> take_grant(i)
    :: c[i].st == CONF && j == LOST ->
        c[i].st = ASK;
        c[i].todo = ACQUIRE
    :: c[i].st == HELD && j == RENEWED ->
        c[i].behind = 0;
        c[i].left = trusted(i, LEASE)
    :: c[i].st == HELD && j == LOST ->
        c[i].behind = 0;
        c[i].cmd = (c[i].cmd == RUNS -> STOPS : c[i].cmd)
    fi;
    if
    :: c[i].st == HELD || c[i].st == WAIT -> c[i].age = 0
    :: else
    fi
}

/* A waiter starts from the message alone if that has the token of its latest answered heartbeat,
 * while nothing is under way, and enough is left of the place as it was counted from before that
 * heartbeat. Everything else is a poke. */
#define is_proven(kind, token_) (kind == HAND && (token_ || BUG == BUG_TOKEN))
#define is_enough(i)            (c[i].left + MORE > (BUG == BUG_STOP -> 0 : STOP))

inline take_message(i, kind, token_)
{
    if
    :: c[i].st == WAIT ->
        if
        :: BUG == BUG_RECEIPT && is_proven(kind, token_) -> c[i].left = PLACE - DRIFT + slow
        :: else
        fi;
        if
        :: is_proven(kind, token_) && is_enough(i) ->
            c[i].left = c[i].left + MORE;
            start(i);
            c[i].behind = !is_alone(i) && BUG != BUG_CASCADE;
            c[i].todo = RENEW
        :: else ->
            c[i].st = ASK;
            c[i].todo = ACQUIRE
        fi
    :: else /* with a request under way, that one sees what the message is about */
    fi
}

/* The request may be executed yet, if it was not. */
inline leave_request(i)
{
    c[i].stray = (c[i].req -> c[i].req : c[i].stray);
    c[i].req = 0;
    end_request(i)
}

/* No answer in time. */
inline give_up(i)
{
    leave_request(i);
    if
    :: c[i].st == ASK || c[i].st == CONF ->
        c[i].st = ASK;
        c[i].todo = ACQUIRE
    :: c[i].st == HELD && c[i].cmd -> c[i].todo = RENEW
    :: c[i].st == HELD && !c[i].cmd || c[i].st == QUIT ->
        c[i].st = LEAVE;
        c[i].todo = RELEASE
    :: c[i].st == LEAVE -> forget(i)
    fi
}

#define may_fail (faults < FAULTS)

inline fault(i, takes_time)
{
    faults = faults + 1;
    c[i].hurt = 1;
    slowed = slowed || takes_time
}

/* The next agent of an owner. It knows what the supervisor knows: whether the command runs, and
 * until when. Requests of the agent before may still be executed; messages that came while no agent
 * listened are lost. */
inline replace_agent(i)
{
    leave_request(i);
    drop_message(i);
    c[i].age = 0;
    c[i].behind = 0;
    if
    :: c[i].st == HELD && c[i].cmd ->
        c[i].left = (BUG == BUG_AGENT -> LEASE - DRIFT + slow : c[i].left);
        c[i].todo = RENEW
    :: c[i].st == HELD && !c[i].cmd || c[i].st == QUIT || c[i].st == LEAVE ->
        c[i].st = LEAVE;
        c[i].todo = RELEASE
    :: else ->
        c[i].st = ASK;
        c[i].todo = ACQUIRE;
        c[i].left = 0
    fi
}

/* The server that takes over knows an earlier heartbeat of a waiter. */
inline forget_heartbeats(i, ticks)
{
    c[i].place = (c[i].place > ticks -> c[i].place - ticks : 0);
    c[i].token = c[i].token && BUG == BUG_OLD_TOKEN
}

#define is_unknown(i) \
    (!c[i].stray && !c[i].req && !(c[i].holds && c[i].lease) && !(c[i].placed && c[i].place))

/* Dead fields of one who is gone are as good as none. */
inline clear(i)
{
    c[i].holds = 0;
    c[i].barred = 0;
    c[i].handed = 0;
    give_up_ticket(i)
}

/* Owners are interchangeable: states that differ only in who is who are one. */
c_code {
    static void sort_owners(struct owner *o)
    {
        struct owner other;
        for (int at = 0; at < 3; at++) {
            struct owner *one = o + at % 2;
            if (memcmp(one, one + 1, sizeof other) > 0) {
                other = one[0];
                one[0] = one[1];
                one[1] = other;
            }
        }
    }
};
#define sort() c_code { sort_owners(now.c); }; skip

/* One request as it is executed, and its answer on the way. */
inline execute(i, what, is_stray)
{
    if
    :: what == ACQUIRE -> acquire(i, is_stray)
    :: what == RENEW -> renew(i, is_stray, c[i].behind)
    :: what == RELEASE -> release(i, is_stray)
    fi
}

#define step(...) d_step { __VA_ARGS__; sort() }

proctype life(byte i)
{
    do
    /* An owner comes, at any time; again, as the same owner (keeper_restart), when the server has
     * nothing of it any more. Old messages may still come. */
    :: step(
        c[i].st == AWAY && is_there(i) && is_unknown(i) ->
        c[i].st = ASK;
        c[i].hurt = c[i].late > 0;
        clear(i);
        c[i].todo = ACQUIRE)
    /* A round trip in which nothing fails. Steps of others at the same time come before it or
     * after it. */
    :: step(
        c[i].todo && is_there(i) && !c[i].busy ->
        send(i);
        what = c[i].todo;
        c[i].todo = 0;
        execute(i, what, 0);
        take_answer(i))
    /* An answer that is late; or, if it is given up, lost. */
    :: step(
        c[i].todo && is_there(i) && !c[i].busy && may_fail ->
        fault(i, 1);
        send(i);
        what = c[i].todo;
        c[i].todo = 0;
        execute(i, what, 0))
    :: step(c[i].ans && is_there(i) -> take_answer(i))
    /* A request that is late, or lost. */
    :: step(
        c[i].todo && is_there(i) && !c[i].busy && may_fail ->
        fault(i, 1);
        send(i);
        c[i].req = c[i].todo;
        c[i].todo = 0)
    :: step(
        c[i].req ->
        what = c[i].req;
        c[i].req = 0;
        execute(i, what, 0))
    :: step(c[i].busy && c[i].age >= PATIENCE && is_there(i) -> give_up(i))
    :: step(
        c[i].stray ->
        what = c[i].stray;
        c[i].stray = 0;
        execute(i, what, 1))
    :: step(c[i].stray -> c[i].stray = 0) /* or never, or refused as STALE */

    /* A published message. It does not come before the answer to an earlier request: it is one
     * connection. */
    :: step(
        c[i].msg && !c[i].ans && is_there(i) ->
        what = c[i].msg;
        fits = c[i].msg_token;
        drop_message(i);
        take_message(i, what, fits))
    :: step(
        c[i].late && is_there(i) && c[i].st != AWAY ->
        what = c[i].late;
        fits = c[i].late_token;
        c[i].late = 0;
        c[i].late_token = 0;
        take_message(i, what, fits))

    /* The command ends by itself, and the lock is released. */
    :: step(c[i].cmd && (c[i].busy || !is_there(i)) -> c[i].cmd = 0)
    :: step(
        c[i].st == HELD && !c[i].busy && is_there(i) ->
        c[i].cmd = 0;
        c[i].st = LEAVE;
        c[i].todo = RELEASE)
    /* The user cancels the wait, at any time. */
    :: step(
        c[i].st == WAIT && is_there(i) ->
        c[i].st = LEAVE;
        c[i].todo = RELEASE)
    :: step(
        (c[i].st == ASK || c[i].st == CONF) && c[i].busy && is_there(i) ->
        c[i].st = QUIT)

    /* Faults of a message: lost, late, doubled (the second comes at any time), forged: no
     * client guesses a token. */
    :: step(
        may_fail && c[i].msg ->
        fault(i, 1);
        drop_message(i))
    :: step(
        may_fail && c[i].msg == HAND && !c[i].late ->
        fault(i, 1);
        c[i].late = c[i].msg;
        c[i].late_token = c[i].msg_token;
        drop_message(i))
    :: step(
        may_fail && c[i].msg == HAND && !c[i].late ->
        fault(i, 0);
        c[i].late = c[i].msg;
        c[i].late_token = c[i].msg_token)
    :: step(
        may_fail && !c[i].late && c[i].st == WAIT ->
        fault(i, 0);
        c[i].late = HAND;
        c[i].late_token = 0)
    /* An owner is stopped and continues, or dies; the lock is taken from its holder by force. */
    :: step(
        may_fail && is_there(i) && c[i].st != AWAY ->
        fault(i, 1);
        c[i].stopped = 1)
    :: step(c[i].stopped -> c[i].stopped = 0)
    :: step(
        may_fail && is_there(i) && c[i].st != AWAY ->
        fault(i, 1);
        forget(i);
        c[i].dead = 1;
        c[i].late = 0;
        c[i].late_token = 0)
    :: step(
        may_fail && c[i].holds ->
        faults = faults + 1;
        force(i))
#ifdef AGENTS
    :: step(
        may_fail && is_there(i) && c[i].st != AWAY ->
        fault(i, 1);
        replace_agent(i))
#endif
#ifdef FAILOVER
    :: step(
        may_fail && c[i].placed ->
        fault(i, 1);
        forget_heartbeats(i, 1))
    :: step(
        may_fail && c[i].placed ->
        fault(i, 1);
        forget_heartbeats(i, 2))
#endif
    od
}

/* -- time ------------------------------------------------------------------------------------ */

#define is_urgent(i) \
    (is_there(i) && (c[i].todo && !c[i].busy || c[i].msg && !c[i].ans || \
     c[i].st == HELD && !c[i].cmd && !c[i].busy || c[i].busy && c[i].age > PATIENCE))

/* Whose turn it is, and who could run, and does not. */
#ifdef MODE_S
#define conflicts(i, o) (o != i && c[o].cmd && (is_writer(i) || is_writer(o)))
#else
#define conflicts(i, o) (o != i && c[o].cmd)
#endif
#if defined(MODE_L)
#define is_in_the_way(i) ((c[0].cmd > 0) + (c[1].cmd > 0) + (c[2].cmd > 0) >= LIMIT)
#else
#define is_in_the_way(i) (conflicts(i, 0) || conflicts(i, 1) || conflicts(i, 2))
#endif

#define is_in_turn(i) (is_there(i) && (c[i].st == ASK || c[i].st == WAIT))

inline count_idle()
{
    fits = 0;
    for (k : 0 .. N - 1) {
        count = 0;
        for (j : 0 .. N - 1) {
            if
            :: j != k && c[j].ticket && c[j].ticket < c[k].ticket && is_in_turn(j) -> count = 1
            :: else
            fi
        }
        if
        :: c[k].ticket && is_in_turn(k) && !count && !is_in_the_way(k) -> fits = 1
        :: else
        fi
    }
    idle = (fits && !paused -> idle + 1 : 0);
    assert(idle <= (slowed -> IDLE_MOST : 0))
}

/* People, who pause and resume, and change the limit, at no cost. */
#if defined(PAUSE) || defined(LIMITS)
proctype people()
{
    do
#ifdef PAUSE
    :: d_step { !paused -> paused = 1 }
    :: step(paused -> resume())
#endif
#ifdef LIMITS
    :: d_step { limit == 2 -> limit = 1 }
    :: step(limit == 1 -> raise_limit())
#endif
    od
}
#endif

proctype time()
{
    do
    :: step(
        !is_urgent(0) && !is_urgent(1) && !is_urgent(2) ->
        count_idle();
        for (k : 0 .. N - 1) {
            c[k].lease = (c[k].lease -> c[k].lease - 1 : 0);
            c[k].place = (c[k].place -> c[k].place - 1 : 0);
            c[k].left = (c[k].left -> c[k].left - 1 : 0);
            if
            :: c[k].cmd == RUNS && c[k].left <= STOP -> c[k].cmd = STOPS
            :: c[k].cmd == RUNS + 1 -> c[k].cmd = 0
            :: c[k].cmd > RUNS + 1 -> c[k].cmd = c[k].cmd - 1
            :: else
            fi;
            assert(!c[k].handed || c[k].lease <= c[k].place + MORE);
            if
            :: c[k].st == WAIT && !c[k].todo -> c[k].todo = ACQUIRE
            :: c[k].st == HELD && c[k].cmd && !c[k].busy && !c[k].todo -> c[k].todo = RENEW
            :: else
            fi;
            c[k].age = (c[k].busy && c[k].age < 3 -> c[k].age + 1 : c[k].age)
        };
        for (j : 0 .. N - 1) {
            /* not_after: whatever is executed later is refused as STALE. */
            c[j].stray = 0;
            c[j].req = (c[j].age > PATIENCE -> 0 : c[j].req);
            if
            :: c[j].st == AWAY && is_unknown(j) -> clear(j)
            :: else
            fi
        })
    od
}

init
{
    atomic {
#ifdef CLOCKS
        if
        :: skip
        :: slow = 1
        fi;
#else
        slow = 1;
#endif
#ifdef MODE_S
        c[0].writes = 1;
#endif
#ifdef MIXED
        c[0].mute = 1;
#endif
        run life(0);
        run life(1);
        run life(2);
        run time();
#ifdef LIMITS
        limit = 2;
#endif
#if defined(PAUSE) || defined(LIMITS)
        run people();
#endif
        sort()
    }
}

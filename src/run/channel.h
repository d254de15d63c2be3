/* The messages between supervisor and agent: one struct each, over a SOCK_SEQPACKET pair. Both ends
 * run the same binary. Neither end ever blocks on it: what the kernel does not take, for want of
 * memory or as the other process has been stopped for long, waits in an outbox. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "lock/lease.h"
#include "lock/lock.h"
#include "net/loop.h"
#include "os/cgroup.h"
#include "os/child.h"
#include "run/events.h"
#include "run/fate.h"

/* From the agent to the supervisor. */
enum report_kind {
    REPORT_HELD,      /* lease, grants: start the command */
    REPORT_WITHDRAWN, /* the command was not started in time; the grant is released */
    REPORT_PING,      /* nothing is acquired before this is answered by ORDER_PONG */
    REPORT_EXTENDED,  /* lease; also answers ORDER_VERIFY */
    REPORT_NEWS,      /* news, for the user; RUN_TROUBLE: why a renewal failed */
    REPORT_OVERDUE,   /* the wait is long, see run_shared.overdue; news: trouble of the store */
    REPORT_LOST,      /* news.reason: the lock is another's, or may be */
    REPORT_CLEARED,   /* the command ended while the lock was held, which is released */
    REPORT_OVER,      /* status, news: nothing is held; the agent ends */
};

struct agent_report {
    enum report_kind kind;
    int status; /* OVER: the exit status where no command was run */
    struct lease lease;
    bool kept; /* LOST: the store has it until the release */
    struct lock_grant grants[LOCK_KEYS_MAX];
    struct run_news news; /* after channel_hear() its reason is that of the struct agent_message */
};

/* A report as it is sent: the reason of its news goes along if there is one. */
struct agent_message {
    struct agent_report report;
    struct run_reason reason;
};

/* From the supervisor to the agent. */
enum order_kind {
    ORDER_ACK,      /* lease: the one the command is now supervised under */
    ORDER_STARTED,  /* pid of the command, leader of its process group; a pidfd of it goes along */
    ORDER_STOPPING, /* the command is being ended, with all that it has started */
    ORDER_REAPED,   /* a process that the command has left to the supervisor has ended */
    ORDER_PAUSED,   /* the terminal stops the supervisor, together with its command */
    ORDER_VERIFY,   /* running again, with a command: renew now, say EXTENDED or LOST */
    ORDER_PONG,     /* running */
    ORDER_RELEASE,  /* the command has ended: release the lock, say OVER */
    ORDER_CANCEL,   /* leave the queue or release the unused lock, say OVER */
};

struct agent_order {
    enum order_kind kind;
    pid_t pid;
    struct lease lease;
    struct awake since;  /* STOPPING */
    bool used;           /* RELEASE: a command ran under it */
    struct lock_end end; /* RELEASE, used: how it ended */
};

/* Makes a channel of two ends, close-on-exec and non-blocking, for the caller to close. 0; -1 with
 * errno. */
int channel_pair(int ends[2]);
/* Sends a message of "size" bytes. False if it was not sent, with errno. fd goes along, and stays
 * the caller's; -1: none. */
bool channel_send(int end, const void *message, size_t size, int fd);
/* Receives a message of exactly "size" bytes. 1: it was there; 0: none is there now, or there is no
 * memory for it; -1: the other end is closed. *fd is the descriptor that came along, for the caller
 * to close; -1: none. */
int channel_receive(int end, void *message, size_t size, int *fd);
/* Receives a report of the agent, with or without a reason; returns 1, 0 or -1 as above. */
int channel_hear(int end, struct agent_message *message);

/* The messages of a process to the other end: those that are refused are kept, and sent later, in
 * their order. */
struct outbox;

/* end: the caller's, as long as the outbox is used. Release with outbox_free(), which discards what
 * was not sent; NULL is allowed. */
struct outbox *outbox_new(struct loop *loop, int end);
void outbox_free(struct outbox *outbox);
/* Sends a message, which is copied, now or later. fd: goes along, and must stay open until then;
 * the message goes without it if its user has handed over too many; -1: none. False if the other
 * end is closed. */
bool outbox_send(struct outbox *outbox, const void *message, size_t size, int fd);
/* Sends a report of the agent, with its reason if it has one. False as above. */
bool outbox_report(struct outbox *outbox, const struct agent_report *report);
/* Whether nothing is kept. A message that may be left out, and could come again and again, is sent
 * only then: the other process may be stopped for days. */
bool outbox_is_empty(const struct outbox *outbox);
/* For a process that ends: waits until all is sent, but at most so many ns; false with errno if not
 * all is. NULL has nothing to send. */
bool outbox_finish(struct outbox *outbox, int64_t most);

/* -- memory in common ------------------------------------------------------------------------ */

/* Memory that an agent shares with its peer. The agent offers a grant, and then one of the two
 * claims it: the peer to use the lock, or the agent to withdraw the grant. The first claim
 * decides. So a grant can be withdrawn at any time without a command starting at that very
 * moment. */
struct run_shared {
    atomic_bool stands;          /* a grant is offered, and neither claimed nor withdrawn */
    atomic_bool delivered;       /* the printer of an acquisition has printed the lock */
    atomic_int_fast64_t ending;  /* since when (struct awake) the command is being ended, by the
                                 * guard that has claimed it; 0: it is not */
    atomic_int fate;             /* enum fate, of a command that its supervisor ends, as that knew
                                  * it then; written before "ending" */
    atomic_int signalled;        /* the signal of --on-lost: enum run_signalled */
    struct child_note stop_note; /* of the supervisor's process of --stop */
    atomic_int stop_command;     /* the pid of the agent's; 0: it has none, or has reaped it */
    /* The end of the latest extension, a struct moment: a paused supervisor is not told of it. 0:
     * there was none since the grant, or the lock is lost. */
    atomic_int_fast64_t lease_end;
    bool announced;            /* the user has read why the lock is waited for, since it was held */
    struct child_note command; /* of the command's process */
    /* ORDER_RELEASE may come too late for an agent that counts on the lease. */
    atomic_bool to_release;
    struct agent_order release; /* written before that */
    /* REPORT_LOST, REPORT_CLEARED and REPORT_OVER count as said from then on: the kernel may refuse
     * their messages, and the agent acts on the first, and ends soon after the others. */
    atomic_bool lost, cleared, over;
    struct agent_report last; /* REPORT_OVER; written before "over" */
    struct agent_report loss; /* REPORT_LOST; written before "lost", once */
    /* Large members come last, so that most runs touch one page. */
    struct cgroup cgroup;                       /* the command's, from before it is started */
    struct run_reason last_reason, loss_reason; /* of the news of those reports */
    struct run_refusal overdue; /* why the wait is long, for REPORT_OVERDUE; written once */
    struct run_refusal refusal; /* why there is none, for the news of the last REPORT_OVER */
};

/* Claims the grant: the peer, to use the lock; the agent, to withdraw the grant. True if the caller
 * was first; false if the other process was, or nothing is offered. */
static inline bool run_claim_grant(struct run_shared *shared)
{
    return atomic_exchange(&shared->stands, false);
}

/* Claims to be the guard that ends the command from *since on. True if the caller was first: it
 * runs the command of --stop, and sends TERM. The other guard only kills, and *since becomes the
 * time when the first one has begun. An agent that finds a supervisor stopped just after its claim
 * bars its process of --stop (stop_note), and has taken its place then. */
static inline bool run_claim_end(struct run_shared *shared, struct awake *since)
{
    int_fast64_t began = 0;
    bool first = atomic_compare_exchange_strong(&shared->ending, &began, since->ns);

    if (!first)
        since->ns = began;
    return first;
}

/* The signal of --on-lost: a guard claims to send it, and says when it has. */
enum run_signalled { RUN_SIGNAL_DUE, RUN_SIGNAL_CLAIMED, RUN_SIGNAL_SENT };

/* Claims to send that signal. True if the caller was first: it must send it. */
static inline bool run_claim_signal(struct run_shared *shared)
{
    int due = RUN_SIGNAL_DUE;
    return atomic_compare_exchange_strong(&shared->signalled, &due, RUN_SIGNAL_CLAIMED);
}

/* Undoes run_claim_end() of either guard: the next claim will be the first. */
static inline void run_disclaim_end(struct run_shared *shared)
{
    atomic_store(&shared->ending, 0);
    atomic_store(&shared->stop_note.group, 0);
}

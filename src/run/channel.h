/* What supervisor and agent say to each other: one struct a message over a SOCK_SEQPACKET pair.
 * Both ends are the same binary. Neither end ever blocks on it: a full queue means that the other
 * one has been stopped for long, which is what deadlines are for. */
#ifndef RLOCK_RUN_CHANNEL_H
#define RLOCK_RUN_CHANNEL_H

#include <sys/types.h>

#include "lock/lease.h"
#include "lock/lock.h"
#include "run/events.h"

enum message_kind {
    /* agent to supervisor */
    MESSAGE_HELD,      /* lease, grants: start the command */
    MESSAGE_WITHDRAWN, /* the command was not started in time; the grant is given back */
    MESSAGE_CALL,      /* nothing is acquired before this is answered by MESSAGE_HERE */
    MESSAGE_EXTENDED,  /* lease; also answers MESSAGE_VERIFY */
    MESSAGE_NEWS,      /* news, for the user; RUN_TROUBLE: why a renewal failed */
    MESSAGE_OVERDUE,   /* it has waited for long; the offer has why; news: trouble of the store */
    MESSAGE_LOST,      /* news.reason: not ours any more */
    MESSAGE_CLEARED,   /* not LOST: the command ended before it had to; the lock is given back */
    MESSAGE_OVER,      /* status, news: nothing is held; the agent ends */
    /* supervisor to agent */
    MESSAGE_ACK,     /* lease: the one the command is now supervised under */
    MESSAGE_STARTED, /* pid of the command, leader of its process group; a pidfd of it goes along */
    MESSAGE_STOPPING, /* the command is being ended, with all that it has started */
    MESSAGE_REAPED,   /* a process that the command has left to the supervisor has ended */
    MESSAGE_PAUSED,   /* the terminal stops the supervisor, together with its command */
    MESSAGE_VERIFY,   /* running again, with a command: renew now, say EXTENDED or LOST */
    MESSAGE_HERE,     /* running */
    MESSAGE_RELEASE,  /* the command has ended: give it back, say OVER */
    MESSAGE_CANCEL,   /* leave the queue or give it back unused, say OVER */
};

struct message {
    enum message_kind kind;
    int status; /* OVER: the exit status where no command was run */
    pid_t pid;
    struct lease lease;
    bool used;           /* RELEASE: a command ran under it */
    bool stop_begun;     /* LOST: the agent has started the command of --stop */
    struct lock_end end; /* RELEASE, used: how it ended */
    struct lock_grant grants[LOCK_KEYS_MAX];
    struct run_news news;
};

/* Both ends close-on-exec and non-blocking. -1 with errno. */
int channel_pair(int ends[2]);
/* False if it did not go out: the other end is gone or has long not read. */
bool channel_send(int end, const struct message *message);
/* The same with a descriptor, which stays the caller's; -1: none. */
bool channel_send_with(int end, const struct message *message, int fd);
/* 1: a message; 0: none there now; -1: the other end is gone. */
int channel_receive(int end, struct message *message);
/* The same with the descriptor that came along, which is the caller's then; -1: none. */
int channel_receive_with(int end, struct message *message, int *fd);

#endif

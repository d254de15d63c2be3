/* What supervisor and agent say to each other: one struct a message over a SOCK_SEQPACKET pair. Both
 * ends are the same binary. Neither end ever blocks on it: a full queue means that the other one
 * has been stopped for long, which is what deadlines are for. */
#ifndef RLOCK_CHANNEL_H
#define RLOCK_CHANNEL_H

#include "clock.h"
#include "lock.h"
#include <sys/types.h>

enum message_kind {
    /* agent to supervisor */
    MESSAGE_HELD,      /* deadline, grants: start the command */
    MESSAGE_WITHDRAWN, /* the command was not started in time; the agent queues again */
    MESSAGE_EXTENDED,  /* deadline; also answers MESSAGE_VERIFY */
    MESSAGE_TROUBLE,   /* text: a renewal failed; retrying */
    MESSAGE_LOST,      /* text: not ours any more */
    MESSAGE_OVER,      /* status, refused, text: nothing is held; the agent ends */
    /* supervisor to agent */
    MESSAGE_ACK,     /* deadline: the one the command is now supervised under */
    MESSAGE_STARTED, /* pid of the command, leader of its process group */
    MESSAGE_PAUSED,  /* the terminal stopped command and supervisor: no ACK is to be expected */
    MESSAGE_VERIFY,  /* running again: renew now, say EXTENDED or LOST */
    MESSAGE_RELEASE, /* the command has ended: give it back, say OVER */
    MESSAGE_CANCEL,  /* leave the queue or give it back unused, say OVER */
};

struct message {
    enum message_kind kind;
    int status; /* OVER: the exit status where no command was run */
    pid_t pid;
    struct moment deadline;
    bool refused; /* held by others, rather than a failure */
    bool used;    /* RELEASE: a command ran under it */
    struct lock_grant grants[LOCK_KEYS_MAX];
    char text[640];
};

/* Both ends close-on-exec and non-blocking. -1 with errno. */
int channel_pair(int ends[2]);
/* False if it did not go out: the other end is gone or has long not read. */
bool channel_send(int end, const struct message *message);
/* 1: a message; 0: none there now; -1: the other end is gone. */
int channel_receive(int end, struct message *message);

#endif

/* A script that cannot be wrapped: it takes a lock by "rlock acquire", works, renews the lock, and
 * releases it or just ends. It is one more run, whose command it is itself, whose supervisor is
 * "rlock acquire", and whose agent is the renewer, if there is one. Or it is a person, who reserves
 * the lock, once more while it is reserved, or extends that. A run may nest in either. */
#pragma once

#include "lives/run.h"

/* The script of this life. */
struct script {
    struct file *output;  /* of "rlock acquire" */
    bool unread;          /* it is not read at once */
    int64_t granted_from; /* the request was sent that was granted, as far as is known */
    int64_t counts_until; /* by the latest acquisition or renewal that has succeeded */
    bool released;        /* by "rlock release" */
    int64_t ended;        /* the script has; 0: not */
    int pid;              /* that it had */
    int64_t failed;       /* "rlock acquire" has, or was killed; 0: not */
};

extern struct script script;

/* The server has granted it its lock. */
void script_on_granted(struct run *run);
/* A lease counts from the request, of which the server's clock may be fast. */
int64_t script_end_of_lease(const struct run *run, int64_t since);
/* Chooses whether there is one, and what it does. flavour: that of the runs. */
void script_choose(int flavour);

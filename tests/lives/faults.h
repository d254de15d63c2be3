/* The faults of a life. Each strikes at a time, before a system call of a guard, or about a deed of
 * one (of any kind, or of one); just after a request was sent: while these are under way, most
 * orders are open; just after the run was granted its lock, which it then begins to use; just after
 * the state of a run's guards has changed (states.h); about when a command ends, or must be ended,
 * if its lease is not renewed until then; or soon after the fault before it, or after the end of
 * that, amid what is done about it. A fault that lasts may do so until one of those moments. */
#pragma once

#include "lives/replication.h"
#include "lives/run.h"
#include "lives/trouble.h"

#define FAULTS_MAX 8

struct fault {
    enum fault_kind {
        FAULT_KILL, /* of a guard, as the next two */
        FAULT_STOP,
        FAULT_SIGNAL,  /* from the user, to the supervisor */
        FAULT_SUSPEND, /* a host */
        FAULT_FORCE,   /* force-release */
        FAULT_CUT,     /* the network, as the next one */
        FAULT_AWAY,
        FAULT_LOSE,   /* connections, in silence */
        FAULT_STALL,  /* the network delays what is sent on those */
        FAULT_FREEZE, /* the server, as all that follow */
        FAULT_RESTART,
        FAULT_FORGET,  /* it starts without its data, or is flushed */
        FAULT_SCRIPTS, /* it forgets its scripts */
        FAULT_CLOCK,   /* is set */
        FAULT_TROUBLE,
        FAULT_NAMES, /* the name service is away */
        FAULT_FAILOVER,
        FAULT_KINDS
    } kind;
    enum {
        AT_TIME,
        AT_CALL,
        AT_REQUEST,
        AT_GRANT,
        AT_CHANGE,
        AT_DEED,
        AT_MOMENT,
        AT_FAULT
    } trigger;
    struct run *run;
    int server;
    enum kind guard; /* SUPERVISOR or AGENT */
    int signo;
    int64_t at;      /* AT_TIME: then; of the others: so long behind it */
    bool behind;     /* AT_FAULT: that one's end */
    unsigned number; /* of the call, request, grant, change or deed; which moment (states.h) */
    enum deed deed;  /* AT_DEED: of that kind only; DEEDS: any */
    bool has_end;    /* it lasts until that moment of the run, and so long behind it */
    unsigned end_moment;
    int64_t end_by;
    /* A guard is struck in that one of its calls (or deeds) from then on, amid what it does about
     * that moment; 0: then. */
    unsigned calls;
    bool has_come, of_deeds; /* these are counted */
    int64_t length;          /* ns */
    bool now;     /* force-release --now; the server does not restart; connections are lost */
    int64_t step; /* of the clock, ns */
    enum trouble trouble;
    int names; /* how that is away: one of struct naming */
    struct failover failover;
    bool used; /* or left out */
};

extern struct fault faults[FAULTS_MAX];
extern int fault_count;

/* The circumstances of this life. */
extern struct circumstances {
    bool calm;                  /* nothing goes wrong, and the network is quick */
    bool wild;                  /* both guards of a run may be out at once */
    bool network_bad;           /* it delays, loses, cuts or repeats, or the server fails */
    unsigned strikes;           /* of network and server, so far */
    const struct fault *latest; /* of these */
    bool clock_set, set_back;   /* the server's */
    bool forgot;                /* the server has lost its data */
    bool names_failed;          /* the name service */
    int64_t disturbed_until;
} circumstances;

/* A run was granted a KEY. */
void faults_on_granted(struct run *run);
/* Chooses what goes wrong: for the runs that are chosen already. mask: a bit for each fault that is
 * not left out. */
void faults_choose(unsigned mask);

/* The events that a run or an acquisition reports to its user. Nothing in this folder words or
 * writes a message: the caller passes callbacks (cli/run_messages.c). Both the supervisor and the
 * agent call them; the agent is a fork of the supervisor, in which the same pointers are valid. */
#pragma once

#include "lock/keeper.h"

enum run_event {
    RUN_NOTHING, /* nothing to report */

    /* The wait. */
    RUN_REQUEUED,     /* number: its new place in the queue */
    RUN_OWN_ANCESTOR, /* key; number: the pid of the holder, which is an ancestor of this process */
    RUN_ACQUIRED,     /* key; number: the fencing token; slot, of a semaphore */
    RUN_WAITED,       /* acquired; duration of the wait, which was shown */
    RUN_SHORT_LEASE,  /* acquired; duration of the lease, which is shorter than was asked for */
    RUN_OTHER_LIMIT,  /* key; number: the limit that the store keeps, which counts */
    RUN_NOT_ACQUIRED, /* refusal */

    /* The store. */
    RUN_SERVER_SAID, /* reason: the server's own words for what is told next */
    RUN_TROUBLE,     /* reason; it is tried again */
    RUN_STORE_BACK,  /* duration of the trouble */
    RUN_FORGOTTEN,   /* the store had forgotten the lock, and has it again */
    RUN_RENEWED,
    RUN_FAILED, /* key, reason, cause, hint: the store does not grant it */

    /* The command. */
    RUN_NO_PROC,        /* the processes that the command starts cannot be seen */
    RUN_CGROUP,         /* reason: the path of that which the command has */
    RUN_NO_CGROUP_HERE, /* none is delegated */
    RUN_NO_CGROUP,      /* reason: none could be made, though one is required */
    RUN_NOT_STARTED,    /* reason: not even forked */
    RUN_NOT_EXECUTED,   /* reason */
    RUN_KEPT_STOPPED,   /* the user stopped it, and the lock is kept */
    RUN_NO_TERMINAL,    /* it needs the terminal, which it cannot have: it gets HUP */
    RUN_STOPPING,       /* reason: it is being ended, though the lock is held */
    RUN_LOST,           /* reason: the lock is lost when the command has ended, or is being ended */
    RUN_LOST_STOPPING,  /* reason: the same, and the command is being ended for it */
    RUN_LOST_CONTINUES, /* reason: the same, and the command continues */
    /* Three of these once more when the command has ended: the first message may have gone with an
     * editor's screen. */
    RUN_STOPPED_BEFORE,
    RUN_LOST_BEFORE,
    RUN_LOST_STOPPED_BEFORE,

    /* The run's processes. */
    RUN_AGENT_REPLACED, /* number: how the agent ended, as of waitpid(); another one was started */
    RUN_AGENT_MISSING,  /* the same, but another one could not be started: reason */
    RUN_AGENT_DIED_AGAIN, /* number: as above */
    RUN_AGENTS_DIE,       /* number: as above; no other one is started */
    RUN_AGENT_GAVE_UP,    /* reason: the agent cannot continue; another one is started */
    RUN_SURVIVORS, /* the supervisor is dead; some of the command's processes cannot be killed */
    RUN_UNSEEN,    /* the same, and it cannot be seen whether there are any */
    RUN_SYSTEM_REFUSED, /* reason */

    /* The run's notifier. */
    RUN_NOT_NOTIFIED,   /* reason: the command that notifies cannot be started */
    RUN_NOTIFIED_BADLY, /* number: how it ended, as of waitpid() */

    /* The command of --stop. */
    RUN_STOP_COMMAND,             /* duration that it has: it is being started */
    RUN_STOP_COMMAND_NOT_STARTED, /* reason */
    RUN_STOP_COMMAND_TOO_LATE,    /* no time was left for it */
    RUN_STOP_COMMAND_FAILED,      /* number: how it ended, as of waitpid() */

    /* The end. */
    RUN_UNRELEASED,       /* reason; duration until the lease ends, 0: not known */
    RUN_UNRELEASED_ENDED, /* reason; the lease has ended meanwhile */

    /* A lock for a script. */
    RUN_OWNER_ENDED,   /* number: the pid of the process that the lock should be kept for */
    RUN_NO_RENEWER,    /* reason: the process that is to renew the lock cannot be started */
    RUN_PARTNER_DIED,  /* reason: its agent or renewer, before the lock was held */
    RUN_RENEWER_ENDED, /* nothing renews what was printed */
    RUN_UNDELIVERED,   /* reason: the lock could not be printed, and was released */

    RUN_EVENTS
};

/* Why something happened. */
enum run_cause {
    RUN_CAUSE_TEXT,        /* as "text" says: the store's or the system's words */
    RUN_CAUSE_WAS_STOPPED, /* the supervisor was stopped, and does not keep the deadline */
    RUN_CAUSE_TOO_LATE,    /* the lease was too short to start the command */
    RUN_CAUSE_AGENT_DIED,
    RUN_CAUSE_NO_ANSWER,  /* of the agent */
    RUN_CAUSE_UNKILLED,   /* some of the command's processes */
    RUN_CAUSE_TIME_LIMIT, /* of the command, which is "duration" */
    RUN_CAUSE_NO_RENEWAL, /* the lease ends, which was not to be renewed */
    RUN_CAUSE_UNWRITABLE, /* standard output: text */
    RUN_CAUSE_UNPRINTED,  /* when the lease ended */
    RUN_CAUSE_RENEWER_ENDED,
    /* A lease cannot be kept at a round trip of "duration": lease, needed. */
    RUN_CAUSE_TOO_FAR,
    RUN_CAUSE_GRANTED_TOO_LITTLE, /* the same, and the store grants no more */
    /* The lock is lost, with the loss (lock/keeper.h) added: key, by, text. */
    RUN_CAUSE_LOSS,
    RUN_CAUSE_NOT_RENEWED = RUN_CAUSE_LOSS + LOSS_NOT_RENEWED,

    RUN_CAUSES = RUN_CAUSE_LOSS + LOSSES
};

struct run_reason {
    enum run_cause cause;
    unsigned key;                    /* which one of several that were asked for, from 1; 0: all */
    int64_t duration, lease, needed; /* ns */
    char by[256], text[FAULT_SIZE];
};

/* Why a lock is not granted now. */
struct run_refusal {
    struct kept_answer kept;
    int64_t age;   /* ns since the answer came */
    bool ancestor; /* the holder is an ancestor of this process */
};

/* An event with what it is about. */
struct run_news {
    enum run_event event;
    unsigned key; /* which one of the request, from 1; 0: the lock as a whole */
    int64_t number;
    unsigned slot;
    int64_t duration; /* ns */
    bool remains;     /* the command has ended; its processes remain */
    enum cause cause;
    enum hint hint;
    const struct run_reason *reason;   /* borrowed; NULL: none */
    const struct run_refusal *refusal; /* in memory that both processes see */
};

struct run_events {
    void (*tell)(void *arg, const struct run_news *news);
    /* Shows why the lock is waited for. Returns after how many ns to show it anew; 0: never. Sets
     * *announced if the user reads it. */
    int64_t (*show_wait)(void *arg, const struct run_refusal *refusal, bool *announced);
    /* Takes away what show_wait() has drawn on a terminal. */
    void (*hide_wait)(void *arg);
    /* Words the line that tells news, or shows why the lock is waited for: without "rlock: ". */
    void (*word)(void *arg, const struct run_news *news, char *out, size_t size);
    void (*word_wait)(void *arg, const struct run_refusal *refusal, char *out, size_t size);
    /* Names the holder: by the refusal; NULL: this process itself, which holds the lock. "" where
     * it is not known. */
    void (*name_holder)(void *arg, const struct run_refusal *refusal, char *out, size_t size);
    /* The lock is held, with these keys, which are named from now on. NULL: it is not held any
     * more. */
    void (*granted)(void *arg, const struct lock_grant *grants);
    /* This process stays behind without the streams that the user sees: no more is reported. */
    void (*detach)(void *arg);
    void *arg;
};

static inline void run_tell(const struct run_events *events, const struct run_news *news)
{
    if (news->event != RUN_NOTHING)
        events->tell(events->arg, news);
}

/* Tells an event that has nothing to add. */
static inline void run_tell_event(const struct run_events *events, enum run_event event)
{
    const struct run_news news = {.event = event};
    run_tell(events, &news);
}

static inline void run_tell_reason(const struct run_events *events, enum run_event event,
                                   const struct run_reason *reason)
{
    const struct run_news news = {.event = event, .reason = reason};
    run_tell(events, &news);
}

/* Returns the reason of a lost lock, as the keeper knows it. */
struct run_reason run_reason_loss(const struct keeper_loss *loss);
/* Returns a reason in the store's or the system's words, cut to what there is room for. */
struct run_reason run_reason_text(const char *text);
/* Returns a reason in the words of strerror(errno). */
struct run_reason run_reason_errno(void);
/* Tells an event whose reason is errno. */
void run_tell_errno(const struct run_events *events, enum run_event event);
/* Tells an event whose reason is errno, with the name of the system call that a kernel or a sandbox
 * refuses, if one does. */
void run_tell_refusal(const struct run_events *events, enum run_event event);
/* Tells an event whose reason is "text". */
void run_tell_text(const struct run_events *events, enum run_event event, const char *text);
/* Returns the news (RUN_FAILED) of a keeper that has ended as KEEPER_FAILED: why the store could
 * not grant a request for so many keys. *reason is set, and must live as long as the news. */
struct run_news run_news_failure(const struct keeper_end *end, size_t key_count,
                                 struct run_reason *reason);
/* Tells the server's own words; "": it said none. */
static inline void run_tell_server_said(const struct run_events *events, const char *said)
{
    if (*said)
        run_tell_text(events, RUN_SERVER_SAID, said);
}

/* Returns a copy of the news with their reason, from malloc(), and frees the copy that was kept
 * before. NULL if there are none, or no memory: a guard continues without. */
struct run_news *run_news_keep(struct run_news *before, const struct run_news *news);

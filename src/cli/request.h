/* The request of `run` and `acquire`: KEYs and the options on mode, waiting, lease and identity,
 * made into a plan for a keeper. */
#pragma once

#include "cli/command.h"
#include "lock/key.h"
#include "run/agent.h"

enum {
    OPTION_EXCLUSIVE = OPTION_OTHER,
    OPTION_SHARED,
    OPTION_LIMIT,
    OPTION_LATEST,
    OPTION_GROUP,
    OPTION_REPLACE,
    OPTION_MIRROR,
    OPTION_ANY,
    OPTION_TAKE,
    OPTION_BEYOND_REQUEST /* a command's own options count from here */
};

/* Tables for a command's own: the modes; the options about waiting; those about the store and about
 * who is shown. */
extern const struct option_spec request_modes[], request_waiting[], request_rest[];
/* --mirror KIND:NAME: the lock of another program, which is held together with one of rlock's, or
 * taken away from that program. */
#define MIRROR_SIZE (16 + KEY_MAX_BYTES + 1)

/* Reads the value of the option, "KIND:NAME" or "KIND", into "KIND:NAME"; NAME defaults to the key.
 * Returns NULL, or what is wrong with the value, a constant. */
const char *mirror_read(const char *value, const char *key, char out[MIRROR_SIZE]);

/* Checks that the store has the mirror together with that key. Returns STATUS_OK, or the status
 * after a message. */
int mirror_judge(const char *mirror, const char *key, const struct call *call);

#define REQUEST_TITLE_SIZE 120

/* Prints "a, b, c"; where not all fit, "a, b and 30 more". */
void request_title(const char *const *keys, size_t count, char out[REQUEST_TITLE_SIZE]);

/* Not to be moved: its members point to each other. */
struct request {
    struct acquire_request wanted;       /* all but what the settings say */
    const char *keys[LOCK_KEYS_MAX];     /* each once, in the order given */
    char title[REQUEST_TITLE_SIZE + 28]; /* for messages; cut when they are many */
    bool mode_given;
    char mirror[MIRROR_SIZE];
    /* By rlock acquire. A shell that acquires and releases in a loop still has the token of the
     * last time, which holds nothing any more: at the deepest level, the new one replaces it
     * instead of being refused. */
    bool acquired;
    bool can_be_asked; /* a process stays that can be asked to release the lock */
    char owner[OWNER_SIZE];
    char *who; /* of request_sign(); the caller frees it */
};

/* Reads KEYs, mode, limit, group and mirror from a command line; "preset" is the option of the mode
 * that the command's name implies, 0: none. Returns NULL, or a fault for the user, which the caller
 * frees. The request borrows from the arguments. Pure. */
char *request_read(struct request *request, const struct arguments *arguments, int preset);
/* request_read() from the command line of a call. Returns STATUS_OK, or says what is wrong and
 * returns STATUS_USAGE. */
int request_take(struct request *request, const struct call *call, int preset);

/* Returns STATUS_OK if the store that the settings name has the abilities that the request needs.
 * Otherwise says which one it lacks, and returns the status for that. */
int request_judge(const struct request *request, const struct call *call);

/* Adds a fresh owner token, nested in RLOCK_OWNER, and the identity of the process "pid", which
 * runs "program". Returns STATUS_OK, or says what is wrong and returns the status for it. */
int request_sign(struct request *request, const struct call *call, const char *program, pid_t pid);

/* Fills in a plan, which borrows from the arguments: it waits from now on, as the settings say, and
 * renews the lock. */
void request_plan(const struct acquire_request *wanted, const struct settings *settings,
                  const struct run_events *events, struct agent_plan *plan);

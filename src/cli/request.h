/* What `run` and `acquire` ask the store for: KEYs and the options on mode, waiting, lease and
 * identity, made into a plan for a keeper. */
#ifndef RLOCK_CLI_REQUEST_H
#define RLOCK_CLI_REQUEST_H

#include "cli/command.h"
#include "cli/mirror.h"
#include "lock/keeper.h"
#include <sys/types.h>

enum {
    OPTION_EXCLUSIVE = OPTION_OTHER,
    OPTION_SHARED,
    OPTION_LIMIT,
    OPTION_LATEST,
    OPTION_GROUP,
    OPTION_REPLACE,
    OPTION_PRIORITY,
    OPTION_NO_REENTRANT,
    OPTION_MIRROR,
    OPTION_ANY,
    OPTION_TAKE,
    OPTION_BEYOND_REQUEST /* a command's own options count from here */
};

/* Rows for a command's table, ahead of its own; the first REQUEST_MODES of them choose the mode. */
#define REQUEST_MODES 3
#define REQUEST_OPTIONS                                                                            \
    {.id = OPTION_EXCLUSIVE,                                                                       \
     .name = "exclusive",                                                                          \
     .also = {"write"},                                                                            \
     .letter = 'x',                                                                                \
     .help = "one holder (default)"},                                                              \
        {.id = OPTION_SHARED,                                                                      \
         .name = "shared",                                                                         \
         .also = {"read"},                                                                         \
         .letter = 's',                                                                            \
         .help = "many readers, or one writer"},                                                   \
        {.id = OPTION_LIMIT,                                                                       \
         .name = "limit",                                                                          \
         .argument = "N",                                                                          \
         .optional = request_is_limit,                                                             \
         .help = "a semaphore: at most N holders at once, each with a slot from 1 to N; without "  \
                 "N, as many as rlock limit has stored"},                                          \
        {.id = OPTION_NO_WAIT,                                                                     \
         .name = "no-wait",                                                                        \
         .also = {"nonblock"},                                                                     \
         .letter = 'n',                                                                            \
         .help = "do not wait"},                                                                   \
        {.id = SETTING_WAIT,                                                                       \
         .name = "wait",                                                                           \
         .also = {"timeout"},                                                                      \
         .letter = 'w',                                                                            \
         .argument = "DUR",                                                                        \
         .help = "wait at most DUR (default: for ever)"},                                          \
        {.id = SETTING_CONFLICT_EXIT_CODE,                                                         \
         .name = "conflict-exit-code",                                                             \
         .letter = 'E',                                                                            \
         .argument = "N",                                                                          \
         .help = "status when not acquired (default 75); 0 skips silently, for cron"},             \
        {.id = OPTION_PRIORITY,                                                                    \
         .name = "priority",                                                                       \
         .argument = "N",                                                                          \
         .help = "-9 to 9 (default 0): served before lower ones, but never before "       \
                 "those that have waited for 15 minutes"},                                         \
        {.id = OPTION_LATEST,                                                                      \
         .name = "latest",                                                                         \
         .help = "send away those that wait already with --latest, in the same group"},            \
        {.id = OPTION_GROUP,                                                                       \
         .name = "group",                                                                          \
         .argument = "NAME",                                                                       \
         .help = "the group that --latest is about (default: KEY)"},                               \
        {.id = OPTION_REPLACE,                                                                     \
         .name = "replace",                                                                        \
         .help = "ask the holder to stop its command and give the lock back, as force-release "    \
                 "does; those that wait already still come first"},                                \
        {.id = SETTING_LEASE,                                                                      \
         .name = "lease",                                                                          \
         .argument = "DUR",                                                                        \
         .help = "the lock outlives a dead holder by at most this (default 30s, at least 1s)"},    \
        {.id = SETTING_REPLICAS,                                                                   \
         .name = "replicas",                                                                       \
         .argument = "N",                                                                          \
         .help = "the lock counts only once N replicas, a majority or all have it (default 0)"},   \
        {.id = SETTING_GRACE,                                                                      \
         .name = "grace",                                                                          \
         .help = "wait one lease if the store may have forgotten who holds what"},                 \
        {.id = OPTION_MIRROR,                                                                      \
         .name = "mirror",                                                                         \
         .argument = "KIND[:NAME]",                                                                \
         .help = "hold another library's lock in the store besides: string:NAME for a key that "   \
                 "is there while it is held (redis-py, redsync, Spring), redisson:NAME for "       \
                 "Redisson's RLock, shedlock:NAME in a database (default NAME: KEY)"},             \
        {.id = OPTION_NO_REENTRANT,                                                                \
         .name = "no-reentrant",                                                                   \
         .help = "do not treat an ancestor's lock as one's own"},                                  \
        {.id = SETTING_LABEL,                                                                      \
         .name = "label",                                                                          \
         .argument = "TEXT",                                                                       \
         .help = "shown to others (default: the CI job's URL)"},                                   \
    {                                                                                              \
        .id = SETTING_NO_IDENTITY, .name = "no-identity",                                          \
        .help = "store no host, user, pid or command name"                                         \
    }

/* Further rows, of a command that takes several KEYs. */
#define REQUEST_ANY_OPTIONS                                                                        \
    {.id = OPTION_ANY,                                                                             \
     .name = "any",                                                                                \
     .help = "hold one of the KEYs, the first that is free (RLOCK_KEY says which)"},               \
    {                                                                                              \
        .id = OPTION_TAKE, .name = "take", .argument = "N", .help = "with --any: N of the KEYs"    \
    }

#define REQUEST_TITLE_SIZE  120

/* "a, b, c"; where not all fit, "a, b and 30 more". */
void request_title(const char *const *keys, size_t count, char out[REQUEST_TITLE_SIZE]);

/* Whether the word after --limit is its number: it is all digits. */
bool request_is_limit(const char *word);

struct request {
    const char *keys[LOCK_KEYS_MAX]; /* each once, in the order given */
    size_t key_count;
    size_t take;                         /* as in an acquire_request: so many of them; 0: all */
    char title[REQUEST_TITLE_SIZE + 28]; /* for messages; cut when they are many */
    enum lock_mode mode;
    bool mode_given;
    unsigned limit; /* 0: the one that is stored */
    bool no_nesting;
    int64_t unless_done; /* ns; 0: no matter. Set by the caller */
    int priority;
    const char *group; /* to be the only one of that wait; "": of each key's own; NULL: no matter */
    bool replace;      /* those that hold it are asked to give it back */
    char mirror[MIRROR_SIZE]; /* "KIND:NAME"; "": none */
    /* By rlock acquire. A shell that acquires and releases in a loop goes on with the token of the
     * last time, which holds nothing any more: at the deepest level, it takes that one's place
     * instead of being refused. */
    bool acquired;
    bool hears; /* a process stays that gives the lock back when it is asked to */
    char owner[OWNER_SIZE];
    char *who;
};

/* Takes KEYs, mode and limit from a command line; "preset" is one of the mode's options that the
 * name of the command implies, 0: none. False with a fault that is the user's. The request borrows
 * from the arguments. Pure. */
bool request_read(struct request *request, const struct arguments *arguments, int preset,
                  char *fault, size_t size);

/* Whether the store that the settings name can do that: STATUS_OK, or says what it cannot, and
 * returns the status for it. */
int request_judge(const struct request *request, const struct command *command,
                  const struct settings *settings);

/* Adds a fresh owner token, nested in RLOCK_OWNER, and who asks: the process "pid", which runs
 * "program". Returns STATUS_OK, or says what is wrong and returns the status for it. */
int request_sign(struct request *request, const struct command *command,
                 const struct settings *settings, const char *program, pid_t pid);

/* Fills in a plan, which borrows from request and settings: to be waited for from now on as the
 * settings say, and renewed. */
void request_plan(const struct request *request, const struct settings *settings,
                  struct keeper_plan *plan);

/* Gives back what request_sign() made. */
void request_free(struct request *request);

#endif

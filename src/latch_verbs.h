/* What can be done with a latch by `rlock latch`: each does it, says what there is to say, and returns
 * the exit status. If session.signal is set then, this process is to die of it. */
#ifndef RLOCK_LATCH_VERBS_H
#define RLOCK_LATCH_VERBS_H

#include "command.h"
#include "latch_session.h"
#include "owner.h"

struct latch {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct latch_session session;
    const char *key;
    int64_t number, ttl;
    const char *id;             /* the user's, or NULL */
    char word[OWNER_UUID_SIZE]; /* a fresh one */
    bool json, keep_credentials;
};

int latch_set(struct latch *latch);
int latch_count_down(struct latch *latch);
int latch_run_command(struct latch *latch);
int latch_wait(struct latch *latch);
int latch_show(struct latch *latch);
int latch_delete(struct latch *latch);

#endif

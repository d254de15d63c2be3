/* What a database keeps of one lock, and the rules that it follows. rlock reads the row, decides
 * here, on a copy, and writes it back if nobody else has written it since (store/sql/operation.h).
 * Pure.
 *
 * The state is text: "rlock/1 FENCE", the last fence that was issued, and a line for each holder:
 *     DEADLINE LEASE SINCE FENCE MODE LIMIT SLOT OWNER WHO
 * Where another program's lock is held with it, a line stands before them:
 *     mirror shedlock OWNER HOST NAME
 * Times are in us since 1970 by the server's clock, LEASE is in us. MODE is x (exclusive), s
 * (shared) or l (semaphore). Who nests in whom is told by the owners (lock/lock.h).
 *
 * A row may be a latch instead (store/sql/latch.h); once that is deleted or has expired, it is a
 * lock that nobody has, and its fences go on. */
#ifndef RLOCK_STORE_SQL_ROW_H
#define RLOCK_STORE_SQL_ROW_H

#include "lock/lock.h"
#include "store/sql/latch.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a state: some 2000 holders. */
#define SQL_STATE_MAX (256U << 10)

/* Bytes of a host's name with a mirror. */
#define SQL_MIRROR_HOST_MAX 100

struct sql_holder {
    int64_t deadline, lease, since; /* us */
    uint64_t fence;
    enum lock_mode mode;
    unsigned limit, slot; /* of a semaphore; 0 */
    char *owner, *who;
};

/* A lock of ShedLock's that is held together with ours (store/sql/mirror.h), as long as "family" or
 * somebody who nests in it holds ours. */
struct sql_mirror {
    char *family; /* an owner; NULL: there is no mirror */
    char *host;   /* of the holder; "-": not known */
    char *name;
};

/* All zero: a lock that nobody has had yet. */
struct sql_row {
    int64_t version; /* 0: there is no row */
    uint64_t fence;
    struct sql_holder *holders; /* in the order of acquisition */
    size_t count;
    struct sql_mirror mirror;
    struct sql_latch *latch; /* NULL: it is a lock; otherwise it has no holders and no mirror */
};

/* Who wants it, and how. */
struct sql_claim {
    const char *owner, *who;
    enum lock_mode mode;
    unsigned limit; /* LOCK_LIMIT */
    bool no_nesting;
    int64_t lease; /* us */
};

/* Reads a state in place of what the row was; false if it is none: the row is then empty. The
 * version is not part of it, and 0. The caller frees. */
bool sql_row_read(struct sql_row *row, const char *state);
/* The same where the state of a latch may have been cut after its SQL_LATCH_HEAD first bytes; what
 * was counted is not read. */
bool sql_row_read_head(struct sql_row *row, const char *state);
/* A mirror that nobody shares any more is left out. The caller frees. NULL if it is longer than
 * SQL_STATE_MAX, or SQL_LATCH_MAX. */
char *sql_row_print(const struct sql_row *row);
/* Empties it. */
void sql_row_free(struct sql_row *row);

/* Takes out those whose lease has ended, and a latch that has expired. A lease that ends later than
 * it is long is cut: the server's clock was set back. True if one was cut by so much that it is
 * worth writing. */
bool sql_row_clean(struct sql_row *row, int64_t now);

/* Does with the latch that it is, or becomes, what is asked for. A lock is none as long as somebody
 * holds it, or "waited", waits for it; what was cut from its leases is worth writing then. */
enum sql_latch_change sql_row_latch(struct sql_row *row, const struct latch_request *request,
                                    int64_t now, bool waited, struct answer *answer);

/* NULL: none. */
struct sql_holder *sql_row_find(const struct sql_row *row, const char *owner);
/* The nearest of owner's ancestors that holds it. */
struct sql_holder *sql_row_parent(const struct sql_row *row, const char *owner);

/* Why it can never be had like this, a text in "why"; false if it can. */
bool sql_row_is_misfit(const struct sql_row *row, const struct sql_claim *claim, char *why,
                       size_t size);
/* Whether others keep it out. *count, *till: how many, and when the first of their leases ends. */
bool sql_row_is_blocked(const struct sql_row *row, const struct sql_claim *claim, int64_t *count,
                        int64_t *till);
/* One of those that keep it out, before those that nest in it; NULL: there is none. */
const struct sql_holder *sql_row_blocker(const struct sql_row *row, const struct sql_claim *claim);
/* Who has held it for longest; NULL: nobody. */
const struct sql_holder *sql_row_oldest(const struct sql_row *row);

/* Makes it a holder, with a new fence, or its ancestor's. */
struct sql_holder *sql_row_take(struct sql_row *row, const struct sql_claim *claim, int64_t now);
/* The outermost of owner's ancestors that holds it, or itself. */
const char *sql_row_family(const struct sql_row *row, const char *owner);
/* Whether that one is "owner", or an ancestor of it. False without a mirror. */
bool sql_row_mirrors(const struct sql_row *row, const char *owner);
/* Has the claim's family hold that mirror. */
void sql_row_mirror(struct sql_row *row, const struct sql_claim *claim, const char *name);
/* When the last lease of the mirror's family ends, in us; 0: it has none, as without a mirror. */
int64_t sql_row_mirrored_until(const struct sql_row *row);
void sql_row_forget_mirror(struct sql_row *row);
void sql_row_remove(struct sql_row *row, struct sql_holder *holder);
/* Keeps it until so many us after it was acquired, with notes behind who it is. */
void sql_row_keep(struct sql_holder *holder, int64_t at_least, int64_t now, const char *notes);

/* As it is shown to others. */
struct lock_party sql_row_party(const struct sql_row *row, const struct sql_holder *holder,
                                int64_t now);

char sql_mode_letter(enum lock_mode mode);
bool sql_mode_read(char letter, enum lock_mode *mode);

#endif

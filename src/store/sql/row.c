/* A lock as text, and its rules. */
#include "store/sql/row.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "lock/owner.h"

#define HEAD       "rlock/1 "
#define LATCH_HEAD SQL_LATCH_MARK "1 "
#define MIRROR     "mirror shedlock "
#define NUMBER_MAX (INT64_MAX / 4) /* sums of two do not overflow */
/* Clocks of several servers of one database may differ by less. */
#define CUT_LEAST (1000 * US_PER_MS)

static const char letters[] = "xsl";

char sql_mode_letter(enum lock_mode mode)
{
    return letters[mode];
}

bool sql_mode_read(char letter, enum lock_mode *mode)
{
    const char *at = letter ? strchr(letters, letter) : NULL;

    if (at)
        *mode = (enum lock_mode)(at - letters);
    return at;
}

/* -- text -------------------------------------------------------------------------------------- */

static bool take_number(const char **text, int64_t most, int64_t *number)
{
    return decimal_take(text, most, number) && *(*text)++ == ' ';
}

/* Up to a character that ends it. */
static char *take_word(const char **text, const char *ends)
{
    size_t length = strcspn(*text, ends);
    char *word = mem_checked(strndup(*text, length));

    *text += length;
    return word;
}

static bool take_holder(const char **text, struct sql_holder *holder)
{
    int64_t fence, limit, slot;

    if (!take_number(text, NUMBER_MAX, &holder->deadline) ||
        !take_number(text, NUMBER_MAX, &holder->lease) ||
        !take_number(text, NUMBER_MAX, &holder->since) || !take_number(text, NUMBER_MAX, &fence) ||
        !sql_mode_read(**text, &holder->mode) || *++*text != ' ')
        return false;
    ++*text;
    if (!take_number(text, LOCK_LIMIT_MAX, &limit) || !take_number(text, LOCK_LIMIT_MAX, &slot))
        return false;
    holder->fence = (uint64_t)fence;
    holder->limit = (unsigned)limit;
    holder->slot = (unsigned)slot;
    holder->owner = take_word(text, " \n");
    if (**text == ' ')
        ++*text;
    holder->who = take_word(text, "\n");
    return *holder->owner && strlen(holder->owner) < OWNER_SIZE && *(*text)++ == '\n';
}

static struct sql_holder *add_holder(struct sql_row *row)
{
    row->holders = mem_checked(realloc(row->holders, (row->count + 1) * sizeof *row->holders));
    struct sql_holder *holder = &row->holders[row->count++];
    memset(holder, 0, sizeof *holder);
    return holder;
}

/* The rest of the line is the name. */
static bool take_mirror(const char **text, struct sql_mirror *mirror)
{
    if (strncmp(*text, MIRROR, strlen(MIRROR)) != 0)
        return true;
    *text += strlen(MIRROR);
    mirror->family = take_word(text, " \n");
    *text += **text == ' ';
    mirror->host = take_word(text, " \n");
    *text += **text == ' ';
    mirror->name = take_word(text, "\n");
    return *mirror->family && strlen(mirror->family) < OWNER_SIZE && *mirror->host &&
           *mirror->name && *(*text)++ == '\n';
}

/* What kind of row it is, and the last fence. */
static bool take_kind(const char **text, const char *kind, uint64_t *fence)
{
    const char *at = *text + strlen(kind);
    int64_t number;

    if (strncmp(*text, kind, strlen(kind)) != 0 || !decimal_take(&at, NUMBER_MAX, &number) ||
        *at++ != '\n')
        return false;
    *text = at;
    *fence = (uint64_t)number;
    return true;
}

static bool read_state(struct sql_row *row, const char *state, bool head)
{
    if (take_kind(&state, LATCH_HEAD, &row->fence)) {
        row->latch = sql_latch_read(state, head);
        return row->latch;
    }
    if (!take_kind(&state, HEAD, &row->fence) || !take_mirror(&state, &row->mirror))
        return false;
    while (*state)
        if (!take_holder(&state, add_holder(row)))
            return false;
    return true;
}

static bool read_whole(struct sql_row *row, const char *state, bool head)
{
    sql_row_free(row);
    bool sound = read_state(row, state, head);
    if (!sound)
        sql_row_free(row);
    return sound;
}

bool sql_row_read(struct sql_row *row, const char *state)
{
    return read_whole(row, state, false);
}

bool sql_row_read_head(struct sql_row *row, const char *state)
{
    return read_whole(row, state, true);
}

char *sql_row_print(const struct sql_row *row)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = mem_checked(open_memstream(&text, &size));

    fprintf(out, "%s%" PRIu64 "\n", row->latch ? LATCH_HEAD : HEAD, row->fence);
    if (row->latch)
        sql_latch_print(row->latch, out);
    if (sql_row_mirrored_until(row) > 0)
        fprintf(out, MIRROR "%s %s %s\n", row->mirror.family, row->mirror.host, row->mirror.name);
    for (size_t i = 0; i < row->count; i++) {
        const struct sql_holder *holder = &row->holders[i];
        fprintf(out, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %c %u %u %s %s\n",
                holder->deadline, holder->lease, holder->since, holder->fence,
                sql_mode_letter(holder->mode), holder->limit, holder->slot, holder->owner,
                holder->who);
    }
    fclose(out);
    if (size <= (row->latch ? SQL_LATCH_MAX : SQL_STATE_MAX))
        return text;
    free(text);
    return NULL;
}

static void free_holder(struct sql_holder *holder)
{
    free(holder->owner);
    free(holder->who);
}

static void forget_latch(struct sql_row *row)
{
    sql_latch_free(row->latch);
    row->latch = NULL;
}

void sql_row_free(struct sql_row *row)
{
    for (size_t i = 0; i < row->count; i++)
        free_holder(&row->holders[i]);
    free(row->holders);
    row->holders = NULL;
    row->count = 0;
    row->fence = 0;
    row->version = 0;
    sql_row_forget_mirror(row);
    forget_latch(row);
}

/* -- who holds it ------------------------------------------------------------------------------ */

void sql_row_remove(struct sql_row *row, struct sql_holder *holder)
{
    size_t at = (size_t)(holder - row->holders);

    free_holder(holder);
    row->count--;
    memmove(holder, holder + 1, (row->count - at) * sizeof *holder);
}

bool sql_row_clean(struct sql_row *row, int64_t now)
{
    bool cut = false;

    if (row->latch && row->latch->expires <= now)
        forget_latch(row);
    for (size_t i = row->count; i-- > 0;) {
        struct sql_holder *holder = &row->holders[i];
        cut |= holder->deadline > now + holder->lease + CUT_LEAST;
        if (holder->deadline > now + holder->lease)
            holder->deadline = now + holder->lease;
        if (holder->deadline <= now)
            sql_row_remove(row, holder);
    }
    return cut;
}

enum sql_latch_change sql_row_latch(struct sql_row *row, const struct latch_request *request,
                                    int64_t now, bool waited, struct answer *answer)
{
    bool cut = sql_row_clean(row, now);

    if (row->count > 0 || (!row->latch && waited)) {
        sql_latch_refuse(answer, CAUSE_MISFIT, SQL_LATCH_IS_LOCK);
        return cut && request->verb == LATCH_SET ? SQL_LATCH_CHANGED : SQL_LATCH_SAME;
    }
    sql_row_forget_mirror(row);
    return sql_latch_apply(&row->latch, request, now, answer);
}

struct sql_holder *sql_row_find(const struct sql_row *row, const char *owner)
{
    for (size_t i = 0; i < row->count; i++)
        if (strcmp(row->holders[i].owner, owner) == 0)
            return &row->holders[i];
    return NULL;
}

struct sql_holder *sql_row_parent(const struct sql_row *row, const char *owner)
{
    struct sql_holder *nearest = NULL;

    for (size_t i = 0; i < row->count; i++) {
        struct sql_holder *holder = &row->holders[i];
        if (owner_nests_in(owner, holder->owner) &&
            (!nearest || strlen(holder->owner) > strlen(nearest->owner)))
            nearest = holder;
    }
    return nearest;
}

const struct sql_holder *sql_row_oldest(const struct sql_row *row)
{
    const struct sql_holder *oldest = NULL;

    for (size_t i = 0; i < row->count; i++)
        if (!oldest || row->holders[i].fence < oldest->fence)
            oldest = &row->holders[i];
    return oldest;
}

/* -- the rules --------------------------------------------------------------------------------- */

bool sql_row_is_misfit(const struct sql_row *row, const struct sql_claim *claim, char *why,
                       size_t size)
{
    const struct sql_holder *parent = sql_row_parent(row, claim->owner);
    bool limited = claim->mode == LOCK_LIMIT;

    if (row->latch) {
        snprintf(why, size, SQL_LATCH_IS_ONE);
        return true;
    }
    if (parent && claim->no_nesting) {
        snprintf(why, size, "it is held by an ancestor of this process, and nesting was ruled out");
        return true;
    }
    if (parent && parent->mode == LOCK_SHARED && claim->mode == LOCK_EXCLUSIVE) {
        snprintf(why, size,
                 "an ancestor of this process holds it for reading: a writer inside it would wait "
                 "for itself");
        return true;
    }
    for (size_t i = 0; i < row->count; i++) {
        const struct sql_holder *holder = &row->holders[i];
        if ((holder->mode == LOCK_LIMIT) == limited && (!limited || holder->limit == claim->limit))
            continue;
        if (holder->mode == LOCK_LIMIT)
            snprintf(why, size, "it is held as a semaphore with a limit of %u", holder->limit);
        else
            snprintf(why, size, "it is held as a plain lock, not as a semaphore");
        return true;
    }
    return false;
}

/* Those that nest in one of its holders count with that one. */
static bool is_nested(const struct sql_row *row, const struct sql_holder *holder)
{
    return sql_row_parent(row, holder->owner);
}

bool sql_row_is_blocked(const struct sql_row *row, const struct sql_claim *claim, int64_t *count,
                        int64_t *till)
{
    const struct sql_holder *parent = sql_row_parent(row, claim->owner);
    bool alone = false;

    *count = 0;
    *till = INT64_MAX;
    for (size_t i = 0; i < row->count; i++) {
        const struct sql_holder *holder = &row->holders[i];
        if (parent && !owner_nests_in(holder->owner, parent->owner))
            continue;
        bool goes = claim->mode == LOCK_SHARED && holder->mode == LOCK_SHARED;
        if (parent ? goes : is_nested(row, holder) && goes)
            continue;
        alone = alone || !goes;
        *count += parent || !is_nested(row, holder);
        if (holder->deadline < *till)
            *till = holder->deadline;
    }
    if (!parent && claim->mode == LOCK_LIMIT)
        return *count >= claim->limit;
    return alone;
}

/* Whoever nests comes behind those in whom it nests, in the order of acquisition. */
const struct sql_holder *sql_row_blocker(const struct sql_row *row, const struct sql_claim *claim)
{
    const struct sql_holder *parent = sql_row_parent(row, claim->owner);

    for (size_t i = 0; i < row->count; i++) {
        const struct sql_holder *holder = &row->holders[i];
        bool goes = claim->mode == LOCK_SHARED && holder->mode == LOCK_SHARED;
        if (!goes && (!parent || owner_nests_in(holder->owner, parent->owner)))
            return holder;
    }
    return NULL;
}

static unsigned free_slot(const struct sql_row *row)
{
    for (unsigned slot = 1;; slot++) {
        bool taken = false;
        for (size_t i = 0; i < row->count; i++)
            taken = taken || row->holders[i].slot == slot;
        if (!taken)
            return slot;
    }
}

struct sql_holder *sql_row_take(struct sql_row *row, const struct sql_claim *claim, int64_t now)
{
    const struct sql_holder *parent = sql_row_parent(row, claim->owner);
    unsigned slot = parent ? parent->slot : claim->mode == LOCK_LIMIT ? free_slot(row) : 0;
    uint64_t fence = parent ? parent->fence : row->fence + 1;

    if (!parent && fence < (uint64_t)now)
        fence = (uint64_t)now;
    if (fence > row->fence)
        row->fence = fence;
    struct sql_holder *holder = add_holder(row);
    *holder = (struct sql_holder){.deadline = now + claim->lease,
                                  .lease = claim->lease,
                                  .since = now,
                                  .fence = fence,
                                  .mode = claim->mode,
                                  .limit = claim->mode == LOCK_LIMIT ? claim->limit : 0,
                                  .slot = slot,
                                  .owner = mem_strdup(claim->owner),
                                  .who = mem_strdup(claim->who)};
    return holder;
}

void sql_row_keep(struct sql_holder *holder, int64_t at_least, int64_t now, const char *notes)
{
    const char *who = *holder->who ? holder->who : "- - - - -";
    int64_t since = holder->since < now ? holder->since : now;
    char *noted;

    holder->deadline = since + at_least;
    holder->lease = at_least;
    if (identity_noted(holder->who, strlen(holder->who), LOCK_NOTE_KEPT) > 0)
        return;
    if (asprintf(&noted, "%s %s", who, notes) < 0)
        abort();
    free(holder->who);
    holder->who = noted;
}

/* -- a mirror ---------------------------------------------------------------------------------- */

const char *sql_row_family(const struct sql_row *row, const char *owner)
{
    const char *family = owner;

    for (size_t i = 0; i < row->count; i++)
        if (owner_nests_in(family, row->holders[i].owner))
            family = row->holders[i].owner;
    return family;
}

static bool belongs(const char *owner, const char *family)
{
    return strcmp(owner, family) == 0 || owner_nests_in(owner, family);
}

bool sql_row_mirrors(const struct sql_row *row, const char *owner)
{
    return row->mirror.family && belongs(owner, row->mirror.family);
}

void sql_row_forget_mirror(struct sql_row *row)
{
    free(row->mirror.family);
    free(row->mirror.host);
    free(row->mirror.name);
    row->mirror = (struct sql_mirror){0};
}

/* What no host's name has would not fit into each table's character set. */
static char *print_host(const char *host)
{
    char *name = mem_strdup(*host ? host : "-");

    for (char *at = name; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *at))
            *at = '_';
    if (strlen(name) > SQL_MIRROR_HOST_MAX)
        name[SQL_MIRROR_HOST_MAX] = '\0';
    return name;
}

void sql_row_mirror(struct sql_row *row, const struct sql_claim *claim, const char *name)
{
    struct sql_mirror mirror = {.family = mem_strdup(sql_row_family(row, claim->owner)),
                                .name = mem_strdup(name)};
    struct identity who;

    identity_parse(claim->who, strlen(claim->who), &who);
    mirror.host = print_host(who.host);
    sql_row_forget_mirror(row);
    row->mirror = mirror;
}

int64_t sql_row_mirrored_until(const struct sql_row *row)
{
    int64_t until = 0;

    for (size_t i = 0; i < row->count; i++)
        if (sql_row_mirrors(row, row->holders[i].owner) && row->holders[i].deadline > until)
            until = row->holders[i].deadline;
    return until;
}

/* -- as it is shown ---------------------------------------------------------------------------- */

static struct lock_end read_end(const char *text, size_t length)
{
    int64_t signal = identity_noted(text, length, LOCK_NOTE_SIGNAL);
    int64_t status = identity_noted(text, length, LOCK_NOTE_EXIT);
    struct lock_end end = {.ran_ms = identity_noted(text, length, LOCK_NOTE_RAN)};

    end.known = end.ran_ms > 0 && signal < NSIG && status <= UINT8_MAX;
    end.signal = end.known ? (int)signal : 0;
    end.status = end.known ? (int)status : 0;
    return end;
}

struct lock_party sql_row_party(const struct sql_row *row, const struct sql_holder *holder,
                                int64_t now)
{
    struct lock_party party = {.mode = holder->mode,
                               .slot = holder->slot,
                               .count = 1,
                               .since_ms = holder->since / US_PER_MS,
                               .age_ms = (now - holder->since) / US_PER_MS,
                               .left_ms = (holder->deadline - now) / US_PER_MS,
                               .fence = holder->fence};
    size_t length = strlen(holder->who);

    snprintf(party.owner, sizeof party.owner, "%s", holder->owner);
    for (size_t i = 0; i < row->count; i++)
        party.count += owner_nests_in(row->holders[i].owner, holder->owner);
    party.heard_ms = holder->lease / US_PER_MS - party.left_ms;
    party.heard_ms = party.heard_ms > 0 ? party.heard_ms : 0;
    identity_parse(holder->who, length, &party.who);
    party.waited_ms = identity_noted(holder->who, length, LOCK_NOTE_WAITED);
    party.kept = identity_noted(holder->who, length, LOCK_NOTE_KEPT) > 0;
    party.reserved = identity_noted(holder->who, length, LOCK_NOTE_RESERVED) > 0;
    party.end = read_end(holder->who, length);
    return party;
}

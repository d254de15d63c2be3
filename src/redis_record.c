/* The lines of holders and waiters. */
#include "redis_record.h"

#include <ctype.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "redis_reply.h"

/* The next word of a record as a number; false if there is none. */
static bool take_number(const char **text, int64_t *number)
{
    char *end;

    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *number = strtoll(*text, &end, 10);
    if (errno != 0 || *end != ' ')
        return false;
    *text = end + 1;
    return true;
}

static bool take_owner(const char **text, char owner[OWNER_SIZE])
{
    size_t length = strcspn(*text, " ");

    if (length == 0 || length >= OWNER_SIZE || (*text)[length] != ' ')
        return false;
    memcpy(owner, *text, length);
    owner[length] = '\0';
    *text += length + 1;
    return true;
}

/* From one moment of the store to another. */
static int64_t span(int64_t from, int64_t to)
{
    const int64_t most = REDIS_SPAN_MAX;

    return to - from > most ? most : to - from < -most ? -most : to - from;
}

static bool take_mode(const char **text, enum lock_mode *mode)
{
    static const char letters[] = "xsl";
    const char *letter = **text ? strchr(letters, **text) : NULL;

    if (!letter || (*text)[1] != ' ')
        return false;
    *mode = (enum lock_mode)(letter - letters);
    *text += 2;
    return true;
}

/* DEADLINE LEASE FENCE OWNER SINCE MODE SLOT WHO, as lock.lua writes it. */
bool redis_record_holder(const struct redisReply *record, int64_t now, struct lock_party *holder)
{
    const char *text = record->str;
    int64_t deadline, lease, fence, slot;

    memset(holder, 0, sizeof *holder);
    if (record->type != REDIS_REPLY_STRING || !take_number(&text, &deadline) ||
        !take_number(&text, &lease) || !take_number(&text, &fence) ||
        !take_owner(&text, holder->owner) || !take_number(&text, &holder->since_ms) ||
        !take_mode(&text, &holder->mode) || !take_number(&text, &slot) || slot > UINT_MAX)
        return false;
    holder->left_ms = span(now, deadline);
    holder->age_ms = span(holder->since_ms, now);
    holder->fence = (uint64_t)fence;
    holder->slot = (unsigned)slot;
    holder->count = 1;
    identity_parse(text, (size_t)(record->str + record->len - text), &holder->who);
    return true;
}

/* DEADLINE OWNER SINCE MODE WHO. */
bool redis_record_waiter(const struct redisReply *record, int64_t now, struct lock_party *waiter)
{
    const char *text = record->str;
    int64_t deadline;

    memset(waiter, 0, sizeof *waiter);
    if (record->type != REDIS_REPLY_STRING || !take_number(&text, &deadline) ||
        !take_owner(&text, waiter->owner) || !take_number(&text, &waiter->since_ms) ||
        !take_mode(&text, &waiter->mode))
        return false;
    waiter->age_ms = span(waiter->since_ms, now);
    identity_parse(text, (size_t)(record->str + record->len - text), &waiter->who);
    return true;
}

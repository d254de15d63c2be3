/* The scripts' words. */
#include "redis_answer.h"
#include "mem.h"
#include "redis_error.h"
#include "redis_record.h"
#include "redis_reply.h"
#include "scripts.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

static void answer_refused(struct answer *answer, enum cause cause)
{
    answer->verdict = VERDICT_REFUSED;
    answer->cause = cause;
}

static void answer_unknown(struct answer *answer, enum cause cause, const char *text)
{
    answer->verdict = VERDICT_UNKNOWN;
    answer->cause = cause;
    snprintf(answer->text, sizeof answer->text, "%s", text);
}

static void answer_misfit(struct answer *answer, const char *what)
{
    static const struct {
        const char *word, *text;
    } known[] = {
        {"damaged", "the store's key of that name holds other data, or is damaged"},
        {"lock", "it is held as a plain lock, not as a semaphore"},
        {"nested", "it is held by an ancestor of this process, and --no-reentrant was given"},
        {"upgrade", "it is held for reading by an ancestor of this process: to write would wait "
                    "for itself"},
        {"latch/1", "the key is a latch"},
    };
    const char *limit = strncmp(what, "limit ", 6) == 0 ? what + 6 : "";

    answer_refused(answer, CAUSE_MISFIT);
    if (*limit && limit[strspn(limit, "0123456789")] == '\0')
        snprintf(answer->text, sizeof answer->text, "it is held as a semaphore with --limit %.20s",
                 limit);
    else
        snprintf(answer->text, sizeof answer->text, "the key is no lock but '%.40s'", what);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(what, known[i].word) == 0)
            snprintf(answer->text, sizeof answer->text, "%s", known[i].text);
    }
}

/* From i on: which key, how many holders, ms until the first may be gone, one of them. */
static void read_holders(const redisReply *reply, size_t i, int64_t now, struct answer *answer)
{
    const char *text = redis_reply_string(reply, i + 3);
    int64_t key = redis_reply_number(reply, i);

    answer->key = key >= 1 && key <= LOCK_KEYS_MAX ? (size_t)key - 1 : 0;
    answer->holders = redis_reply_count(reply, i + 1);
    answer->left_ms = redis_reply_span(reply, i + 2);
    if (!text || !*text || !redis_record_holder(reply->element[i + 3], now, &answer->holder))
        memset(&answer->holder, 0, sizeof answer->holder);
}

static bool read_fence(const char *text, uint64_t *fence)
{
    if (!text || *text == '0' || !*text || text[strspn(text, "0123456789")] || strlen(text) > 16)
        return false;
    *fence = strtoull(text, NULL, 10);
    return true;
}

static void read_granted(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    const redisReply *fences = redis_reply_list(reply, 2), *slots = redis_reply_list(reply, 3);
    size_t count = fences ? fences->elements : 0;

    bool sound = count >= 1 && count <= LOCK_KEYS_MAX && slots && slots->elements == count;
    for (size_t i = 0; sound && i < count; i++) {
        int64_t slot = redis_reply_number(slots, i);
        sound = read_fence(redis_reply_string(fences, i), &answer->grants[i].fence) && slot >= 0 &&
                slot <= UINT_MAX;
        answer->grants[i].slot = (unsigned)slot;
    }
    if (!sound) {
        redis_error_senseless(answer);
        return;
    }
    extra->grants = count;
    answer->verdict = VERDICT_GRANTED;
    answer->late = redis_reply_number(reply, 4) == 1;
    answer->forgotten = redis_reply_number(reply, 4) == 2;
}

static void read_released(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    (void)reply;
    (void)extra;
    answer->verdict = VERDICT_GRANTED;
}

static void read_queued(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    answer_refused(answer, CAUSE_HELD);
    extra->places = redis_reply_string(reply, 2);
    answer->position = redis_reply_count(reply, 3);
    answer->requeued = redis_reply_number(reply, 4) == 1;
    read_holders(reply, 5, extra->now_ms, answer);
}

static void read_grace(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    answer_refused(answer, CAUSE_GRACE);
    answer->grace_ms = redis_reply_number(reply, 2);
    store_print_grace(answer->grace_ms, answer->text, sizeof answer->text);
    extra->places = redis_reply_string(reply, 3);
    answer->position = redis_reply_number(reply, 4);
    answer->requeued = redis_reply_number(reply, 5) == 1;
}

static void read_held(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    answer_refused(answer, CAUSE_HELD);
    answer->position = redis_reply_count(reply, 2);
    read_holders(reply, 3, extra->now_ms, answer);
}

static void read_stale(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    (void)reply;
    extra->stale = true;
    answer_unknown(answer, CAUSE_NOT_READY, "the request took too long");
}

static void read_barred(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    (void)reply;
    (void)extra;
    answer_unknown(answer, CAUSE_UNREACHABLE, "the request was withdrawn");
}

static void read_not_holder(const redisReply *reply, struct answer *answer,
                            struct redis_extra *extra)
{
    answer_refused(answer, CAUSE_NOT_HOLDER);
    read_holders(reply, 2, extra->now_ms, answer);
}

static void read_changed(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    answer_refused(answer, CAUSE_CHANGED);
    read_holders(reply, 2, extra->now_ms, answer);
}

static void read_misfit(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    const char *what = redis_reply_string(reply, 2);
    int64_t key = redis_reply_number(reply, 3);

    (void)extra;
    answer_misfit(answer, what ? what : "?");
    answer->key = key >= 1 && key <= LOCK_KEYS_MAX ? (size_t)key - 1 : 0;
}

static const struct {
    const char *word;
    void (*read)(const redisReply *, struct answer *, struct redis_extra *);
} script_words[] = {
    {"GRANTED", read_granted}, {"RENEWED", read_granted}, {"RELEASED", read_released},
    {"QUEUED", read_queued},   {"HELD", read_held},       {"STALE", read_stale},
    {"BARRED", read_barred},   {"LOST", read_not_holder}, {"ABSENT", read_not_holder},
    {"CHANGED", read_changed}, {"MISFIT", read_misfit},   {"GRACE", read_grace},
    {"MARKED", read_released},
};

static void read_words(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 0) : NULL;

    for (size_t i = 0; word && i < sizeof script_words / sizeof *script_words; i++) {
        if (strcmp(word, script_words[i].word) == 0) {
            extra->now_ms = redis_reply_clock(reply, 1);
            script_words[i].read(reply, answer, extra);
            if (answer->verdict == VERDICT_GRANTED)
                extra->granted = script_words[i].word;
            return;
        }
    }
    redis_error_senseless(answer);
}

static bool is_member(const redisReply *reply)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 0) : NULL;
    return word && strcmp(word, "MEMBER") == 0 && reply->elements > 4;
}

/* What a quorum's member says, and what it tells of itself. */
static void read_member(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    const redisReply *nested = redis_reply_list(reply, 4);

    read_words(reply->element[3], answer, extra);
    answer->seniority.memory_ms = redis_reply_span(reply, 1);
    answer->seniority.service_ms = redis_reply_span(reply, 2);
    for (size_t i = 0; nested && i < nested->elements && i < LOCK_KEYS_MAX; i++)
        answer->grants[i].nested = redis_reply_number(nested, i) == 1;
}

void redis_answer_script(const struct redisReply *reply, struct answer *answer,
                         struct redis_extra *extra)
{
    struct redis_extra ignored;

    if (!extra)
        extra = &ignored;
    memset(answer, 0, sizeof *answer);
    memset(extra, 0, sizeof *extra);
    if (reply->type == REDIS_REPLY_ERROR)
        redis_error_answer(reply->str, answer);
    else if (is_member(reply))
        read_member(reply, answer, extra);
    else
        read_words(reply, answer, extra);
}

bool redis_answer_belongs(const struct script *script, size_t keys, const struct redis_extra *extra)
{
    static const struct {
        const struct script *script;
        const char *word;
        bool tells; /* of each key */
    } granted[] = {
        {&script_acquire, "GRANTED", true},   {&script_renew, "RENEWED", true},
        {&script_release, "RELEASED", false}, {&script_force, "RELEASED", false},
        {&script_init, "MARKED", false},
    };

    for (size_t i = 0; i < sizeof granted / sizeof *granted; i++) {
        if (granted[i].script == script)
            return strcmp(extra->granted, granted[i].word) == 0 &&
                   extra->grants == (granted[i].tells ? keys : 0);
    }
    return false;
}

/* Reads the records of one list; what cannot be read is left out. The caller frees. */
static struct lock_party *
read_parties(const redisReply *list, int64_t now,
             bool (*read)(const redisReply *, int64_t, struct lock_party *), size_t *count)
{
    struct lock_party *parties = mem_zeroed((list->elements + 1) * sizeof *parties);

    *count = 0;
    for (size_t i = 0; i < list->elements; i++) {
        if (read(list->element[i], now, &parties[*count]))
            ++*count;
    }
    return parties;
}

/* A holder's count takes in those that nest in it. */
static void count_nested(struct lock_party *holders, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t other = 0; strchr(holders[i].owner, '.') && other < count; other++) {
            size_t length = strlen(holders[other].owner);
            if (strncmp(holders[i].owner, holders[other].owner, length) == 0 &&
                holders[i].owner[length] == '.')
                holders[other].count++;
        }
    }
}

static void read_mode(const redisReply *reply, struct lock_view *view)
{
    const char *mode = redis_reply_string(reply, 3);
    int64_t limit = redis_reply_number(reply, 4);

    view->mode = mode && *mode == 's'   ? LOCK_SHARED
                 : mode && *mode == 'l' ? LOCK_LIMIT
                                        : LOCK_EXCLUSIVE;
    view->limit = limit > 0 && limit <= UINT_MAX ? (unsigned)limit : 0;
}

void redis_answer_inspect(const struct redisReply *reply, const char *key,
                          void (*each)(void *arg, const struct lock_view *view), void *arg,
                          struct answer *answer)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 0) : NULL;
    const redisReply *held = word ? redis_reply_list(reply, 5) : NULL;
    const redisReply *waiting = word ? redis_reply_list(reply, 6) : NULL;

    if (!word || strcmp(word, "LOCK") != 0 || !held || !waiting) {
        redis_answer_script(reply, answer, NULL);
        if (answer->verdict == VERDICT_GRANTED)
            redis_error_senseless(answer);
        return;
    }
    const char *fence = redis_reply_string(reply, 2);
    int64_t now = redis_reply_clock(reply, 1);
    struct lock_view view = {.key = key, .fence = fence ? strtoull(fence, NULL, 10) : 0};
    struct lock_party *holders = read_parties(held, now, redis_record_holder, &view.holder_count);
    struct lock_party *waiters =
        read_parties(waiting, now, redis_record_waiter, &view.waiter_count);

    read_mode(reply, &view);
    count_nested(holders, view.holder_count);
    view.holders = holders;
    view.waiters = waiters;
    each(arg, &view);
    free(holders);
    free(waiters);
    memset(answer, 0, sizeof *answer);
    answer->verdict = VERDICT_GRANTED;
}

/* Reading replies: error classes, the scripts' words, holder and waiter records. */
#include "redis_answer.h"
#include "mem.h"

#include <ctype.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *word;
    enum redis_error class;
} error_words[] = {
    {"NOSCRIPT", REDIS_ERROR_NOSCRIPT},
    {"BUSY", REDIS_ERROR_PASSING},
    {"LOADING", REDIS_ERROR_PASSING},
    {"MISCONF", REDIS_ERROR_PASSING},
    {"MASTERDOWN", REDIS_ERROR_PASSING},
    {"NOREPLICAS", REDIS_ERROR_PASSING},
    {"TRYAGAIN", REDIS_ERROR_PASSING},
    {"CLUSTERDOWN", REDIS_ERROR_PASSING},
    {"UNBLOCKED", REDIS_ERROR_PASSING},
    {"max number of clients", REDIS_ERROR_PASSING},
    {"READONLY", REDIS_ERROR_READONLY},
    {"OOM", REDIS_ERROR_UNFIT},
    {"NOAUTH", REDIS_ERROR_DENIED},
    {"WRONGPASS", REDIS_ERROR_DENIED},
    {"NOPERM", REDIS_ERROR_DENIED},
    {"invalid password", REDIS_ERROR_DENIED},
    {"without any password configured", REDIS_ERROR_DENIED},
    {"ACL failure", REDIS_ERROR_DENIED},
    {"can't access", REDIS_ERROR_DENIED},
    {"can't run this command", REDIS_ERROR_DENIED},
    {"has no permissions", REDIS_ERROR_DENIED},
    {"WRONGTYPE", REDIS_ERROR_MISFIT},
    {"CROSSSLOT", REDIS_ERROR_CLUSTER},
    {"cluster support disabled", REDIS_ERROR_CLUSTER},
};

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = text; (at = strstr(at, word)); at += length) {
        bool starts = at == text || !isalnum((unsigned char)at[-1]);
        if (starts && !isalnum((unsigned char)at[length]))
            return true;
    }
    return false;
}

static bool is_redirection(const char *text)
{
    return strncmp(text, "MOVED ", 6) == 0 || strncmp(text, "ASK ", 4) == 0;
}

enum redis_error redis_error_class(const char *text)
{
    size_t length = strcspn(text, " ");

    if (is_redirection(text))
        return REDIS_ERROR_CLUSTER;
    /* A code of its own comes first: what follows may name users and commands. */
    for (size_t i = 0; i < sizeof error_words / sizeof *error_words; i++) {
        if (strlen(error_words[i].word) == length &&
            strncmp(text, error_words[i].word, length) == 0)
            return error_words[i].class;
    }
    for (size_t i = 0; i < sizeof error_words / sizeof *error_words; i++) {
        if (has_word(text, error_words[i].word))
            return error_words[i].class;
    }
    return REDIS_ERROR_OTHER;
}

static void answer_unknown(struct answer *answer, enum cause cause, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void answer_unknown(struct answer *answer, enum cause cause, const char *fmt, ...)
{
    va_list args;

    answer->verdict = VERDICT_UNKNOWN;
    answer->cause = cause;
    va_start(args, fmt);
    vsnprintf(answer->text, sizeof answer->text, fmt, args);
    va_end(args);
}

static void answer_refused(struct answer *answer, enum cause cause)
{
    answer->verdict = VERDICT_REFUSED;
    answer->cause = cause;
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

static void answer_cluster(const char *text, struct answer *answer)
{
    bool moved = is_redirection(text);

    if (strstr(text, "cluster support disabled"))
        answer_unknown(answer, CAUSE_CLUSTER, "this Redis is no Cluster");
    else
        answer_unknown(answer, CAUSE_CLUSTER, "this is a node of a Redis Cluster: %.160s", text);
    snprintf(answer->moved, sizeof answer->moved, "%s", moved ? text : "");
}

void redis_answer_error(const char *text, struct answer *answer)
{
    if (!*text)
        text = "the server answered with an error, and did not say which";
    switch (redis_error_class(text)) {
    case REDIS_ERROR_MISFIT:
        answer_refused(answer, CAUSE_MISFIT);
        snprintf(answer->text, sizeof answer->text,
                 "the store's key of that name holds other data (%.120s)", text);
        break;
    case REDIS_ERROR_CLUSTER: answer_cluster(text, answer); break;
    case REDIS_ERROR_DENIED: answer_unknown(answer, CAUSE_DENIED, "%.200s", text); break;
    case REDIS_ERROR_NOSCRIPT:
    case REDIS_ERROR_PASSING: answer_unknown(answer, CAUSE_NOT_READY, "%.200s", text); break;
    case REDIS_ERROR_READONLY:
    case REDIS_ERROR_UNFIT:
    case REDIS_ERROR_OTHER: answer_unknown(answer, CAUSE_UNFIT, "%.200s", text); break;
    }
}

void redis_answer_senseless(struct answer *answer)
{
    memset(answer, 0, sizeof *answer);
    answer_unknown(answer, CAUSE_UNFIT, "the server's answer makes no sense");
    answer->maybe_done = true;
}

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
static bool read_holder(const redisReply *record, int64_t now, struct lock_party *holder)
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
static bool read_waiter(const redisReply *record, int64_t now, struct lock_party *waiter)
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

static const char *string_at(const redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_STRING &&
                   strlen(reply->element[i]->str) == reply->element[i]->len
               ? reply->element[i]->str
               : NULL;
}

static int64_t number_at(const redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_INTEGER
               ? reply->element[i]->integer
               : 0;
}

/* A number that makes no sense below 0. */
static int64_t count_at(const redisReply *reply, size_t i)
{
    int64_t number = number_at(reply, i);
    return number > 0 ? number : 0;
}

/* Of time, in ms. */
static int64_t span_at(const redisReply *reply, size_t i)
{
    const int64_t most = REDIS_SPAN_MAX;
    int64_t span = count_at(reply, i);

    return span < most ? span : most;
}

/* The server's clock. */
static int64_t now_at(const redisReply *reply)
{
    int64_t now = count_at(reply, 1);
    return now <= REDIS_CLOCK_MAX ? now : 0;
}

/* From i on: which key, how many holders, ms until the first may be gone, one of them. */
static void read_holders(const redisReply *reply, size_t i, int64_t now, struct answer *answer)
{
    const char *text = string_at(reply, i + 3);
    int64_t key = number_at(reply, i);

    answer->key = key >= 1 && key <= LOCK_KEYS_MAX ? (size_t)key - 1 : 0;
    answer->holders = count_at(reply, i + 1);
    answer->left_ms = span(0, count_at(reply, i + 2));
    if (!text || !*text || !read_holder(reply->element[i + 3], now, &answer->holder))
        memset(&answer->holder, 0, sizeof answer->holder);
}

static bool read_fence(const char *text, uint64_t *fence)
{
    if (!text || *text == '0' || !*text || text[strspn(text, "0123456789")] || strlen(text) > 16)
        return false;
    *fence = strtoull(text, NULL, 10);
    return true;
}

static const redisReply *list_at(const redisReply *reply, size_t i)
{
    return i < reply->elements && reply->element[i]->type == REDIS_REPLY_ARRAY ? reply->element[i]
                                                                               : NULL;
}

static void read_granted(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    const redisReply *fences = list_at(reply, 2), *slots = list_at(reply, 3);
    size_t count = fences ? fences->elements : 0;

    (void)extra;
    bool sound = count >= 1 && count <= LOCK_KEYS_MAX && slots && slots->elements == count;
    for (size_t i = 0; sound && i < count; i++) {
        int64_t slot = number_at(slots, i);
        sound = read_fence(string_at(fences, i), &answer->grants[i].fence) && slot >= 0 &&
                slot <= UINT_MAX;
        answer->grants[i].slot = (unsigned)slot;
    }
    if (!sound) {
        redis_answer_senseless(answer);
        return;
    }
    answer->verdict = VERDICT_GRANTED;
    answer->late = number_at(reply, 4) == 1;
    answer->forgotten = number_at(reply, 4) == 2;
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
    extra->places = string_at(reply, 2);
    answer->position = count_at(reply, 3);
    answer->requeued = number_at(reply, 4) == 1;
    read_holders(reply, 5, extra->now_ms, answer);
}

static void read_grace(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    answer_refused(answer, CAUSE_GRACE);
    answer->grace_ms = number_at(reply, 2);
    store_print_grace(answer->grace_ms, answer->text, sizeof answer->text);
    extra->places = string_at(reply, 3);
    answer->position = number_at(reply, 4);
    answer->requeued = number_at(reply, 5) == 1;
}

static void read_held(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    answer_refused(answer, CAUSE_HELD);
    answer->position = count_at(reply, 2);
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
    const char *what = string_at(reply, 2);
    int64_t key = number_at(reply, 3);

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
    const char *word = reply->type == REDIS_REPLY_ARRAY ? string_at(reply, 0) : NULL;

    for (size_t i = 0; word && i < sizeof script_words / sizeof *script_words; i++) {
        if (strcmp(word, script_words[i].word) == 0) {
            extra->now_ms = now_at(reply);
            script_words[i].read(reply, answer, extra);
            return;
        }
    }
    redis_answer_senseless(answer);
}

static bool is_member(const redisReply *reply)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? string_at(reply, 0) : NULL;
    return word && strcmp(word, "MEMBER") == 0 && reply->elements > 4;
}

/* What a quorum's member says, and what it tells of itself. */
static void read_member(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    const redisReply *nested = list_at(reply, 4);

    read_words(reply->element[3], answer, extra);
    answer->seniority.memory_ms = span_at(reply, 1);
    answer->seniority.service_ms = span_at(reply, 2);
    for (size_t i = 0; nested && i < nested->elements && i < LOCK_KEYS_MAX; i++)
        answer->grants[i].nested = number_at(nested, i) == 1;
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
        redis_answer_error(reply->str, answer);
    else if (is_member(reply))
        read_member(reply, answer, extra);
    else
        read_words(reply, answer, extra);
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
    const char *mode = string_at(reply, 3);
    int64_t limit = number_at(reply, 4);

    view->mode = mode && *mode == 's'   ? LOCK_SHARED
                 : mode && *mode == 'l' ? LOCK_LIMIT
                                        : LOCK_EXCLUSIVE;
    view->limit = limit > 0 && limit <= UINT_MAX ? (unsigned)limit : 0;
}

void redis_answer_inspect(const struct redisReply *reply, const char *key,
                          void (*each)(void *arg, const struct lock_view *view), void *arg,
                          struct answer *answer)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? string_at(reply, 0) : NULL;
    const redisReply *held = word ? list_at(reply, 5) : NULL;
    const redisReply *waiting = word ? list_at(reply, 6) : NULL;

    if (!word || strcmp(word, "LOCK") != 0 || !held || !waiting) {
        redis_answer_script(reply, answer, NULL);
        if (answer->verdict == VERDICT_GRANTED)
            redis_answer_senseless(answer);
        return;
    }
    const char *fence = string_at(reply, 2);
    int64_t now = now_at(reply);
    struct lock_view view = {.key = key, .fence = fence ? strtoull(fence, NULL, 10) : 0};
    struct lock_party *holders = read_parties(held, now, read_holder, &view.holder_count);
    struct lock_party *waiters = read_parties(waiting, now, read_waiter, &view.waiter_count);

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

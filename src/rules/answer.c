/* Reads the replies of the scripts, and believes only what makes sense. It changes only the answer.
 * A reply is a list: a word, the server's time ("now", ms since 1970), and elements that the head
 * of each function read_…() names in their order; (3) behind a name says that it takes three of
 * them. A record is a text that describes a party, a holder or a waiter: numbers, words, and notes
 * of the form NAME=VALUE behind them (lua/lock.lua).
 *
 * To add a field of a lock, edit the script that replies, struct lock_view (lock/lock.h), and
 * redis_answer_inspect(). */
#include "rules/answer.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "rules/arguments.h"
#include "rules/error.h"
#include "rules/reply.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

/* -- the lines of holders and waiters ---------------------------------------------------------- */

/* Takes the next word of a record as a number, and the space behind it. False: it is not one. */
static bool take_number(const char **text, int64_t *number)
{
    const char *end = *text;

    if (!decimal_take(&end, REDIS_NUMBER_MAX, number) || *end != ' ')
        return false;
    *text = end + 1;
    return true;
}

/* Takes an owner token and the space behind it. False: it does not fit. */
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

/* The ms from one moment of the store to another, between -REDIS_SPAN_MAX and REDIS_SPAN_MAX. */
static int64_t span_between(int64_t from, int64_t to)
{
    const int64_t most = REDIS_SPAN_MAX;

    return to - from > most ? most : to - from < -most ? -most : to - from;
}

/* A time that is over by the store's clock; 0 where it is not, as the clock was set back. */
static int64_t at_least_0(int64_t ms)
{
    return ms > 0 ? ms : 0;
}

/* Takes the letter of a mode and the space behind it. False: it is not one. */
static bool take_mode(const char **text, enum lock_mode *mode)
{
    static const char letters[] = "xsl"; /* in the order of enum lock_mode */
    const char *letter = **text ? strchr(letters, **text) : NULL;

    if (!letter || (*text)[1] != ' ')
        return false;
    *mode = (enum lock_mode)(letter - letters);
    *text += 2;
    return true;
}

/* Reads the notes of who asked a holder to release the lock, when and why. */
static void read_revocation(const char *text, size_t length, struct revocation *revoked)
{
    revoked->asked_ms = identity_noted(text, length, LOCK_NOTE_ASKED);
    identity_noted_word(text, length, LOCK_NOTE_BY, revoked->by);
    identity_noted_word(text, length, LOCK_NOTE_WHY, revoked->why);
}

enum role { HOLDER, WAITER };

/* Reads how a run ended from the notes of its record. An ending that makes no sense is not
 * known. */
static void read_run_end(const char *notes, size_t length, struct lock_end *end)
{
    int64_t signal = identity_noted(notes, length, LOCK_NOTE_SIGNAL);
    int64_t status = identity_noted(notes, length, LOCK_NOTE_EXIT);
    enum lock_ending how = LOCK_TIMED_OUT;

    /* The endings from this one on have a note each; without any, the run has used the lock. */
    while (how <= LOCK_KILLED && identity_noted(notes, length, redis_endings[how]) <= 0)
        how++;
    end->how = how <= LOCK_KILLED ? how : LOCK_USED;
    end->ran_ms = span_between(0, identity_noted(notes, length, LOCK_NOTE_RAN));
    end->known = end->ran_ms > 0 && signal < NSIG && status <= UINT8_MAX;
    end->signal = end->known ? (int)signal : 0;
    end->status = end->known ? (int)status : 0;
}

/* Takes FENCE OWNER SINCE MODE SLOT WHO, of a waiter without FENCE and SLOT. Leaves *text at WHO;
 * *length: of that with the notes behind it. False: a word makes no sense. */
static bool take_party(const redisReply *record, const char **text, enum role role,
                       struct lock_party *party, size_t *length)
{
    bool holds = role == HOLDER;
    int64_t fence = 0, slot = 0;

    if ((holds && !take_number(text, &fence)) || !take_owner(text, party->owner) ||
        !take_number(text, &party->since_ms) || !take_mode(text, &party->mode) ||
        (holds && (!take_number(text, &slot) || slot > LOCK_LIMIT_MAX)))
        return false;
    *length = (size_t)(record->str + record->len - *text);
    party->fence = (uint64_t)fence;
    party->slot = (unsigned)slot;
    identity_parse(*text, *length, &party->who);
    party->in_group = identity_noted_word(*text, *length, LOCK_NOTE_GROUP, party->group);
    if (holds) {
        party->reserved = identity_noted(*text, *length, LOCK_NOTE_RESERVED) > 0;
        party->waited_ms = span_between(0, identity_noted(*text, *length, LOCK_NOTE_WAITED));
        read_run_end(*text, *length, &party->end);
    }
    return true;
}

/* Reads a record, with times relative to "now", the server's, into a party or a run. False: it
 * makes no sense. */
typedef bool read_record(const redisReply *record, int64_t now, void *to);

/* Reads a line "DEADLINE LEASE" and a party, as lock.lua writes it. */
static bool read_holder(const redisReply *record, int64_t now, void *to)
{
    const char *text = record->str;
    struct lock_party *holder = memset(to, 0, sizeof *holder);
    int64_t deadline, lease;
    size_t length;

    if (record->type != REDIS_REPLY_STRING || !take_number(&text, &deadline) ||
        !take_number(&text, &lease) || !take_party(record, &text, HOLDER, holder, &length))
        return false;
    holder->left_ms = span_between(now, deadline);
    holder->heard_ms = at_least_0(span_between(0, lease) - holder->left_ms);
    holder->age_ms = span_between(holder->since_ms, now);
    holder->count = 1;
    holder->kept = identity_noted(text, length, LOCK_NOTE_KEPT) > 0;
    read_revocation(text, length, &holder->revoked);
    holder->revoked.known = holder->revoked.asked_ms > 0;
    return true;
}

/* Reads a line "ENDED" and a party, as memory.lua writes it. */
static bool read_run(const redisReply *record, int64_t now, void *to)
{
    const char *text = record->str;
    struct lock_run *run = memset(to, 0, sizeof *run);
    struct lock_party *by = &run->by;
    size_t length;

    if (record->type != REDIS_REPLY_STRING || !take_number(&text, &run->ended_ms) ||
        !take_party(record, &text, HOLDER, by, &length))
        return false;
    run->ended_ago_ms = at_least_0(span_between(run->ended_ms, now));
    run->held_ms = at_least_0(span_between(by->since_ms, run->ended_ms));
    if (by->end.how == LOCK_REVOKED) {
        read_revocation(text, length, &by->revoked);
        by->revoked.known = true;
        by->revoked.ago_ms = run->ended_ago_ms;
    }
    return true;
}

/* Reads the note of how many keys a waiter takes, and of how many. Numbers that make no sense are
 * not known. */
static void read_take(const char *text, size_t length, struct lock_party *waiter)
{
    char word[IDENTITY_WORD_MAX + 1];
    const char *end = word;
    int64_t take, of;

    if (!identity_noted_word(text, length, LOCK_NOTE_TAKE, word) ||
        !decimal_take(&end, LOCK_KEYS_MAX, &take) || *end != '/' ||
        !decimal_read(end + 1, strlen(end + 1), LOCK_KEYS_MAX, &of) || take < 1 || take >= of)
        return;
    waiter->take = (unsigned)take;
    waiter->of = (unsigned)of;
}

/* The number in the note of a priority, with its sign; 0: there is no such note. */
static int read_priority(const char *text, size_t length)
{
    char word[IDENTITY_WORD_MAX + 1];
    int64_t number;

    if (!identity_noted_word(text, length, LOCK_NOTE_PRIORITY, word) ||
        !decimal_parse(word + (*word == '-'), 0, LOCK_PRIORITY_MAX, &number)) /* behind a '-' */
        return 0;
    return (int)(*word == '-' ? -number : number);
}

/* Reads a line "DEADLINE" and a party, as waiter.lua writes it. */
static bool read_waiter(const redisReply *record, int64_t now, void *to)
{
    const char *text = record->str;
    struct lock_party *waiter = memset(to, 0, sizeof *waiter);
    int64_t deadline;
    size_t length;

    if (record->type != REDIS_REPLY_STRING || !take_number(&text, &deadline) ||
        !take_party(record, &text, WAITER, waiter, &length))
        return false;
    /* The waiter waits for longer if it had to queue up again, as after a restart. */
    int64_t before = identity_noted(text, length, LOCK_NOTE_WAITED);
    waiter->since_ms -= before < waiter->since_ms ? before : 0;
    waiter->age_ms = span_between(waiter->since_ms, now);
    int64_t turn = identity_noted(text, length, LOCK_NOTE_TURN);
    waiter->turn = turn > 0 && turn <= LOCK_TURN_LAST ? (unsigned)turn : LOCK_TURN_PLAIN;
    waiter->priority = read_priority(text, length);
    read_take(text, length, waiter);
    return true;
}

/* -- what scripts say -------------------------------------------------------------------------- */

/* The digits behind that word in "what"; NULL: it is something else. */
static const char *limit_behind(const char *word, const char *what)
{
    size_t length = strlen(word);
    const char *limit = strncmp(what, word, length) == 0 ? what + length : "";

    return *limit && limit[strspn(limit, "0123456789")] == '\0' ? limit : NULL;
}

/* The word of MISFIT in front of a version of rlock. */
#define MINIMUM "minimum "

/* Reads MISFIT, now, what, which key: words the reason why the request does not fit the lock.
 * "what" is one of the words below, a word and a limit, or the kind of data that the key holds. */
static void read_misfit(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    static const struct {
        const char *word, *text;
    } known[] = {
        {"damaged", "the store's key of that name holds other data, or is damaged"},
        {"lock", "it is held as a plain lock, not as a semaphore"},
        {"nested", "it is held by an ancestor of this process, and nesting was ruled out"},
        {"upgrade",
         "an ancestor of this process holds it for reading: a writer inside it would wait "
         "for itself"},
        {"mirror", "an ancestor of this process holds it with another mirror"},
        {"string", "another key of its mirror's name is there, which is not a string"},
        {"redisson", "another key of its mirror's name is there, which is not a lock of Redisson"},
        {"run", "it is held by a run, which alone renews and releases it"},
        {"no limit", "no limit is stored for it; rlock limit KEY N stores one"},
        {"latch/1", "the key is a latch; rlock latch status shows it"},
    };
    const char *told = redis_reply_string(reply, 2), *what = told ? told : "?";
    const char *held = limit_behind("limit ", what), *stored = limit_behind("stored ", what);

    (void)extra;
    answer->refused.key = redis_reply_index(reply, 3, LOCK_KEYS_MAX);
    if (held)
        snprintf(answer->text, sizeof answer->text,
                 "it is held as a semaphore with a limit of %.20s", held);
    else if (stored)
        snprintf(answer->text, sizeof answer->text,
                 "it is a semaphore, with a stored limit of %.20s (rlock limit)", stored);
    else if (strncmp(what, MINIMUM, strlen(MINIMUM)) == 0)
        snprintf(answer->text, sizeof answer->text,
                 "the store asks for rlock %.20s or newer; this is rlock %s",
                 what + strlen(MINIMUM), PACKAGE_VERSION);
    else if (!redis_newer_layout(what, "lock/1", answer->text, sizeof answer->text))
        snprintf(answer->text, sizeof answer->text, "not a lock: the key holds '%.40s'", what);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(what, known[i].word) == 0)
            snprintf(answer->text, sizeof answer->text, "%s", known[i].text);
    }
}

/* In place of a holder: the name of a mirror. */
#define FOREIGN "foreign "

/* Reads element i as a holder or a waiter, by "read", into *party, and returns that. NULL: it is
 * something else. */
static const struct lock_party *party_at(const redisReply *reply, size_t i, int64_t now,
                                         read_record *read, struct lock_party *party)
{
    const char *text = redis_reply_string(reply, i);

    return text && *text && read(reply->element[i], now, party) ? party : NULL;
}

/* Reads the holders that four elements tell of, from i on: which key, how many holders, ms until
 * the first may be gone, the oldest of them; or, in its place, the name of a mirror that another
 * program holds. */
static void read_holders(const redisReply *reply, size_t i, struct answer *answer,
                         struct redis_extra *extra)
{
    const char *text = redis_reply_string(reply, i + 3);

    answer->refused.key = redis_reply_index(reply, i, LOCK_KEYS_MAX);
    answer->refused.holders = redis_reply_count(reply, i + 1);
    answer->refused.left_ms = redis_reply_span(reply, i + 2);
    answer->refused.foreign = text && strncmp(text, FOREIGN, strlen(FOREIGN)) == 0;
    if (answer->refused.foreign)
        snprintf(answer->text, sizeof answer->text, "%s", text + strlen(FOREIGN));
    answer->refused.holder = party_at(reply, i + 3, extra->now_ms, read_holder, &extra->party);
}

/* Reads an obstacle, four elements from i on: which key, how many holders keep the caller out, ms
 * until the first may be gone, the oldest of them; or, if there are none, the first waiter in place
 * of the oldest holder. */
static void read_obstacle(const redisReply *reply, size_t i, struct answer *answer,
                          struct redis_extra *extra)
{
    read_holders(reply, i, answer, extra);
    if (answer->refused.holders > 0)
        return;
    answer->refused.holder = NULL;
    answer->refused.first = party_at(reply, i + 3, extra->now_ms, read_waiter, &extra->party);
}

/* Reads a fence: a positive number that scripts can count on from, as a larger one would be damaged
 * data to them. False: the text (NULL: none) is not one. */
static bool read_fence(const char *text, uint64_t *fence)
{
    int64_t number = 0;

    if (!text || *text == '0' || !decimal_read(text, strlen(text), REDIS_NUMBER_MAX, &number))
        return false;
    *fence = (uint64_t)number;
    return true;
}

bool redis_answer_grant(const char *text, struct lock_grant *grant)
{
    int64_t fence = 0, slot = 0;

    *grant = (struct lock_grant){0};
    if (*text == '0' || !take_number(&text, &fence) ||
        !decimal_read(text, strlen(text), LOCK_LIMIT_MAX, &slot))
        return false;
    *grant = (struct lock_grant){.fence = (uint64_t)fence, .slot = (unsigned)slot};
    return true;
}

/* Reads the limit in element i; *limit is 0 where there is none. Returns whether there is one,
 * which may be 0, too. */
static bool read_limit(const redisReply *reply, size_t i, unsigned *limit)
{
    int64_t number = reply->elements > i ? redis_reply_whole(reply, i) : -1;
    bool sound = number >= 0 && number <= LOCK_LIMIT_MAX;

    *limit = sound ? (unsigned)number : 0;
    return sound;
}

/* Reads GRANTED or RENEWED, now, {fence...}, {slot...}, 2 if one was forgotten, {stored limit...}:
 * one of each for each key. The fence of a key that is not held is 0. */
static void read_granted(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    const redisReply *fences = redis_reply_list(reply, 2), *slots = redis_reply_list(reply, 3);
    size_t count = fences ? fences->elements : 0;

    bool sound = count >= 1 && count <= LOCK_KEYS_MAX && slots && slots->elements == count;
    /* One that makes no sense makes the whole answer senseless. */
    for (size_t i = 0; sound && i < count; i++) {
        struct lock_grant *grant = &extra->grants[i];
        const char *fence = redis_reply_string(fences, i);
        int64_t slot = redis_reply_whole(slots, i);
        grant->absent = fence && strcmp(fence, "0") == 0; /* the key is not held */
        grant->slot = (unsigned)slot;
        sound = grant->absent
                    ? slot == 0
                    : read_fence(fence, &grant->fence) && slot >= 0 && slot <= LOCK_LIMIT_MAX;
        extra->absent += grant->absent;
    }
    if (!sound || extra->absent == count) {
        redis_error_senseless(answer);
        return;
    }
    extra->granted = count;
    /* The limit of each key that the store keeps one for. */
    const redisReply *limits = reply->elements > 5 ? redis_reply_list(reply, 5) : NULL;
    for (size_t i = 0; limits && i < count; i++)
        read_limit(limits, i, &extra->grants[i].limit);
    answer->granted.grants = extra->grants;
    answer->granted.forgotten = redis_reply_says(reply, 4, 2);
}

/* Reads a place in the queue, three elements from i on: the text with which the next try tells it,
 * its position, and 1 if the caller had lost its place and queued anew. */
static void read_place(const redisReply *reply, size_t i, struct answer *answer,
                       struct redis_extra *extra)
{
    extra->places = redis_reply_string(reply, i);
    answer->refused.position = redis_reply_count(reply, i + 1);
    answer->refused.requeued = redis_reply_says(reply, i + 2, 1);
}

/* Reads QUEUED, now, a place (3), an obstacle (4), the stored limit, ms until the next call. */
static void read_queued(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    read_place(reply, 2, answer, extra);
    read_obstacle(reply, 5, answer, extra);
    answer->refused.limited = read_limit(reply, 9, &answer->refused.limit);
    answer->refused.next_call_ms = redis_reply_span(reply, 10);
}

/* Reads a pause, which is kept as the record of a waiter: who has paused the lock, the ms that are
 * left, and the GLOB of the pause, "" where it is one of this lock only. False: it makes no sense,
 * and *pause is all zero. */
static bool read_pause(const redisReply *record, int64_t now, struct lock_party *pause,
                       char glob[IDENTITY_WORD_MAX + 1])
{
    int64_t deadline;

    glob[0] = '\0';
    if (!read_waiter(record, now, pause)) {
        memset(pause, 0, sizeof *pause);
        return false;
    }
    const char *text = record->str;
    take_number(&text, &deadline); /* as read_waiter() has done */
    pause->left_ms = span_between(now, deadline);
    for (int i = 0; i < 3; i++) /* OWNER, SINCE and MODE */
        text = strchr(text, ' ') + 1;
    identity_noted_word(text, (size_t)(record->str + record->len - text), LOCK_NOTE_GLOB, glob);
    return true;
}

/* Reads the pause in element i: who has paused the lock, the ms that are left, and its GLOB, or "".
 * False: there is none. */
static bool read_pause_at(const redisReply *reply, size_t i, int64_t now, struct lock_party *pause,
                          char glob[IDENTITY_WORD_MAX + 1])
{
    const char *text = reply->elements > i ? redis_reply_string(reply, i) : NULL;

    return text && *text && read_pause(reply->element[i], now, pause, glob);
}

void redis_answer_pauses(const struct redisReply *reply, int64_t now,
                         void (*each)(void *arg, const struct lock_view *view), void *arg)
{
    const char *lines = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 0) : NULL;
    char *text = mem_strdup(lines ? lines : ""), *rest = text;

    for (char *line; (line = strsep(&rest, "\n"));) {
        char *record = strchr(line, ' ');
        struct lock_view view = {0};
        redisReply word = {.type = REDIS_REPLY_STRING};
        if (record) {
            word.str = record + 1;
            word.len = strlen(record + 1);
        }
        bool sound = record && read_pause(&word, now, &view.pause, view.pause_glob);
        view.key = view.pause_glob;
        if (sound && view.pause.left_ms > 0)
            each(arg, &view);
    }
    free(text);
}

/* Reads CLOSED, now, ms until it opens, a place (3), which key, the pause, ms until the next call.
 * A lock that is closed without a pause has a limit of 0. */
static void read_closed(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    answer->refused.opens_ms = redis_reply_span(reply, 2);
    read_place(reply, 3, answer, extra);
    answer->refused.key = redis_reply_index(reply, 6, LOCK_KEYS_MAX);
    char glob[IDENTITY_WORD_MAX + 1];
    bool is_paused = read_pause_at(reply, 7, extra->now_ms, &extra->party, glob);
    answer->refused.limited = !is_paused;
    answer->refused.first = is_paused ? &extra->party : NULL;
    answer->refused.next_call_ms = redis_reply_span(reply, 8);
}

/* Reads DONE, now, which key, ms since the run began, the run. */
static void read_done(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    struct lock_run run;

    answer->refused.key = redis_reply_index(reply, 2, LOCK_KEYS_MAX);
    if (!redis_reply_string(reply, 4) || !read_run(reply->element[4], extra->now_ms, &run))
        memset(&run, 0, sizeof run); /* it is forgotten */
    extra->party = run.by;
    extra->party.age_ms = span_between(0, redis_reply_whole(reply, 3));
    answer->refused.first = &extra->party;
}

/* Reads SUPERSEDED, now, which key, the waiter that came instead. */
static void read_superseded(const redisReply *reply, struct answer *answer,
                            struct redis_extra *extra)
{
    answer->refused.key = redis_reply_index(reply, 2, LOCK_KEYS_MAX);
    answer->refused.first = party_at(reply, 3, extra->now_ms, read_waiter, &extra->party);
}

/* Reads GRACE, now, ms until it grants, a place (3). */
static void read_grace(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    answer->grace_ms = redis_reply_span(reply, 2);
    store_print_grace(answer->grace_ms, answer->text, sizeof answer->text);
    read_place(reply, 3, answer, extra);
}

/* Reads HELD, now, how many wait, an obstacle (4), the stored limit, the token of a foreign holder:
 * of another program, which holds the mirror. */
static void read_held(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    answer->refused.position = redis_reply_count(reply, 2);
    read_obstacle(reply, 3, answer, extra);
    answer->refused.limited = read_limit(reply, 7, &answer->refused.limit);
    const char *token = answer->refused.foreign ? redis_reply_string(reply, 8) : NULL;
    if (token && *token) {
        memset(&extra->party, 0, sizeof extra->party);
        snprintf(extra->party.owner, sizeof extra->party.owner, "%s", token);
        answer->refused.holder = &extra->party;
    }
}

/* Reads STALE or BARRED, now. The script has done nothing, as if the call had not come: that is not
 * a refusal, but a failure. */
static void read_unsent(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    bool stale = strcmp(redis_reply_string(reply, 0), "STALE") == 0;

    (void)extra;
    answer_fail(answer, CAUSE_UNREACHABLE, "the request %s",
                stale ? "took too long" : "was withdrawn");
}

/* Reads MIRROR, now, {key...}: the keys that the call has to name when it is sent again. The
 * failure counts where that is of no use. */
static void read_mirrors(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    extra->mirrors = redis_reply_list(reply, 2);
    answer_fail(answer, CAUSE_NOT_READY, "the lock's mirror is another one each time");
}

/* Keeps the revocation in *extra, where the answer points to it. */
static void take_revocation(const struct revocation *revoked, struct answer *answer,
                            struct redis_extra *extra)
{
    extra->revoked = *revoked;
    answer->refused.revoked = revoked->known ? &extra->revoked : NULL;
}

/* Reads LOST or ABSENT, now, the holders (4), the run that the lock was taken away from. */
static void read_not_holder(const redisReply *reply, struct answer *answer,
                            struct redis_extra *extra)
{
    struct lock_run run;

    read_holders(reply, 2, answer, extra);
    if (reply->elements > 6 && read_run(reply->element[6], extra->now_ms, &run))
        take_revocation(&run.by.revoked, answer, extra);
}

/* Reads ASKED, now, the holders (4): the caller's own entry. */
static void read_asked(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    read_holders(reply, 2, answer, extra);
    if (answer->refused.holder)
        take_revocation(&answer->refused.holder->revoked, answer, extra);
}

/* Reads CHANGED, now, the holders (4). */
static void read_changed(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    read_holders(reply, 2, answer, extra);
}

static const struct {
    const char *word;
    enum cause cause; /* CAUSE_NONE: granted */
    void (*read)(const redisReply *, struct answer *, struct redis_extra *); /* NULL: that is all */
} script_words[] = {
    {"GRANTED", CAUSE_NONE, read_granted},
    {"RENEWED", CAUSE_NONE, read_granted},
    {"RELEASED", CAUSE_NONE, NULL},
    {"MARKED", CAUSE_NONE, NULL},
    {"ADJUSTED", CAUSE_NONE, NULL},
    {"QUEUED", CAUSE_HELD, read_queued},
    {"HELD", CAUSE_HELD, read_held},
    {"STALE", CAUSE_UNREACHABLE, read_unsent},
    {"BARRED", CAUSE_UNREACHABLE, read_unsent},
    {"MIRROR", CAUSE_NOT_READY, read_mirrors},
    {"LOST", CAUSE_NOT_HOLDER, read_not_holder},
    {"ABSENT", CAUSE_NOT_HOLDER, read_not_holder},
    {"CHANGED", CAUSE_CHANGED, read_changed},
    {"MISFIT", CAUSE_MISFIT, read_misfit},
    {"GRACE", CAUSE_GRACE, read_grace},
    {"SUPERSEDED", CAUSE_SUPERSEDED, read_superseded},
    {"CLOSED", CAUSE_CLOSED, read_closed},
    {"NONE", CAUSE_ABSENT, NULL},
    {"DONE", CAUSE_DONE, read_done},
    {"ASKED", CAUSE_REVOKED, read_asked},
};

/* Reads a script's answer, by its first word. One with another word is senseless. */
static void read_words(const redisReply *reply, struct answer *answer, struct redis_extra *extra)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 0) : NULL;

    for (size_t i = 0; word && i < sizeof script_words / sizeof *script_words; i++) {
        if (strcmp(word, script_words[i].word) != 0)
            continue;
        extra->now_ms = redis_reply_clock(reply, 1);
        answer->cause = script_words[i].cause;
        answer->verdict = answer->cause ? VERDICT_REFUSED : VERDICT_GRANTED;
        if (script_words[i].read)
            script_words[i].read(reply, answer, extra);
        bool is_senseless = answer->cause == CAUSE_UNFIT; /* no row has that cause */
        extra->word = is_senseless ? NULL : script_words[i].word;
        return;
    }
    redis_error_senseless(answer);
}

void redis_answer_script(const struct redisReply *reply, struct answer *answer,
                         struct redis_extra *extra)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 0) : NULL;

    memset(answer, 0, sizeof *answer);
    memset(extra, 0, offsetof(struct redis_extra, party)); /* the rest is set where it is used */
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_error_of_script(reply->str, answer);
    } else if (word && strcmp(word, "MEMBER") == 0 && reply->elements > 4) {
        /* The answer of a quorum's member, and what it tells of itself. */
        const redisReply *nested = redis_reply_list(reply, 4);
        read_words(reply->element[3], answer, extra);
        extra->member = true;
        extra->seniority.memory_ms = redis_reply_span(reply, 1);
        extra->seniority.service_ms = redis_reply_span(reply, 2);
        for (size_t i = 0; nested && i < nested->elements && i < LOCK_KEYS_MAX; i++)
            extra->grants[i].nested = redis_reply_says(nested, i, 1);
    } else {
        read_words(reply, answer, extra);
    }
}

bool redis_answer_belongs(const struct redis_call *call, const struct redis_extra *extra)
{
    static const struct {
        const struct script *script;
        const char *granted, *others;
        bool tells; /* its grant tells of each key, and as a quorum's member if it is one */
    } words[] = {
        {&script_acquire, "GRANTED",
         "QUEUED HELD GRACE CLOSED ASKED STALE BARRED MISFIT SUPERSEDED DONE", true},
        {&script_renew, "RENEWED", "LOST ASKED STALE MISFIT MIRROR", true},
        {&script_release, "RELEASED", "ABSENT STALE MISFIT MIRROR", false},
        {&script_force, "RELEASED", "CHANGED ASKED STALE MISFIT MIRROR", false},
        {&script_init, "MARKED", "GRACE STALE", false},
        {&script_adjust, "ADJUSTED", "NONE STALE MISFIT", false},
        {&script_pauses, "ADJUSTED", "NONE STALE MISFIT", false},
        {&script_unmirror, "RELEASED", "ABSENT HELD STALE MISFIT", false},
        {&script_latch, "", "STALE", false},
    };
    size_t wanted = call->take ? call->take : call->key_count;
    bool is_whole = extra->granted == call->key_count && extra->granted - extra->absent == wanted &&
                    extra->member == call->names_server;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i].script != call->script)
            continue;
        if (strcmp(extra->word, words[i].granted) == 0)
            return words[i].tells ? is_whole : !extra->granted && !extra->member;
        return strstr(words[i].others, extra->word) != NULL;
    }
    return false;
}

/* Reads the records of a list (NULL: none) by "read", except those that make no sense. Returns a
 * list of "size" bytes for each, *count of them, which the caller frees. */
static void *read_records(const redisReply *list, int64_t now, read_record *read, size_t size,
                          size_t *count)
{
    size_t room = list ? list->elements : 0;
    char *records = mem_zeroed((room + 1) * size);

    *count = 0;
    for (size_t i = 0; i < room; i++)
        *count += read(list->element[i], now, records + *count * size);
    return records;
}

/* Reads what the lock remembers: the numbers that inspect.lua lists, in its order. */
static void read_memory(const redisReply *list, int64_t now, struct lock_memory *memory)
{
    int64_t *const in_order[] = {&memory->acquired,          &memory->ended,
                                 &memory->waited_ms,         &memory->success_began_ms,
                                 &memory->success_ended_ms,  &memory->refused.count,
                                 &memory->refused.last_ms,   &memory->failed.count,
                                 &memory->failed.last_ms,    &memory->timed_out.count,
                                 &memory->timed_out.last_ms, &memory->lost.count,
                                 &memory->lost.last_ms,      &memory->expired.count,
                                 &memory->expired.last_ms,   &memory->revoked.count,
                                 &memory->revoked.last_ms};

    for (size_t i = 0; list && i < sizeof in_order / sizeof *in_order; i++) {
        const char *text = redis_reply_string(list, i);
        if (text)
            decimal_read(text, strlen(text), REDIS_NUMBER_MAX, in_order[i]);
    }
    if (memory->success_ended_ms > 0)
        memory->success_ago_ms = at_least_0(span_between(memory->success_ended_ms, now));
}

/* Adds to each holder's count the holders that nest in it: their owners' paths begin with that of
 * its own, and a dot. */
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

void redis_answer_inspect(const struct redisReply *reply, const char *key,
                          void (*each)(void *arg, const struct lock_view *view), void *arg,
                          struct answer *answer)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 0) : NULL;
    const redisReply *held = word ? redis_reply_list(reply, 5) : NULL;
    const redisReply *waiting = word ? redis_reply_list(reply, 6) : NULL;

    if (!word || strcmp(word, "LOCK") != 0 || !held || !waiting) {
        struct redis_extra extra;
        redis_answer_script(reply, answer, &extra);
        if (answer->verdict == VERDICT_GRANTED ||
            (answer->verdict == VERDICT_REFUSED && answer->cause != CAUSE_MISFIT))
            redis_error_senseless(answer);
        return;
    }
    int64_t now = redis_reply_clock(reply, 1);
    struct lock_view view = {.key = key};
    struct lock_party *holders =
        read_records(held, now, read_holder, sizeof *holders, &view.holder_count);
    struct lock_party *waiters =
        read_records(waiting, now, read_waiter, sizeof *waiters, &view.waiter_count);

    read_fence(redis_reply_string(reply, 2), &view.fence);
    const char *mode = redis_reply_string(reply, 3);
    int64_t limit = redis_reply_count(reply, 4);
    view.mode = mode && *mode == 's'   ? LOCK_SHARED
                : mode && *mode == 'l' ? LOCK_LIMIT
                                       : LOCK_EXCLUSIVE;
    view.limit = limit <= LOCK_LIMIT_MAX ? (unsigned)limit : 0;
    view.limited = read_limit(reply, 11, &view.stored_limit);
    read_pause_at(reply, 12, now, &view.pause, view.pause_glob);
    view.paused_ms = redis_reply_span(reply, 13);
    view.grace_ms = redis_reply_span(reply, 14);
    count_nested(holders, view.holder_count);
    read_memory(redis_reply_list(reply, 7), now, &view.memory);
    struct lock_run *runs =
        read_records(redis_reply_list(reply, 8), now, read_run, sizeof *runs, &view.run_count);
    view.holders = holders;
    view.waiters = waiters;
    view.runs = runs;
    each(arg, &view);
    free(runs);
    free(holders);
    free(waiters);
    memset(answer, 0, sizeof *answer);
    answer->verdict = VERDICT_GRANTED;
}

struct redis_rest redis_answer_rest(const struct redisReply *reply)
{
    bool has = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 11;
    struct redis_rest none = {0}, rest = none;

    if (has)
        rest = (struct redis_rest){redis_reply_whole(reply, 9), redis_reply_whole(reply, 10)};
    return rest.from > 0 && rest.from <= rest.to ? rest : none;
}

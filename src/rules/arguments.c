/* Makes of each request the script that executes it, its keys and its named arguments. It reads the
 * request and the terms of its store, and changes only the call. An argument that says nothing, as
 * 0, false or "", is left out of it: a set_…() sets one if it says something.
 *
 * To add an argument, name it in the first comment of the script, and set it in the function of the
 * verb here. */
#include "rules/arguments.h"
#include "base/mem.h"
#include "base/percent.h"
#include "base/strbuf.h"
#include "lock/key.h"

#include <inttypes.h>
#include <stdio.h>

/* A place in the queue is kept this long after the last call of its waiter. */
#define QUEUE_PLACE_MS 7000
/* The longest that the place of a waiter is kept before which many come, as it calls less often:
 * with 1,000 waiters, the mean time between two calls of one of them is 25 s at least. */
#define FAR_PLACE_MS 120000
/* How long an owner must not acquire whose acquisition may still be under way somewhere. */
#define BAR_MS 60000

void redis_call_begin(struct redis_call *call, const struct script *script, const char *prefix,
                      const char *const *keys, size_t count)
{
    call->script = script;
    call->keys = mem_zeroed((count + 1) * sizeof *call->keys); /* a script may have none */
    call->key_count = count;
    for (size_t i = 0; i < count; i++)
        call->keys[i] = prefix ? key_in_store(prefix, keys[i]) : mem_strdup(keys[i]);
}

/* The index in call->argv of an argument's name, behind which its value stands; argc: the call does
 * not have it. */
static size_t find_argument(const struct redis_call *call, const char *name)
{
    size_t i = 0;

    while (i < call->argc && strcmp(call->argv[i], name) != 0)
        i += 2;
    return i;
}

const char *redis_call_get(const struct redis_call *call, const char *name)
{
    size_t i = find_argument(call, name);
    return i < call->argc ? call->argv[i + 1] : NULL;
}

void redis_call_set(struct redis_call *call, const char *name, const char *value)
{
    size_t i = find_argument(call, name);

    if (i < call->argc) { /* the last argument takes its place */
        free(call->argv[i]);
        free(call->argv[i + 1]);
        call->argc -= 2;
        call->argv[i] = call->argv[call->argc];
        call->argv[i + 1] = call->argv[call->argc + 1];
    }
    if (!value)
        return;
    call->argv = mem_checked(realloc(call->argv, (call->argc + 2) * sizeof *call->argv));
    call->argv[call->argc++] = mem_strdup(name);
    call->argv[call->argc++] = mem_strdup(value);
}

/* Sets an argument to a number, also to 0. */
static void set_number(struct redis_call *call, const char *name, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    redis_call_set(call, name, text);
}

static void set_positive(struct redis_call *call, const char *name, int64_t number)
{
    if (number > 0)
        set_number(call, name, number);
}

static void set_flag(struct redis_call *call, const char *name, bool flag)
{
    if (flag)
        redis_call_set(call, name, "1");
}

static void set_text(struct redis_call *call, const char *name, const char *text)
{
    if (text && *text)
        redis_call_set(call, name, text);
}

char *redis_mirror_key(const char *mirror)
{
    const char *name = strchr(mirror, ':') + 1;
    bool row = strncmp(mirror, "shedlock:", strlen("shedlock:")) == 0;

    return strbuf_print("%s%s", row ? SHEDLOCK_KEY : "", name);
}

/* The channels are those of lua/mirror.lua: Redisson's, or that of Spring's RedisLockRegistry. */
char *redis_mirror_channel(const char *mirror)
{
    const char *name = strchr(mirror, ':') + 1, *colon = strchr(name, ':');

    if (strncmp(mirror, "redisson:", strlen("redisson:")) == 0)
        return strbuf_print(
            strchr(name, '{') ? "redisson_lock__channel:%s" : "redisson_lock__channel:{%s}", name);
    if (strncmp(mirror, "string:", strlen("string:")) == 0 && colon)
        return strbuf_print("%.*s-channel:%s", (int)(colon - name), name, name);
    return NULL;
}

bool redis_call_add_mirror(struct redis_call *call, const char *key)
{
    for (size_t i = 0; i < call->mirror_count; i++)
        if (strcmp(call->mirrors[i], key) == 0)
            return false;
    if (call->mirror_count == LOCK_KEYS_MAX)
        return false;
    *MEM_APPEND(call->mirrors, call->mirror_count) = mem_strdup(key);
    set_number(call, "mirrors", (int64_t)call->mirror_count);
    return true;
}

/* Has the call touch the key of a mirror, another program's lock, too. mirror: KIND:NAME; NULL:
 * none. */
static void add_mirror(struct redis_call *call, const char *mirror)
{
    char *key = mirror ? redis_mirror_key(mirror) : NULL;

    if (key)
        redis_call_add_mirror(call, key);
    free(key);
}

char *redis_glob_in_store(const char *prefix, const char *glob)
{
    struct strbuf out = {.text = NULL};

    if (!prefix)
        return mem_strdup("*:{*}"); /* every KEY, below any prefix */
    for (; *prefix; prefix++) {
        if (strchr("*?[]\\^-", *prefix)) /* a wildcard to SCAN, but not here */
            strbuf_putc(&out, '\\');
        strbuf_putc(&out, *prefix);
    }
    strbuf_printf(&out, ":{%s}", glob);
    return out.text;
}

void redis_call_drop(struct redis_call *call)
{
    for (size_t i = 0; i < call->argc; i++)
        free(call->argv[i]);
    for (size_t i = 0; i < call->key_count; i++)
        free(call->keys[i]);
    for (size_t i = 0; i < call->mirror_count; i++)
        free(call->mirrors[i]);
    free(call->argv);
    free(call->keys);
    free(call->mirrors);
    *call = (struct redis_call){.script = NULL};
}

char *redis_marker(const char *prefix, const char *what)
{
    return strbuf_print("%s:!%s", prefix, what);
}

/* -- the scripts' arguments -------------------------------------------------------------------- */

/* Sets the mode as scripts call it, and for a semaphore its limit. */
static void set_mode(struct redis_call *call, enum lock_mode mode, unsigned limit)
{
    static const char *const modes[] = {
        [LOCK_EXCLUSIVE] = "x", [LOCK_SHARED] = "s", [LOCK_LIMIT] = "l"};

    redis_call_set(call, "mode", modes[mode]);
    if (mode == LOCK_LIMIT)
        set_positive(call, "limit", limit);
}

/* Sets an argument to a list of numbers, one for each key. NULL: leaves it out. */
static void set_list(struct redis_call *call, const char *name, const uint64_t *numbers)
{
    struct strbuf list = {.text = NULL};

    for (size_t i = 0; numbers && i < call->key_count; i++)
        strbuf_printf(&list, "%s%" PRIu64, i ? " " : "", numbers[i]);
    set_text(call, name, list.text);
    strbuf_free(&list);
}

/* Sets the arguments for a member of a quorum. The process of its server is known only from the
 * greeting: so that argument is set when the call is sent (names_server). */
static void set_member(struct redis_call *call, const struct redis_terms *terms,
                       const struct member_terms *settled)
{
    redis_call_set(call, "member", terms->marker);
    set_list(call, "fences", settled->fences);
    call->names_server = true;
}

/* Sets the arguments about the place in the queue of an acquisition. */
static void set_place(struct redis_call *call, const struct acquire_request *request)
{
    bool has_bound = request->priority_bound && request->priority_bound != LOCK_PRIORITY_BOUND_NS;

    if (request->queue || request->queue_only)
        set_number(call, "place_ttl", QUEUE_PLACE_MS);
    set_flag(call, "queue_only", request->queue_only);
    /* One that does not queue has a priority, too: by that it goes before those that wait, or
     * not. */
    if (request->priority)
        set_number(call, "priority", request->priority);
    if (!request->queue)
        return;
    redis_call_set(call, "latest", request->group);
    if (has_bound)
        set_number(call, "bound", request->priority_bound / NS_PER_MS);
}

/* Whether the waiter may call less often as long as many come before it: it learns by a message
 * when its turn is near, and nothing but its turn would end its wait. */
static bool may_be_far(const struct redis_terms *terms, const struct acquire_request *request)
{
    /* Not at its first call: where a crowd is served before its second one, that saves the message,
     * and the call that the message brings. */
    if (request->waited < NS_PER_SEC && !terms->has_host)
        return false;
    return request->queue && request->listen && !request->queue_only && request->key_count == 1 &&
           !request->group && !request->priority && !request->take && !request->mirror &&
           !request->unless_done && !strchr(request->owner, '.') && !terms->grace && !terms->member;
}

void redis_call_acquire(struct redis_call *call, const struct redis_terms *terms,
                        const char *prefix, const struct acquire_request *request,
                        const struct member_terms *settled, bool offers)
{
    char take[48];

    redis_call_begin(call, &script_acquire, prefix, request->keys, request->key_count);
    call->take = request->take;
    call->numbered = request->numbered;
    call->ahead = true; /* its grant can be released */
    redis_call_set(call, "owner", request->owner);
    set_number(call, "lease", request->lease / NS_PER_MS);
    set_text(call, "who", request->who);
    if (request->mode != LOCK_EXCLUSIVE)
        set_mode(call, request->mode, request->limit);
    set_place(call, request);
    if (may_be_far(terms, request))
        set_number(call, "far_ttl", FAR_PLACE_MS);
    set_flag(call, "count", request->listen);
    set_text(call, "mirror", request->mirror);
    add_mirror(call, request->mirror);
    set_flag(call, "no_nesting", request->no_nesting);
    set_flag(call, "replace", request->replace);
    if (request->take) {
        snprintf(take, sizeof take, "%zu/%zu", request->take, request->key_count);
        redis_call_set(call, "take", take);
    }
    set_positive(call, "unless_done", request->unless_done / NS_PER_MS);
    set_text(call, "pauses", terms->pauses);
    redis_call_set(call, "version", PACKAGE_VERSION);
    if (terms->grace)
        redis_call_set(call, "epoch", terms->marker);
    if (terms->member) {
        set_member(call, terms, settled);
        set_positive(call, "proposal", (int64_t)settled->proposal);
        set_positive(call, "held", request->held / NS_PER_MS);
    }
    if (offers && !terms->grace && !terms->member)
        set_number(call, "accept_ms", HANDOVER_MS);
}

void redis_call_renew(struct redis_call *call, const struct redis_terms *terms, const char *prefix,
                      const struct renew_request *request, const struct member_terms *settled)
{
    uint64_t fences[LOCK_KEYS_MAX] = {0}, slots[LOCK_KEYS_MAX] = {0};
    const struct acquire_request *lock = request->lock;

    redis_call_begin(call, &script_renew, prefix, lock->keys, lock->key_count);
    call->numbered = lock->numbered;
    call->ahead = !terms->grace; /* with grace, it may make a lock */
    redis_call_set(call, "owner", lock->owner);
    set_positive(call, "lease", lock->lease / NS_PER_MS);
    add_mirror(call, lock->mirror);
    set_flag(call, "strict", request->strict);
    set_flag(call, "handed", request->handed);
    if (terms->member)
        set_member(call, terms, settled);
    if (!terms->grace)
        return;
    redis_call_set(call, "epoch", terms->marker);
    if (!request->grants)
        return;
    /* All that it takes to hold the locks again, if the server has forgotten them. */
    set_mode(call, lock->mode, lock->limit);
    redis_call_set(call, "who", lock->who);
    set_positive(call, "held", lock->held / NS_PER_MS);
    for (size_t i = 0; i < lock->key_count; i++) {
        fences[i] = request->grants[i].fence;
        slots[i] = request->grants[i].slot;
    }
    set_list(call, "fences", fences);
    set_list(call, "slots", slots);
}

const char *const redis_endings[] = {
    [LOCK_USED] = "",           [LOCK_UNUSED] = "unused", [LOCK_REFUSED] = "refused",
    [LOCK_TIMED_OUT] = "timed", [LOCK_LOST] = "lost",     [LOCK_EXPIRED] = "expired",
    [LOCK_REVOKED] = "revoked", [LOCK_KILLED] = "killed"};

/* Writes how the use of a lock has ended into "out", as notes of its record: "lost=1 ran=MS exit=N"
 * for example. Returns out. */
static char *print_end(const struct lock_end *end, char *out, size_t size)
{
    const char *ending = redis_endings[end->how];
    int used = snprintf(out, size, "%s%s", ending, *ending ? "=1" : "");

    /* An end after 0 ms would be read as one that is not known. */
    if (end->known)
        snprintf(out + used, size - (size_t)used, "%s" LOCK_NOTE_RAN "=%" PRId64 " %s=%d",
                 used ? " " : "", end->ran_ms > 0 ? end->ran_ms : 1,
                 end->signal ? LOCK_NOTE_SIGNAL : LOCK_NOTE_EXIT,
                 end->signal ? end->signal : end->status);
    return out;
}

void redis_call_release(struct redis_call *call, const struct redis_terms *terms,
                        const char *prefix, const struct release_request *request)
{
    char notes[80];

    redis_call_begin(call, &script_release, prefix, request->lock->keys, request->lock->key_count);
    call->numbered = request->lock->numbered;
    /* A release may come late: by its number it has no effect behind a later request. Without a
     * number, only the server's clock tells that it is too late, where it has to be in time. */
    call->ahead = call->numbered || !request->in_time;
    redis_call_set(call, "owner", request->lock->owner);
    add_mirror(call, request->lock->mirror);
    set_positive(call, "bar", request->uncertain ? BAR_MS : 0);
    set_positive(call, "at_least", request->at_least / NS_PER_MS);
    set_flag(call, "strict", request->strict);
    set_text(call, "notes", print_end(&request->end, notes, sizeof notes));
    if (terms->grace) {
        redis_call_set(call, "epoch", terms->marker);
        set_number(call, "lease", request->lock->lease / NS_PER_MS);
    }
}

void redis_call_give_back(struct redis_call *call, const struct redis_call *acquisition)
{
    redis_call_begin(call, &script_release, NULL, (const char *const *)acquisition->keys,
                     acquisition->key_count);
    call->whole = true;
    call->numbered = acquisition->numbered;
    call->db = acquisition->db;
    redis_call_set(call, "owner", redis_call_get(acquisition, "owner"));
    for (size_t i = 0; i < acquisition->mirror_count; i++)
        redis_call_add_mirror(call, acquisition->mirrors[i]);
}

/* Writes by whom a lock is taken away, and why, into "out", as notes: "by=… why=…". Returns out. */
static char *print_revocation(const struct force_request *request, char *out, size_t size)
{
    char coded[3 * IDENTITY_WORD_MAX + 1];
    int used = 0;

    out[0] = '\0';
    if (request->by && *request->by && percent_encode(request->by, "", coded, sizeof coded))
        used = snprintf(out, size, LOCK_NOTE_BY "=%s", coded);
    if (request->why && *request->why && percent_encode(request->why, "", coded, sizeof coded))
        snprintf(out + used, size - (size_t)used, "%s" LOCK_NOTE_WHY "=%s", used ? " " : "", coded);
    return out;
}

void redis_call_force(struct redis_call *call, const struct redis_terms *terms, const char *prefix,
                      const struct force_request *request)
{
    static const char *const words[] = {[FORCE_NOW] = "now",
                                        [FORCE_ASK] = "ask",
                                        [FORCE_ASK_AGAIN] = "again",
                                        [FORCE_ASKED_OVER] = "over"};
    char notes[2 * (3 * IDENTITY_WORD_MAX + 8)];
    struct strbuf owners = {.text = NULL};

    if (request->mirror) { /* another program's lock is taken away from it */
        redis_call_begin(call, &script_unmirror, prefix, &request->key, 1);
        redis_call_set(call, "mirror", request->mirror);
        add_mirror(call, request->mirror);
        set_text(call, "token", request->owner_count ? request->owners[0] : NULL);
        return;
    }
    redis_call_begin(call, &script_force, prefix, &request->key, 1);
    set_flag(call, "purge", request->purge);
    redis_call_set(call, "how", words[request->how]);
    if (terms->member && (request->how == FORCE_NOW || request->how == FORCE_ASKED_OVER))
        set_positive(call, "bar", request->lease / NS_PER_MS);
    set_text(call, "notes", print_revocation(request, notes, sizeof notes));
    for (size_t i = 0; i < request->owner_count; i++)
        strbuf_printf(&owners, "%s%s", i ? " " : "", request->owners[i]);
    set_text(call, "owners", owners.text);
    strbuf_free(&owners);
}

void redis_call_adjust(struct redis_call *call, const struct redis_terms *terms, const char *prefix,
                       const struct adjust_request *request)
{
    static const char *const verbs[] = {[ADJUST_LIMIT] = "limit",
                                        [ADJUST_NO_LIMIT] = "limit",
                                        [ADJUST_PAUSE] = "pause",
                                        [ADJUST_RESUME] = "resume",
                                        [ADJUST_MINIMUM] = "minimum"};
    struct strbuf who = {.text = NULL};

    if (request->glob)
        redis_call_begin(call, &script_pauses, NULL, &terms->pauses, 1);
    else
        redis_call_begin(call, &script_adjust, prefix, &request->key, 1);
    redis_call_set(call, "what", verbs[request->what]);
    if (request->what == ADJUST_LIMIT) {
        set_number(call, "limit", request->limit);
    } else if (request->what == ADJUST_MINIMUM) {
        redis_call_set(call, "version", request->version);
    } else if (request->glob) {
        /* Adds the GLOB as SCAN takes it; the user's words for it are a note behind "who". */
        char *glob = redis_glob_in_store(prefix, request->key);
        char coded[3 * KEY_MAX_BYTES + 1];
        redis_call_set(call, "glob", glob);
        free(glob);
        if (request->what == ADJUST_PAUSE) {
            percent_encode(request->key, "", coded, sizeof coded);
            strbuf_printf(&who, "%s " LOCK_NOTE_GLOB "=%s",
                          *request->who ? request->who : IDENTITY_UNKNOWN, coded);
        }
    } else if (request->what != ADJUST_NO_LIMIT) { /* a pause, or the end of one */
        set_text(call, "pauses", terms->pauses);
    }
    if (request->what == ADJUST_PAUSE) {
        set_number(call, "ms", request->duration / NS_PER_MS);
        redis_call_set(call, "who", who.text ? who.text : request->who);
    }
    strbuf_free(&who);
}

void redis_call_latch(struct redis_call *call, const char *prefix,
                      const struct latch_request *request)
{
    static const char *const verbs[] = {[LATCH_LOOK] = "look",
                                        [LATCH_LIST] = "list",
                                        [LATCH_SET] = "set",
                                        [LATCH_COUNT] = "count",
                                        [LATCH_DELETE] = "delete"};
    char field[KEY_MAX_BYTES + 3];

    redis_call_begin(call, &script_latch, prefix, &request->key, 1);
    call->ahead = request->verb != LATCH_DELETE; /* which must not be done twice */
    redis_call_set(call, "what", verbs[request->verb]);
    if (request->verb != LATCH_SET && request->verb != LATCH_COUNT)
        return;
    set_number(call, "number", request->number);
    set_text(call, "word", request->word);
    if (request->verb == LATCH_SET) {
        set_number(call, "ttl", request->ttl / NS_PER_MS);
    } else {
        /* As latch.lua has it: r:WORD of a call without an id, d:ID of others. */
        snprintf(field, sizeof field, "%c:%s", request->unnamed ? 'r' : 'd', request->id);
        redis_call_set(call, "field", field);
    }
}

void redis_call_mark(struct redis_call *call, const struct redis_terms *terms,
                     const struct mark_request *request)
{
    redis_call_begin(call, &script_init, NULL, NULL, 0);
    redis_call_set(call, "epoch", terms->marker);
    set_flag(call, "force", request->force);
    set_text(call, "user", request->user);
}

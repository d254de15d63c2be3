#include "rules/arguments.h"
#include "base/mem.h"
#include "base/percent.h"
#include "lock/key.h"
#include "rules/grace.h"
#include "rules/handover.h"
#include "rules/latch.h"

#include <inttypes.h>
#include <stdio.h>

/* A place in the queue is kept this long after the last call of its waiter. */
#define QUEUE_PLACE_MS 7000
/* How long an owner is barred whose acquisition may still be under way somewhere. */
#define BAR_MS 60000

static void call_begin(struct redis_call *call, const struct script *script, const char *prefix,
                       const char *const *keys, size_t count)
{
    call->script = script;
    call->keys = mem_zeroed((count + 1) * sizeof *call->keys); /* a script may have none */
    call->key_count = count;
    for (size_t i = 0; i < count; i++)
        call->keys[i] = key_in_store(prefix, keys[i]);
}

static void call_text(struct redis_call *call, const char *text)
{
    call->argv = mem_checked(realloc(call->argv, (call->argc + 1) * sizeof *call->argv));
    call->argv[call->argc++] = mem_strdup(text);
}

static void call_number(struct redis_call *call, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    call_text(call, text);
}

char *redis_glob_in_store(const char *prefix, const char *glob)
{
    if (!prefix)
        return mem_strdup("*:{*}");
    char *out = mem_zeroed(2 * strlen(prefix) + strlen(glob) + 4);
    char *to = out;

    for (const char *from = prefix; *from; from++) {
        if (strchr("*?[]\\^-", *from))
            *to++ = '\\';
        *to++ = *from;
    }
    sprintf(to, ":{%s}", glob);
    return out;
}

void redis_call_replace(struct redis_call *call, size_t i, const char *text)
{
    free(call->argv[i]);
    call->argv[i] = mem_strdup(text);
}

void redis_call_drop(struct redis_call *call)
{
    for (size_t i = 0; i < call->argc; i++)
        free(call->argv[i]);
    for (size_t i = 0; i < call->key_count; i++)
        free(call->keys[i]);
    free(call->argv);
    free(call->keys);
    *call = (struct redis_call){.script = NULL};
}

/* -- the scripts' arguments, in their order --------------------------------------------------- */

static void add_text(void *arg, const char *text)
{
    call_text(arg, text);
}

static void add_member(struct redis_call *call, const struct redis_terms *terms)
{
    call_text(call, "member");
    call_text(call, terms->marker);
    call->node_at = call->argc;
    call_text(call, "");
}

static void add_fences(struct redis_call *call, const uint64_t *fences, size_t count)
{
    for (size_t i = 0; fences && i < count; i++)
        call_number(call, (int64_t)fences[i]);
}

static void note_text(char **who, const char *name, const char *value)
{
    const char *line = **who ? *who : IDENTITY_UNKNOWN;
    char *noted = mem_zeroed(strlen(line) + strlen(name) + strlen(value) + sizeof " =");

    sprintf(noted, "%s %s=%s", line, name, value);
    free(*who);
    *who = noted;
}

static void note_number(char **who, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    note_text(who, name, text);
}

/* Who asks, with notes about the place in the queue that it asks for. */
static void add_who(struct redis_call *call, const struct acquire_request *request)
{
    bool bounds = request->priority_bound && request->priority_bound != LOCK_PRIORITY_BOUND_NS;
    char *who = mem_strdup(request->who);

    if (request->queue && request->group)
        note_text(&who, LOCK_NOTE_GROUP, request->group);
    if (request->replace)
        note_number(&who, LOCK_NOTE_REPLACE, 1);
    if (request->queue && request->priority)
        note_number(&who, LOCK_NOTE_PRIORITY, request->priority);
    if (request->queue && bounds)
        note_number(&who, LOCK_NOTE_BOUND, request->priority_bound / NS_PER_MS);
    if (request->take) {
        char take[48];
        snprintf(take, sizeof take, "%zu/%zu", request->take, request->key_count);
        note_text(&who, LOCK_NOTE_TAKE, take);
    }
    call_text(call, who);
    free(who);
}

void redis_call_acquire(struct redis_call *call, const struct redis_terms *terms,
                        const char *prefix, const struct acquire_request *request,
                        const struct member_terms *settled, bool offers)
{
    call_begin(call, &script_acquire, prefix, request->keys, request->key_count);
    call->take = request->take;
    call->ahead = true; /* what it grants can be given back */
    call_text(call, request->owner);
    call_number(call, request->lease / NS_PER_MS);
    call_number(call, request->stand ? -QUEUE_PLACE_MS : request->queue ? QUEUE_PLACE_MS : 0);
    call_text(call, "0");
    call_text(call, "");
    call_text(call, request->listen ? "1" : "0");
    call_text(call, redis_grace_mode(request->mode));
    if (request->mirror)
        call_text(call, request->mirror);
    else
        call_number(call, request->mode == LOCK_LIMIT ? request->limit : 0);
    call_text(call, request->no_nesting ? "0" : "1");
    add_who(call, request);
    call_text(call, terms->pauses ? terms->pauses : "");
    if (terms->grace) {
        call_text(call, "grace");
        call_text(call, terms->marker);
    } else if (terms->member) {
        add_member(call, terms);
        call_number(call, (int64_t)settled->proposal);
        add_fences(call, settled->fences, request->key_count);
    } else if (offers) {
        call_text(call, "offer");
        call_text(call, "");
        call_number(call, HANDOVER_MS);
    }
    if (request->unless_done) {
        call_text(call, "unless-done");
        call_number(call, request->unless_done / NS_PER_MS);
    }
}

void redis_call_renew(struct redis_call *call, const struct redis_terms *terms, const char *prefix,
                      const struct renew_request *request, const struct member_terms *settled)
{
    call_begin(call, &script_renew, prefix, request->keys, request->key_count);
    call->ahead = !terms->grace; /* then it may make a lock */
    call_text(call, request->owner);
    call_number(call, request->lease / NS_PER_MS);
    call_text(call, request->strict ? "1" : "0");
    call_text(call, "0");
    if (terms->grace) {
        redis_grace_renewal(terms->marker, request, add_text, call);
    } else if (terms->member) {
        add_member(call, terms);
        add_fences(call, settled->fences, request->key_count);
    } else if (request->handed) {
        call_text(call, "handed");
    }
}

/* The notes behind the record of a holder, when it has come to its end. */
static char *print_end(const struct lock_end *end, char *out, size_t size)
{
    static const char *const notes[] = {[LOCK_USED] = "",
                                        [LOCK_UNUSED] = LOCK_NOTE_UNUSED "=1",
                                        [LOCK_REFUSED] = LOCK_NOTE_REFUSED "=1",
                                        [LOCK_TIMED_OUT] = LOCK_NOTE_TIMED_OUT "=1",
                                        [LOCK_LOST] = LOCK_NOTE_LOST "=1",
                                        [LOCK_EXPIRED] = LOCK_NOTE_EXPIRED "=1",
                                        [LOCK_REVOKED] = LOCK_NOTE_REVOKED "=1",
                                        [LOCK_KILLED] = LOCK_NOTE_KILLED "=1"};
    int used = snprintf(out, size, "%s", notes[end->how]);

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

    call_begin(call, &script_release, prefix, request->keys, request->key_count);
    call->ahead = !request->in_time; /* which takes the server's clock */
    call_text(call, request->owner);
    call_number(call, request->uncertain ? BAR_MS : 0);
    call_number(call, request->at_least / NS_PER_MS);
    call_text(call, "0");
    call_text(call, request->strict ? "1" : "0");
    call_text(call, print_end(&request->end, notes, sizeof notes));
    if (terms->grace) {
        call_text(call, terms->marker);
        call_number(call, request->lease / NS_PER_MS);
    }
}

void redis_call_give_back(struct redis_call *call, const struct redis_call *acquisition)
{
    call->script = &script_release;
    call->whole = true;
    call->db = acquisition->db;
    call->keys = mem_zeroed((acquisition->key_count + 1) * sizeof *call->keys);
    for (size_t i = 0; i < acquisition->key_count; i++)
        call->keys[call->key_count++] = mem_strdup(acquisition->keys[i]);
    call_text(call, acquisition->argv[0]);
    for (int i = 1; i < 5; i++)
        call_text(call, "0");
}

/* By whom a lock is taken, and why, as notes: "by=… why=…". */
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

static void call_unmirror(struct redis_call *call, const char *prefix,
                          const struct force_request *request)
{
    call_begin(call, &script_unmirror, prefix, &request->key, 1);
    call_text(call, request->mirror);
    call_text(call, request->owner_count ? request->owners[0] : "");
}

void redis_call_force(struct redis_call *call, const char *prefix,
                      const struct force_request *request)
{
    static const char *const words[] = {[FORCE_NOW] = "now",
                                        [FORCE_ASK] = "ask",
                                        [FORCE_ASK_AGAIN] = "again",
                                        [FORCE_ASKED_OVER] = "over"};
    char notes[2 * (3 * IDENTITY_WORD_MAX + 8)];

    if (request->mirror) {
        call_unmirror(call, prefix, request);
        return;
    }
    call_begin(call, &script_force, prefix, &request->key, 1);
    call_text(call, request->purge ? "1" : "0");
    call_text(call, words[request->how]);
    call_text(call, print_revocation(request, notes, sizeof notes));
    for (size_t i = 0; i < request->owner_count; i++)
        call_text(call, request->owners[i]);
}

void redis_call_adjust(struct redis_call *call, const struct redis_terms *terms, const char *prefix,
                       const struct adjust_request *request)
{
    static const char *const verbs[] = {[ADJUST_LIMIT] = "limit",
                                        [ADJUST_NO_LIMIT] = "limit",
                                        [ADJUST_PAUSE] = "pause",
                                        [ADJUST_RESUME] = "resume"};

    call_begin(call, &script_adjust, prefix, &request->key, 1);
    call_text(call, verbs[request->what]);
    if (request->what == ADJUST_LIMIT)
        call_number(call, request->limit);
    if (request->what == ADJUST_NO_LIMIT)
        call_text(call, "");
    if (request->what == ADJUST_PAUSE || request->what == ADJUST_RESUME)
        call_text(call, terms->pauses ? terms->pauses : "");
    if (request->what == ADJUST_PAUSE) {
        call_number(call, request->duration / NS_PER_MS);
        call_text(call, request->who);
    }
}

/* The pause of a GLOB, which is written down in the words of SCAN, and in the user's. */
void redis_call_pauses(struct redis_call *call, const struct redis_terms *terms, const char *prefix,
                       const struct adjust_request *request)
{
    char coded[3 * KEY_MAX_BYTES + 1];
    char *glob = redis_glob_in_store(prefix, request->key);

    call->script = &script_pauses;
    call->keys = mem_zeroed(sizeof *call->keys);
    call->keys[call->key_count++] = mem_strdup(terms->pauses);
    call_text(call, request->what == ADJUST_PAUSE ? "pause" : "resume");
    call_text(call, glob);
    if (request->what == ADJUST_PAUSE) {
        char *who = mem_strdup(request->who);
        percent_encode(request->key, "", coded, sizeof coded);
        note_text(&who, LOCK_NOTE_GLOB, coded);
        call_number(call, request->duration / NS_PER_MS);
        call_text(call, who);
        free(who);
    }
    free(glob);
}

void redis_call_latch(struct redis_call *call, const char *prefix,
                      const struct latch_request *request)
{
    call_begin(call, &script_latch, prefix, &request->key, 1);
    call->ahead = request->verb != LATCH_DELETE; /* twice would not be once */
    redis_latch_arguments(request, add_text, call);
}

void redis_call_mark(struct redis_call *call, const struct redis_terms *terms,
                     const struct mark_request *request)
{
    call_begin(call, &script_init, NULL, NULL, 0);
    call_text(call, terms->marker);
    call_text(call, request->force ? "1" : "0");
    if (request->user)
        call_text(call, request->user);
}

/* The calls into a store, and the copies that it gets of what is asked. */
#include "store/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/mem.h"

/* -- copies of requests ------------------------------------------------------------------------ */

/* Copies words, NULL for one that is not there. One block: pointers to them, and behind these
 * their bytes. */
static const char **copy_words(const char *const *words, size_t count)
{
    size_t size = (count + 1) * sizeof *words;

    for (size_t i = 0; i < count; i++)
        size += words[i] ? strlen(words[i]) + 1 : 0;
    const char **copy = mem_zeroed(size);
    char *to = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        copy[i] = words[i] ? to : NULL;
        to = words[i] ? stpcpy(to, words[i]) + 1 : to;
    }
    return copy;
}

/* The old ones are freed when the new ones have been made of them. */
static const char **renew(const char ***words, const char **copy)
{
    free(*words);
    *words = copy;
    return copy;
}

static const struct lock_request *copy_lock(struct store_requests *copies,
                                            const struct lock_request *request)
{
    size_t count = request->key_count;
    const char *words[LOCK_KEYS_MAX + 4];

    memcpy(words, request->keys, count * sizeof *words);
    words[count] = request->owner;
    words[count + 1] = request->who ? request->who : "";
    words[count + 2] = request->group;
    words[count + 3] = request->mirror;
    copies->lock = *request;
    if (request->grants) {
        memmove(copies->grants, request->grants, count * sizeof *copies->grants);
        copies->lock.grants = copies->grants;
    }
    copies->lock.keys = renew(&copies->lock_words, copy_words(words, count + 4));
    copies->lock.owner = copies->lock.keys[count];
    copies->lock.who = copies->lock.keys[count + 1];
    copies->lock.group = copies->lock.keys[count + 2];
    copies->lock.mirror = copies->lock.keys[count + 3];
    return &copies->lock;
}

static const struct force_request *copy_force(struct store_requests *copies,
                                              const struct force_request *request)
{
    size_t count = request->owner_count;
    const char **words = mem_zeroed((count + 4) * sizeof *words);

    if (count > 0)
        memcpy(words, request->owners, count * sizeof *words);
    words[count] = request->key;
    words[count + 1] = request->by ? request->by : "";
    words[count + 2] = request->why ? request->why : "";
    words[count + 3] = request->mirror ? request->mirror : "";
    copies->force = *request;
    copies->force.owners = renew(&copies->force_words, copy_words(words, count + 4));
    copies->force.key = copies->force.owners[count];
    copies->force.by = copies->force.owners[count + 1];
    copies->force.why = copies->force.owners[count + 2];
    if (request->mirror)
        copies->force.mirror = copies->force.owners[count + 3];
    free(words);
    return &copies->force;
}

static const struct survey_request *copy_survey(struct store_requests *copies,
                                                const struct survey_request *request)
{
    copies->survey = *request;
    copies->survey.patterns =
        renew(&copies->survey_words, copy_words(request->patterns, request->pattern_count));
    return &copies->survey;
}

static const struct latch_request *copy_latch(struct store_requests *copies,
                                              const struct latch_request *request)
{
    const char *const words[] = {request->key, request->id, request->word};
    const char *const *copy;

    copies->latch = *request;
    copy = renew(&copies->latch_words, copy_words(words, 3));
    copies->latch.key = copy[0];
    copies->latch.id = copy[1];
    copies->latch.word = copy[2];
    return &copies->latch;
}

static const struct adjust_request *copy_adjust(struct store_requests *copies,
                                                const struct adjust_request *request)
{
    const char *const words[] = {request->key, request->who};
    const char *const *copy;

    copies->adjust = *request;
    copy = renew(&copies->adjust_words, copy_words(words, 2));
    copies->adjust.key = copy[0];
    copies->adjust.who = copy[1];
    return &copies->adjust;
}

static const struct mark_request *copy_mark(struct store_requests *copies,
                                            const struct mark_request *request)
{
    copies->mark = *request;
    copies->mark.user = renew(&copies->mark_words, copy_words(&request->user, 1))[0];
    return &copies->mark;
}

static void free_copies(struct store_requests *copies)
{
    free(copies->lock_words);
    free(copies->force_words);
    free(copies->survey_words);
    free(copies->latch_words);
    free(copies->adjust_words);
    free(copies->mark_words);
}

const char *store_address_password(const struct store_address *address)
{
    return address->urls->password ? address->urls->password : address->password;
}

bool store_lost_password(const struct store_address *address)
{
    const char *password = store_address_password(address);

    return address->nested && !(password && *password);
}

/* -- the calls --------------------------------------------------------------------------------- */

const struct store_record *store_record_of(const struct store_address *address)
{
    return address->url_count > 1 ? store_of_several : address->urls->record;
}

bool store_can(const struct store_address *address, enum store_ability ability)
{
    return store_record_of(address)->abilities & ability;
}

struct store *store_open(struct loop *loop, const struct store_address *address, char *fault,
                         size_t size)
{
    return store_record_of(address)->open(loop, address, fault, size);
}

void store_close(struct store *store)
{
    struct store_requests requests = store->requests;

    store->ops->close(store);
    free_copies(&requests);
}

void store_on_event(struct store *store, const struct store_events *events, void *arg)
{
    store->events = events;
    store->events_arg = arg;
}

void store_poke(struct store *store)
{
    if (store->events && store->events->poked)
        store->events->poked(store->events_arg);
}

void store_hand(struct store *store, const struct answer *grant)
{
    if (store->events && store->events->handed)
        store->events->handed(store->events_arg, grant);
    else
        store_poke(store);
}

void store_lose(struct store *store, const char *why)
{
    if (store->events && store->events->lost)
        store->events->lost(store->events_arg, why);
}

void store_acquire(struct store *store, const struct lock_request *request, struct moment until,
                   store_done *done, void *arg)
{
    store->ops->acquire(store, copy_lock(&store->requests, request), until, done, arg);
}

void store_renew(struct store *store, const struct lock_request *request, struct moment until,
                 store_done *done, void *arg)
{
    store->ops->renew(store, copy_lock(&store->requests, request), until, done, arg);
}

void store_release(struct store *store, const struct lock_request *request, bool uncertain,
                   struct moment until, store_done *done, void *arg)
{
    store->ops->release(store, copy_lock(&store->requests, request), uncertain, until, done, arg);
}

bool store_release_nowait(struct store *store, const struct lock_request *request)
{
    return store->ops->release_nowait(store, copy_lock(&store->requests, request));
}

void store_force(struct store *store, const struct force_request *request, struct moment until,
                 store_done *done, void *arg)
{
    store->ops->force(store, copy_force(&store->requests, request), until, done, arg);
}

void store_survey(struct store *store, const struct survey_request *request, struct moment until,
                  store_done *done, void *arg)
{
    store->ops->survey(store, copy_survey(&store->requests, request), until, done, arg);
}

void store_latch(struct store *store, const struct latch_request *request, struct moment until,
                 store_done *done, void *arg)
{
    store->ops->latch(store, copy_latch(&store->requests, request), until, done, arg);
}

void store_adjust(struct store *store, const struct adjust_request *request, struct moment until,
                  store_done *done, void *arg)
{
    store->ops->adjust(store, copy_adjust(&store->requests, request), until, done, arg);
}

void store_mark(struct store *store, const struct mark_request *request, struct moment until,
                store_done *done, void *arg)
{
    store->ops->mark(store, copy_mark(&store->requests, request), until, done, arg);
}

void answer_fail(struct answer *answer, enum cause cause, const char *format, ...)
{
    va_list values;

    *answer = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = cause};
    va_start(values, format);
    vsnprintf(answer->text, sizeof answer->text, format, values);
    va_end(values);
}

void store_note_failure(struct answer *told, const struct answer *latest)
{
    bool explained = told->cause != CAUSE_NONE && told->cause != CAUSE_UNREACHABLE;

    if (!explained || latest->cause != CAUSE_UNREACHABLE)
        *told = *latest;
}

char *store_print_grace(int64_t grace_ms, char *out, size_t size)
{
    int64_t seconds = (grace_ms + 999) / 1000;
    char left[32];

    snprintf(out, size, "the server may have lost locks; it grants nothing new for another %s",
             duration_print((seconds > 0 ? seconds : 1) * NS_PER_SEC, left, sizeof left));
    return out;
}

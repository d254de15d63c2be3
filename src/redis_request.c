/* The scripts' arguments, in their order. */
#include "redis_request.h"

#include "redis_grace.h"
#include "redis_latch.h"

/* How long an owner is barred whose acquisition may still be under way somewhere. */
#define BAR_MS 60000

static void add_text(void *arg, const char *text)
{
    redis_call_text(arg, text);
}

static void add_member(struct redis_call *call, const struct redis_terms *terms)
{
    redis_call_text(call, "member");
    redis_call_text(call, terms->marker);
    call->node_at = call->argc;
    redis_call_text(call, "");
}

static void add_fences(struct redis_call *call, const struct lock_request *request)
{
    for (size_t i = 0; request->fences && i < request->key_count; i++)
        redis_call_number(call, (int64_t)request->fences[i]);
}

void redis_request_acquire(struct redis_call *call, const struct redis_terms *terms,
                           const char *prefix, const struct lock_request *request)
{
    const int64_t patience = QUEUE_PATIENCE_NS / NS_PER_MS;

    redis_call_begin(call, &script_acquire, prefix, request->keys, request->key_count);
    redis_call_text(call, request->owner);
    redis_call_number(call, request->lease / NS_PER_MS);
    redis_call_number(call, request->stand ? -patience : request->queue ? patience : 0);
    redis_call_text(call, "0");
    redis_call_text(call, "");
    redis_call_text(call, request->listen ? "1" : "0");
    redis_call_text(call, redis_grace_mode(request->mode));
    redis_call_number(call, request->mode == LOCK_LIMIT ? request->limit : 0);
    redis_call_text(call, request->no_nesting ? "0" : "1");
    redis_call_text(call, request->who);
    if (terms->grace) {
        redis_call_text(call, "grace");
        redis_call_text(call, terms->marker);
    } else if (terms->member) {
        add_member(call, terms);
        redis_call_number(call, (int64_t)request->proposal);
        add_fences(call, request);
    }
}

void redis_request_renew(struct redis_call *call, const struct redis_terms *terms,
                         const char *prefix, const struct lock_request *request)
{
    redis_call_begin(call, &script_renew, prefix, request->keys, request->key_count);
    redis_call_text(call, request->owner);
    redis_call_number(call, request->lease / NS_PER_MS);
    if (terms->grace) {
        redis_grace_renewal(terms->marker, request, add_text, call);
    } else if (terms->member) {
        add_member(call, terms);
        add_fences(call, request);
    }
}

void redis_request_release(struct redis_call *call, const struct redis_terms *terms,
                           const char *prefix, const struct lock_request *request, bool uncertain)
{
    redis_call_begin(call, &script_release, prefix, request->keys, request->key_count);
    redis_call_text(call, request->owner);
    redis_call_number(call, uncertain ? BAR_MS : 0);
    redis_call_number(call, request->at_least / NS_PER_MS);
    redis_call_text(call, "0");
    if (terms->grace) {
        redis_call_text(call, terms->marker);
        redis_call_number(call, request->lease / NS_PER_MS);
    }
}

void redis_request_force(struct redis_call *call, const char *prefix,
                         const struct force_request *request)
{
    redis_call_begin(call, &script_force, prefix, &request->key, 1);
    redis_call_text(call, request->purge ? "1" : "0");
    for (size_t i = 0; i < request->owner_count; i++)
        redis_call_text(call, request->owners[i]);
}

void redis_request_latch(struct redis_call *call, const char *prefix,
                         const struct latch_request *request)
{
    redis_call_begin(call, &script_latch, prefix, &request->key, 1);
    redis_latch_arguments(request, add_text, call);
}

void redis_request_mark(struct redis_call *call, const struct redis_terms *terms, bool force)
{
    redis_call_begin(call, &script_init, NULL, NULL, 0);
    redis_call_text(call, terms->marker);
    redis_call_text(call, force ? "1" : "0");
}

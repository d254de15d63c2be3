#include "store/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "net/loop.h"

const char *store_address_password(const struct store_address *address)
{
    return address->urls->password ? address->urls->password : address->password;
}

bool store_lost_password(const struct store_address *address)
{
    const char *password = store_address_password(address);

    return address->nested && !(password && *password);
}

const struct store_kind *store_kind_of(const struct store_address *address)
{
    return address->url_count > 1 ? store_of_several : address->urls->kind;
}

bool store_can(const struct store_address *address, enum store_ability ability)
{
    return store_kind_of(address)->abilities & ability;
}

struct store *store_open(struct loop *loop, const struct store_address *address, char *fault,
                         size_t size)
{
    return store_kind_of(address)->open(loop, address, fault, size);
}

void store_close(struct store *store)
{
    store->ops->close(store);
}

void store_on_event(struct store *store, const struct store_events *events, void *arg)
{
    store->events = events;
    store->events_arg = arg;
}

void store_changed(void *arg)
{
    const struct store *store = arg;

    if (store->events && store->events->poked)
        store->events->poked(store->events_arg);
}

void store_changed_due(struct loop_timer *timer)
{
    store_changed(timer->owner);
}

void store_granted(struct store *store, const struct answer *grant)
{
    if (store->events && store->events->handed)
        store->events->handed(store->events_arg, grant);
    else
        store_changed(store);
}

void store_start(struct store *store, const struct operation *operation)
{
    store->operation = *operation;
    store->ops->start(store, &store->operation);
}

enum release_sent store_release_nowait(struct store *store, const struct release_request *request)
{
    return store->ops->release_nowait(store, request);
}

const struct acquire_request *operation_lock(const struct operation *operation)
{
    static const struct acquire_request none;

    switch (operation->verb) {
    case VERB_ACQUIRE: return operation->acquire;
    case VERB_RENEW: return operation->renew->lock;
    case VERB_RELEASE: return operation->release->lock;
    default: return &none;
    }
}

enum cause cause_of_errno(int error)
{
    bool no_room = error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;

    return no_room ? CAUSE_SYSTEM : CAUSE_UNREACHABLE;
}

bool answer_await(struct loop *loop, struct answer *failure)
{
    if (loop_run(loop) == 0)
        return true;
    answer_fail(failure, CAUSE_SYSTEM, "event loop failed: %s", strerror(errno));
    return false;
}

void answer_fail(struct answer *answer, enum cause cause, const char *format, ...)
{
    va_list values;

    *answer = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = cause};
    va_start(values, format);
    text_vappend(answer->text, sizeof answer->text, format, values);
    va_end(values);
}

void answer_prepend(struct answer *answer, const char *format, ...)
{
    struct strbuf whole = {0};
    va_list values;

    va_start(values, format);
    strbuf_vprintf(&whole, format, values);
    va_end(values);
    strbuf_puts(&whole, answer->text);
    text_copy(answer->text, sizeof answer->text, whole.text);
    strbuf_free(&whole);
}

void answer_keep(struct kept_answer *kept, const struct answer *answer)
{
    struct answer *copy = &kept->answer;

    *copy = *answer;
    if (answer->granted.grants)
        copy->granted.grants = memcpy(kept->grants, answer->granted.grants, sizeof kept->grants);
    if (answer->refused.holder || answer->refused.first) {
        kept->party = answer->refused.holder ? *answer->refused.holder : *answer->refused.first;
        copy->refused.holder = answer->refused.holder ? &kept->party : NULL;
        copy->refused.first = answer->refused.holder ? NULL : &kept->party;
    }
    if (answer->refused.revoked) {
        kept->revoked = *answer->refused.revoked;
        copy->refused.revoked = &kept->revoked;
    }
}

void store_note_failure(struct answer *told, const struct answer *latest)
{
    bool first = told->cause == CAUSE_NONE, found = !first && !told->nowhere; /* found: a host */
    bool explained = !first && told->cause != CAUSE_UNREACHABLE;

    if (!explained || latest->cause != CAUSE_UNREACHABLE)
        *told = *latest;
    told->nowhere &= !found;
}

char *store_print_grace(int64_t grace_ms, char *out, size_t size)
{
    int64_t seconds = (grace_ms + 999) / 1000; /* rounded up */

    snprintf(out, size, "the server may have lost locks; it grants nothing new for another %s",
             DURATION_TEXT((seconds > 0 ? seconds : 1) * NS_PER_SEC));
    return out;
}

/* A store asked by a command that has nothing else to do. */
#include "query.h"

#include <errno.h>
#include <stdio.h>

#include "lease.h"
#include "loop.h"
#include "mem.h"

/* For the questions themselves, when the connection is up; there may be many locks to read. */
#define ANSWER_TIME (10 * NS_PER_SEC)

struct pending {
    struct loop *loop;
    struct answer *answer;
};

bool query_open(struct query *query, const struct store_address *address, char *fault, size_t size)
{
    *query = (struct query){.patience = address->connect_timeout + ANSWER_TIME,
                            .attempt = address->connect_timeout};
    query->loop = loop_new();
    if (!query->loop) {
        snprintf(fault, size, "cannot wait for the store: %s", strerror(errno));
        return false;
    }
    query->store = store_open(query->loop, address, fault, size);
    return query->store != NULL;
}

void query_close(struct query *query)
{
    if (query->store)
        store_close(query->store);
    if (query->loop)
        loop_free(query->loop);
    *query = (struct query){0};
}

static void done(void *arg, const struct answer *answer)
{
    struct pending *pending = arg;
    *pending->answer = *answer;
    loop_stop(pending->loop);
}

static void wait_for(struct query *query, struct answer *answer)
{
    if (loop_run(query->loop) < 0) {
        *answer = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE};
        snprintf(answer->text, sizeof answer->text, "cannot wait for the store: %s",
                 strerror(errno));
    }
}

static struct lock_party *copy_parties(const struct lock_party *parties, size_t count)
{
    if (count == 0)
        return NULL;
    struct lock_party *copy = mem_zeroed(count * sizeof *copy);
    memcpy(copy, parties, count * sizeof *copy);
    return copy;
}

static void keep(void *arg, const struct lock_view *view)
{
    struct lock_list *list = arg;
    size_t size = (list->count + 1) * sizeof *list->locks;

    list->locks = mem_checked(realloc(list->locks, size));
    list->locks[list->count++] = (struct lock_view){
        .key = mem_strdup(view->key),
        .mode = view->mode,
        .limit = view->limit,
        .fence = view->fence,
        .holders = copy_parties(view->holders, view->holder_count),
        .holder_count = view->holder_count,
        .waiters = copy_parties(view->waiters, view->waiter_count),
        .waiter_count = view->waiter_count,
    };
}

void query_survey(struct query *query, const char *const *patterns, size_t count,
                  struct lock_list *list, struct answer *answer)
{
    struct pending pending = {query->loop, answer};
    struct survey_request request = {patterns, count, keep, list};

    *list = (struct lock_list){0};
    store_survey(query->store, &request, moment_plus(moment_now(), query->patience), done,
                 &pending);
    wait_for(query, answer);
}

void query_force(struct query *query, const struct force_request *request, struct answer *answer)
{
    struct pending pending = {query->loop, answer};

    store_force(query->store, request, moment_plus(moment_now(), query->patience), done, &pending);
    wait_for(query, answer);
}

void query_acquire(struct query *query, const struct lock_request *request, struct answer *answer)
{
    struct pending pending = {query->loop, answer};

    store_acquire(query->store, request, moment_plus(moment_now(), query->patience), done,
                  &pending);
    wait_for(query, answer);
}

void query_mark(struct query *query, bool force, struct answer *answer)
{
    struct pending pending = {query->loop, answer};

    store_mark(query->store, force, moment_plus(moment_now(), query->patience), done, &pending);
    wait_for(query, answer);
}

static void ask(struct query *query, const struct lock_request *request, bool release,
                struct moment until, struct answer *answer)
{
    struct pending pending = {query->loop, answer};

    if (release)
        store_release(query->store, request, false, until, done, &pending);
    else
        store_renew(query->store, request, until, done, &pending);
    wait_for(query, answer);
}

/* True if one more attempt was left unanswered. A store that was never reached is given up at once; one
 * that is not ready, or was asked already, is not. */
static bool insist(struct query *query, const struct lock_request *request, bool release,
                   struct answer *answer)
{
    struct moment end = moment_plus(moment_now(), query->patience);
    bool unanswered = false, hopeful = true;

    for (unsigned failures = 0; hopeful; failures++) {
        struct moment until = moment_plus(moment_now(), query->attempt);
        ask(query, request, release, moment_min(end, until), answer);
        if (answer->verdict != VERDICT_UNKNOWN)
            break;
        unanswered |= answer->maybe_done;
        /* An attempt without time would say less of what is wrong than the last one did. */
        int64_t pause = lease_backoff(failures, UINT32_MAX / 2);
        hopeful = (unanswered || answer->cause == CAUSE_NOT_READY) &&
                  answer->cause != CAUSE_DENIED && answer->cause != CAUSE_UNFIT &&
                  moment_until(moment_now(), end) > pause;
        if (hopeful)
            query_pause(query, pause);
    }
    if (answer->verdict == VERDICT_UNKNOWN)
        answer->maybe_done = unanswered;
    return unanswered;
}

void query_renew(struct query *query, const struct lock_request *request, struct answer *answer)
{
    insist(query, request, false, answer);
}

void query_release(struct query *query, const struct lock_request *request, struct answer *answer)
{
    if (insist(query, request, true, answer) && answer->cause == CAUSE_NOT_HOLDER)
        *answer = (struct answer){.verdict = VERDICT_GRANTED};
}

static void stop(struct loop_timer *timer)
{
    loop_stop(timer->owner);
}

/* In the loop, which notices a connection that is closed meanwhile. */
void query_pause(struct query *query, int64_t ns)
{
    struct loop_timer timer = {.fire = stop, .owner = query->loop};

    loop_arm(query->loop, &timer, moment_plus(moment_now(), ns));
    loop_run(query->loop);
    loop_disarm(query->loop, &timer);
}

void lock_list_free(struct lock_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free((void *)(uintptr_t)list->locks[i].key);
        free((void *)(uintptr_t)list->locks[i].holders);
        free((void *)(uintptr_t)list->locks[i].waiters);
    }
    free(list->locks);
    *list = (struct lock_list){0};
}

/* A store that answers as it was told. */
#include "fake_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MS  20000
#define KEPT_MS  30000
#define GRACE_MS 1000
#define NOT_SENT '_' /* an answer of our own */

static struct fake_store *of(struct store *base)
{
    return (struct fake_store *)base;
}

void fake_log(struct fake_store *store, const char *word)
{
    size_t used = strlen(store->log);

    if (strlen(word) == 2 && used > 2 && strncmp(store->log + used - 3, word, 2) == 0)
        return;
    snprintf(store->log + used, sizeof store->log - used, "%s ", word);
}

static void accuse(struct fake_store *store, const char *fault)
{
    if (!store->fault)
        store->fault = fault;
}

static const struct {
    char letter;
    struct answer answer;
} meanings[] = {
    {'+', {.verdict = VERDICT_GRANTED, .grants = {{.fence = 7}}}},
    {'/', {.verdict = VERDICT_GRANTED, .grants = {{.fence = 7}}}},
    {'<', {.verdict = VERDICT_GRANTED, .grants = {{.fence = 7}}}},
    {'*', {.verdict = VERDICT_GRANTED, .grants = {{.fence = 7}}, .forgotten = true}},
    {'d', {.verdict = VERDICT_GRANTED, .grants = {{.fence = 7}}, .deaf = true}},
    {'g',
     {.verdict = VERDICT_REFUSED,
      .cause = CAUSE_GRACE,
      .position = 1,
      .grace_ms = GRACE_MS,
      .text = "grace"}},
    {'-',
     {.verdict = VERDICT_REFUSED,
      .cause = CAUSE_HELD,
      .position = 1,
      .holders = 1,
      .left_ms = HELD_MS,
      .holder = {.owner = "other", .left_ms = HELD_MS}}},
    {'k',
     {.verdict = VERDICT_REFUSED,
      .cause = CAUSE_HELD,
      .position = 30,
      .holders = 1,
      .left_ms = HELD_MS,
      .kept_ms = KEPT_MS,
      .holder = {.owner = "other", .left_ms = HELD_MS}}},
    {'0', {.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER}},
    {'m', {.verdict = VERDICT_REFUSED, .cause = CAUSE_MISFIT, .text = "misfit"}},
    {'?',
     {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .maybe_done = true, .text = "mute"}},
    {'.',
     {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .maybe_done = true, .text = "mute"}},
    {',', {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .text = "no connection"}},
    {NOT_SENT, {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .text = "too late"}},
    {'!', {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .text = "refused"}},
    {'~', {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_NOT_READY, .text = "loading"}},
    {'x', {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_DENIED, .text = "denied"}},
};

/* Updates what the caller must expect from now on. */
static void draw_conclusions(struct fake_store *store, const struct answer *answer)
{
    bool acquire = strchr("aql", store->call);
    bool release = strchr("fu", store->call);

    if (acquire && answer->verdict == VERDICT_UNKNOWN && answer->maybe_done)
        store->holds = store->loose = true, store->loose_until = store->until;
    else if (acquire && answer->verdict == VERDICT_GRANTED)
        store->holds = true, store->loose = false;
    else if (acquire && answer->verdict == VERDICT_REFUSED)
        store->holds = store->loose = false;
    else if (answer->verdict == VERDICT_REFUSED || (release && answer->verdict == VERDICT_GRANTED))
        store->holds = store->loose = false;
    if (acquire && (answer->verdict == VERDICT_GRANTED || answer->maybe_done))
        store->parted = false;
}

/* The store grants in its own way. */
static void grant(struct fake_store *store, struct answer *answer)
{
    if (store->answer == '/') {
        store->lease /= 2;
        answer->lease = store->lease;
    } else if (store->answer == '<') {
        store->sent = moment_plus(store->sent, -store->lease / 10 * 3);
        answer->from = store->sent;
    }
}

static void reply(struct loop_timer *timer)
{
    struct fake_store *store = timer->owner;
    store_done *done = store->done;
    struct answer answer;
    size_t i = 0;

    while (meanings[i].letter != store->answer)
        i++;
    answer = meanings[i].answer;
    grant(store, &answer);
    store->done = NULL;
    store->heard = loop_now(store->loop);
    store->offered &= answer.verdict == VERDICT_REFUSED;
    draw_conclusions(store, &answer);
    if (store->answer != NOT_SENT)
        fake_log(store, (char[]){store->call, store->answer, '\0'});
    done(store->done_arg, &answer);
}

/* Takes the next word of the answers, if it is not the last. Returns when to give it. */
static struct moment take_answer(struct fake_store *store)
{
    char *end = (char *)(uintptr_t)store->answers + 1;
    long delay = 0;

    store->answer = *store->answers;
    if (*end && *end != ' ')
        delay = strtol(store->answers + 1, &end, 10);
    if (*end)
        store->answers = end + 1;
    return moment_plus(loop_now(store->loop), delay * NS_PER_MS);
}

/* Starts a call. One whose time is over is not even sent. */
static void begin(struct fake_store *store, char call, const struct operation *operation)
{
    const char *owner = operation_lock(operation).owner;
    struct moment until = operation->until;
    bool late = moment_reached(until, loop_now(store->loop));
    struct moment due = late ? loop_now(store->loop) : take_answer(store);

    if (store->done)
        accuse(store, "two operations at a time");
    if (store->owner[0] && strcmp(store->owner, owner) != 0)
        accuse(store, "another owner");
    snprintf(store->owner, sizeof store->owner, "%s", owner);
    store->call = call;
    store->until = until;
    store->done = operation->done;
    store->done_arg = operation->arg;
    if (strchr("aql", call) && store->answer == '0')
        store->answer = '-';
    if (!strchr("aql", call) && store->answer == 'g')
        store->answer = '0';
    if (call == 'r' && store->answer == '*' && !operation->renew->grants)
        store->answer = '0';
    if (late) {
        store->answer = NOT_SENT;
    } else if (store->answer == ',') {
        due = until;
    } else if (store->answer == '.' || due.ns > until.ns) {
        store->answer = '.';
        due = until;
    }
    loop_arm(store->loop, &store->reply, due);
}

static void begin_renewal(struct fake_store *store, const struct operation *operation)
{
    const struct renew_request *request = operation->renew;

    begin(store, request->handed ? 'h' : 'r', operation);
    if (request->grants && request->grants[0].fence != 7)
        accuse(store, "renewed something that was not granted");
}

static void begin_release(struct fake_store *store, const struct operation *operation)
{
    bool uncertain = operation->release->uncertain;

    if (store->loose && !uncertain && !moment_reached(store->loose_until, loop_now(store->loop)))
        accuse(store, "released without care for an acquisition that may be under way");
    store->parted = true;
    begin(store, uncertain ? 'u' : 'f', operation);
}

static void start(struct store *base, const struct operation *operation)
{
    struct fake_store *store = of(base);

    if (operation->verb == VERB_RELEASE) {
        begin_release(store, operation);
        return;
    }
    store->sent = loop_now(store->loop);
    store->lease = operation_lock(operation).lease;
    if (operation->verb == VERB_RENEW) {
        begin_renewal(store, operation);
        return;
    }
    store->offered = operation->acquire->offer;
    begin(store,
          operation->acquire->listen  ? 'l'
          : operation->acquire->queue ? 'q'
                                      : 'a',
          operation);
}

static bool release_nowait(struct store *base, const struct release_request *request)
{
    struct fake_store *store = of(base);

    (void)request;
    loop_disarm(store->loop, &store->reply);
    store->done = NULL;
    if (store->answer == ',')
        return false;
    store->parted = true;
    fake_log(store, "bye");
    return true;
}

static void close_store(struct store *base)
{
    (void)base;
}

static const struct store_ops fake_ops = {close_store, start, release_nowait};

void fake_store_init(struct fake_store *store, struct loop *loop, const char *answers)
{
    *store = (struct fake_store){.base = {.ops = &fake_ops}, .loop = loop, .answers = answers};
    store->reply = (struct loop_timer){.fire = reply, .owner = store};
    fake_descriptor(loop, reply);
}

void fake_poke(struct fake_store *store)
{
    store_poke(&store->base);
}

void fake_hand(struct fake_store *store)
{
    int64_t lasts = 9500 * NS_PER_MS, beyond = store->lease - lasts;
    struct answer grant = {.verdict = VERDICT_GRANTED, .grants = {{.fence = 7}}};

    if (store->done || !store->offered || store->holds)
        return;
    grant.from = moment_plus(store->sent, beyond > 0 ? -beyond : 0);
    store->lease = beyond > 0 ? lasts : store->lease;
    store->holds = true;
    store->parted = store->offered = false;
    store_hand(&store->base, &grant);
}

void fake_lose(struct fake_store *store)
{
    store->holds = false;
    store_lose(&store->base, "the session has expired");
}

/* Some of several keys: about which of them the keeper asks the store. All are asked for; when some
 * are granted, renewals and releases are only about those, unless another grant may be under
 * way. */
#include "lock/keeper.h"

#include "fake_loop.h"
#include "keepers.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

#define LEASE_NS  (30 * NS_PER_SEC)
#define LEAVE_NS  (8 * NS_PER_SEC)
#define WHILE_NS  (40 * NS_PER_SEC)
#define TURNS_MAX 10000

/* -- a store ----------------------------------------------------------------------------------- */

/* The answers to acquisitions, a character each: a, b or c: that key is granted; -: refused;
 * ?: not answered in time, and perhaps done. The last one is repeated. All else is granted. It
 * writes down a word for each call that is unlike the one before: acquire, renew, free (a release),
 * sure (a release by one who is uncertain), each with the keys; "acquire*": by a successor. */
struct recorder {
    struct store base;
    struct loop *loop;
    const char *answers;
    struct loop_timer reply;
    struct moment until;
    bool acquires;
    size_t keys; /* that it was asked about */
    store_done *done;
    void *arg;
    char log[500];
};

static void note(struct recorder *store, const char *what, const struct acquire_request *request)
{
    char word[64];
    size_t used = (size_t)snprintf(word, sizeof word, "%s:", what);
    size_t logged = strlen(store->log);

    for (size_t i = 0; i < request->key_count; i++)
        used += (size_t)snprintf(word + used, sizeof word - used, "%s", request->keys[i]);
    if (request->take && *what == 'a')
        used += (size_t)snprintf(word + used, sizeof word - used, "/%zu", request->take);
    if (logged > used && strncmp(store->log + logged - used - 1, word, used) == 0)
        return;
    snprintf(store->log + logged, sizeof store->log - logged, "%s ", word);
}

static void reply(struct loop_timer *timer)
{
    struct recorder *store = timer->owner;
    char given = store->acquires ? *store->answers : '+';
    struct answer answer = {.verdict = VERDICT_GRANTED};

    if (store->acquires && store->answers[1])
        store->answers++;
    for (size_t i = 0; i < store->keys; i++) {
        bool absent = store->acquires && i != (size_t)(given - 'a');
        answer.grants[i] = (struct lock_grant){.fence = absent ? 0 : 7, .absent = absent};
    }
    if (given == '-')
        answer = (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_HELD, .position = 2};
    if (given == '?')
        answer = (struct answer){
            .verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE, .maybe_done = true};
    store->done(store->arg, &answer);
}

static void start(struct store *base, const struct operation *operation)
{
    struct recorder *store = (struct recorder *)base;
    const struct acquire_request request = operation_lock(operation);
    struct moment now = loop_now(store->loop);

    store->acquires = operation->verb == VERB_ACQUIRE;
    if (store->acquires)
        note(store, request.inherited ? "acquire*" : "acquire", &request);
    else if (operation->verb == VERB_RENEW)
        note(store, "renew", &request);
    else
        note(store, operation->release->uncertain ? "sure" : "free", &request);
    store->keys = request.key_count;
    store->done = operation->done;
    store->arg = operation->arg;
    loop_arm(store->loop, &store->reply,
             store->acquires && *store->answers == '?' ? operation->until
                                                       : moment_plus(now, NS_PER_MS));
}

static bool release_nowait(struct store *base, const struct release_request *request)
{
    struct recorder *store = (struct recorder *)base;
    const struct acquire_request lock = {.keys = request->keys, .key_count = request->key_count};

    loop_disarm(store->loop, &store->reply);
    note(store, "sure", &lock);
    return true;
}

/* -- its keeper -------------------------------------------------------------------------------- */

struct life {
    struct loop *loop;
    struct recorder store;
    struct keeper *keeper;
    struct loop_timer timer;
    char action; /* after a while: r release, c cancel, a release and try again; 0: none */
    bool over;
};

static void on_over(void *arg, const struct keeper_end *end)
{
    struct life *life = arg;

    (void)end;
    life->over = true;
    loop_disarm(life->loop, &life->timer);
}

static const struct keeper_events events = {.waiting = quiet_answer,
                                            .held = quiet_held,
                                            .extended = quiet_extended,
                                            .outage = {quiet_answer, quiet_recovered},
                                            .lost = quiet_lost,
                                            .over = on_over};

static void act(struct loop_timer *timer)
{
    struct life *life = timer->owner;
    struct moment until = moment_plus(loop_now(life->loop), LEAVE_NS);
    char action = life->action;

    life->action = action == 'a' ? 'r' : '\0';
    if (action == 'r')
        keeper_release(life->keeper, until, NULL);
    else if (action == 'c')
        keeper_cancel(life->keeper, until);
    else if (action == 'a')
        keeper_restart(life->keeper);
    if (life->action)
        loop_arm(life->loop, timer, moment_plus(loop_now(life->loop), WHILE_NS));
}

static const struct {
    const char *name;
    char past; /* w, h: another keeper has waited before, or held key b; 0: there was none */
    const char *answers;
    char action;
    const char *wanted;
} lives[] = {
    {"one is granted", 0, "b", 'r', "acquire:abc/1 renew:b free:b "},
    {"another one after a wait", 0, "--c", 'r', "acquire:abc/1 renew:c free:c "},
    {"none is granted", 0, "-", 'c', "acquire:abc/1 free:abc "},
    {"one after silence", 0, "?b", 'r', "acquire:abc/1 renew:b free:b "},
    {"nothing is heard: any may be granted", 0, "?", 'c', "acquire:abc/1 sure:abc "},
    {"another one the next time", 0, "ba", 'a',
     "acquire:abc/1 renew:b free:b acquire:abc/1 renew:a free:a "},
    {"none of them the next time", 0, "b-", 'a',
     "acquire:abc/1 renew:b free:b acquire:abc/1 free:abc "},
    {"nothing is heard the next time", 0, "b?", 'a',
     "acquire:abc/1 renew:b free:b acquire:abc/1 sure:abc "},
    {"a successor holds what was granted", 'h', "b", 'r', "renew:b free:b "},
    {"a successor waits on", 'w', "--a", 'r', "acquire*:abc/1 acquire:abc/1 renew:a free:a "},
};

static void live(size_t i)
{
    static const struct store_ops ops = {close_nothing, start, release_nowait};
    static const char *const keys[] = {"a", "b", "c"};
    struct life life = {.loop = loop_new(), .action = lives[i].action};
    struct moment now = loop_now(life.loop);
    struct keeper_past past = {.began = now,
                               .not_before = now,
                               .held = lives[i].past == 'h',
                               .lease = {moment_plus(now, LEASE_NS), LEASE_NS},
                               .grants = {{.absent = true}, {.fence = 7}, {.absent = true}}};
    struct keeper_plan plan = plan_of("us", LEASE_NS, -1, now);
    int turns = 0;

    plan.request.keys = keys;
    plan.request.key_count = COUNT(keys);
    plan.request.take = 1;
    plan.server_wait = 60 * NS_PER_SEC;
    life.store =
        (struct recorder){.base.ops = &ops, .loop = life.loop, .answers = lives[i].answers};
    life.store.reply = (struct loop_timer){.fire = reply, .owner = &life.store};
    life.timer = (struct loop_timer){.fire = act, .owner = &life};
    loop_arm(life.loop, &life.timer, moment_plus(now, WHILE_NS));
    life.keeper = lives[i].past
                      ? keeper_take_over(life.loop, &life.store.base, &plan, &past, &events, &life)
                      : keeper_start(life.loop, &life.store.base, &plan, &events, &life);
    while (!life.over && fake_turn(life.loop) && ++turns < TURNS_MAX)
        ;
    if (!tap_ok(life.over && strcmp(life.store.log, lives[i].wanted) == 0, "%s: %s", lives[i].name,
                lives[i].wanted))
        tap_note("got %s", life.store.log);
    keeper_free(life.keeper);
    store_close(&life.store.base);
    loop_free(life.loop);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(lives); i++)
        live(i);
    return tap_done();
}

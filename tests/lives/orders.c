#include "lives/orders.h"

#include <stdlib.h>
#include <string.h>

#include "lives/faults.h"
#include "lives/server.h"
#include "net/loop.h"

static struct pause {
    const char *key;
    bool answered;
    bool resumed;  /* or it will be: what resumes it may be faster than what has paused it */
    int64_t until; /* at the earliest: the clock of a server is faster by 1 % at most */
} paused;

void orders_begin(void)
{
    paused = (struct pause){.key = NULL};
}

bool order_has_paused(const char *record)
{
    return paused.answered && !paused.resumed && strstr(record, paused.key) &&
           world.now < paused.until && !circumstances.forgot && !circumstances.clock_set;
}

/* -- asking the store -------------------------------------------------------------------------- */

struct client {
    struct store_address address;
    struct loop *loop;
    struct store *store;
    struct answer answer;
};

static void on_done(void *arg, const struct answer *answer)
{
    struct client *client = arg;

    client->answer = *answer;
    trace("has its answer: verdict %d cause %d", (int)answer->verdict, (int)answer->cause);
    loop_stop(client->loop);
}

static void client_open(struct client *client)
{
    char fault[200];

    client->address = run_address();
    client->loop = loop_new();
    client->store = store_open(client->loop, &client->address, fault, sizeof fault);
}

static void ask(struct client *client, struct operation operation)
{
    operation.until = moment_plus(moment_now(), 20 * SEC);
    operation.done = on_done;
    operation.arg = client;
    store_start(client->store, &operation);
    loop_run(client->loop);
}

struct answer order_ask(struct operation operation)
{
    struct client client;

    client_open(&client);
    ask(&client, operation);
    return client.answer;
}

/* -- force-release ----------------------------------------------------------------------------- */

struct force {
    struct run *run;
    bool now, purge;
};

static bool is_asked(const struct answer *answer)
{
    return answer->verdict == VERDICT_REFUSED && answer->cause == CAUSE_REVOKED;
}

/* Asks again until the lease is over for its holder, too, and once more then (force_release.c). */
static int force(const void *arg)
{
    const struct force *force = arg;
    const struct run *run = force->run;
    const char *owner = run->owner;
    struct force_request request = {.key = run->held_count ? run->held[0] : run->keys[0],
                                    .how = force->now ? FORCE_NOW : FORCE_ASK,
                                    .by = "admin",
                                    .why = "test",
                                    .owners = &owner,
                                    .owner_count = 1,
                                    .lease = run->lease,
                                    .purge = force->purge};
    struct client client;

    client_open(&client);
    ask(&client, (struct operation){.verb = VERB_FORCE, .force = &request});
    int64_t left = client.answer.refused.left_ms * MS;
    struct moment over = moment_plus(moment_now(), left + left / 100 + SEC);
    request.purge = false;
    while (is_asked(&client.answer) && request.how != FORCE_ASKED_OVER) {
        loop_run_for(client.loop, 200 * MS);
        request.how = moment_reached(over, moment_now()) ? FORCE_ASKED_OVER : FORCE_ASK_AGAIN;
        ask(&client, (struct operation){.verb = VERB_FORCE, .force = &request});
    }
    return 0;
}

void order_force(struct run *run, bool now)
{
    struct force *order = malloc(sizeof *order);

    *order = (struct force){run, now, one_in(4)};
    run->forced = true;
    process_start(process_new(ADMIN, 1, run), force, order);
}

/* -- init -------------------------------------------------------------------------------------- */

static int mark(const void *arg)
{
    const struct mark_request request = {.force = true};
    struct client client;

    (void)arg;
    client_open(&client);
    ask(&client, (struct operation){.verb = VERB_MARK, .mark = &request});
    return 0;
}

void order_mark(void *unused)
{
    (void)unused;
    process_start(process_new(ADMIN, 1, &runs[0]), mark, NULL);
}

/* -- pause ------------------------------------------------------------------------------------- */

static int resume(const void *arg)
{
    const struct adjust_request request = {.key = arg, .what = ADJUST_RESUME};
    struct client client;

    client_open(&client);
    paused.resumed = true;
    trace("resumes %s", request.key);
    ask(&client, (struct operation){.verb = VERB_ADJUST, .adjust = &request});
    return 0;
}

static void order_resume(void *run)
{
    process_start(process_new(ADMIN, 1, run), resume, ((struct run *)run)->keys[0]);
}

static int pause_lock(const void *arg)
{
    const struct run *run = arg;
    const struct adjust_request request = {.key = run->keys[0],
                                           .what = ADJUST_PAUSE,
                                           .duration = run->pause_lasts,
                                           .who = "host user 1 rlock why"};
    struct client client;

    client_open(&client);
    paused.key = run->keys[0];
    paused.until = world.now + run->pause_lasts - run->pause_lasts / 100 - 2 * MS;
    trace("pauses %s for %.3f s", paused.key, (double)run->pause_lasts / 1e9);
    ask(&client, (struct operation){.verb = VERB_ADJUST, .adjust = &request});
    paused.answered = client.answer.verdict == VERDICT_GRANTED;
    return 0;
}

void order_pause(void *arg)
{
    struct run *run = arg;

    process_start(process_new(ADMIN, 1, run), pause_lock, run);
    if (run->resumes_after)
        world_at(world.now + run->resumes_after, order_resume, run);
}

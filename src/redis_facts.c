/* Asking a Redis server about itself: one batch after the other over one connection. */
#include "redis_facts.h"
#include "key.h"
#include "loop.h"
#include "mem.h"
#include "redis_link.h"
#include "redis_self.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

/* The clock of the server has to go on by as much as ours meanwhile, which takes a moment to see. */
#define PINGS     15
#define PAUSE_NS  (8 * NS_PER_MS)
#define ANSWER_NS (5 * NS_PER_SEC)
#define SCRATCH   "rlock-doctor"
#define CHANNEL   "rlock-doctor:none"
#define NS_PER_US INT64_C(1000)

struct inquiry {
    const struct store_address *address;
    struct server_facts *facts;
    struct loop *loop;
    struct redis_link *link;
    struct moment sent;
    struct moment answered;
    /* Takes the replies of the batch under way. */
    void (*hear)(struct inquiry *inquiry, redisReply *const *replies, size_t count);
    bool failed;

    int64_t pings[PINGS];
    size_t ping_count;
    int64_t first_clock_ns, last_clock_ns; /* the server's, since 1970 */
    struct moment first_read, last_read;   /* when, by ours */
};

static void heard(void *arg, redisReply *const *replies, size_t count, const struct answer *failure)
{
    struct inquiry *inquiry = arg;

    inquiry->answered = moment_now();
    if (failure) {
        inquiry->failed = true;
        inquiry->facts->denied = failure->cause == CAUSE_DENIED;
        snprintf(inquiry->facts->fault, sizeof inquiry->facts->fault, "%s", failure->text);
    } else if (inquiry->hear) {
        inquiry->hear(inquiry, replies, count);
    }
    loop_stop(inquiry->loop);
}

static void poked(void *arg)
{
    (void)arg;
}

static void add(struct inquiry *inquiry, int argc, const char **argv)
{
    redis_link_add(inquiry->link, argc, argv, NULL);
}

static void add_words(struct inquiry *inquiry, const char *first, const char *second,
                      const char *third)
{
    const char *argv[] = {first, second, third};
    add(inquiry, third ? 3 : second ? 2 : 1, argv);
}

/* Sends what was added, and waits. */
static bool ask(struct inquiry *inquiry, size_t replies,
                void (*hear)(struct inquiry *, redisReply *const *, size_t))
{
    inquiry->hear = hear;
    inquiry->sent = moment_now();
    redis_link_send(inquiry->link, replies, 0, moment_plus(inquiry->sent, ANSWER_NS));
    return loop_run(inquiry->loop) == 0 && !inquiry->failed;
}

static void stop_pausing(struct loop_timer *timer)
{
    loop_stop(timer->owner);
}

static void pause_for(struct inquiry *inquiry, int64_t ns)
{
    struct loop_timer timer = {.fire = stop_pausing, .owner = inquiry->loop};

    loop_arm(inquiry->loop, &timer, moment_plus(moment_now(), ns));
    loop_run(inquiry->loop);
    loop_disarm(inquiry->loop, &timer);
}

/* -- how far, and what time it is there ------------------------------------------------------- */

static int64_t clock_of(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING)
        return UNTOLD;
    int64_t s = strtoll(reply->element[0]->str, NULL, 10),
            us = strtoll(reply->element[1]->str, NULL, 10);
    bool sound = s >= 0 && s < INT64_MAX / NS_PER_SEC && us >= 0 && us < 1000000;
    return sound ? s * NS_PER_SEC + us * NS_PER_US : UNTOLD;
}

static int64_t wall_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* An error takes as long on the way as an answer does. */
static void hear_ping(struct inquiry *inquiry, redisReply *const *replies, size_t count)
{
    int64_t took = moment_until(inquiry->sent, inquiry->answered);
    int64_t clock = clock_of(replies[0]);

    (void)count;
    inquiry->pings[inquiry->ping_count++] = took;
    if (clock == UNTOLD)
        return;
    inquiry->last_clock_ns = clock;
    inquiry->last_read = inquiry->answered;
    if (inquiry->first_clock_ns)
        return;
    inquiry->first_clock_ns = clock;
    inquiry->first_read = inquiry->answered;
    inquiry->facts->ahead_ms = (clock + took / 2 - wall_clock()) / NS_PER_MS;
}

static int by_size(const void *a, const void *b)
{
    const int64_t *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

static bool ask_pings(struct inquiry *inquiry)
{
    struct server_facts *facts = inquiry->facts;

    for (size_t i = 0; i < PINGS; i++) {
        if (i > 0)
            pause_for(inquiry, PAUSE_NS);
        add_words(inquiry, "TIME", NULL, NULL);
        if (!ask(inquiry, 1, hear_ping))
            return false;
    }
    qsort(inquiry->pings, PINGS, sizeof *inquiry->pings, by_size);
    facts->ping_median_ns = inquiry->pings[PINGS / 2];
    facts->ping_max_ns = inquiry->pings[PINGS - 1];
    facts->clock_ns = inquiry->last_clock_ns - inquiry->first_clock_ns;
    facts->here_ns = moment_until(inquiry->first_read, inquiry->last_read);
    return true;
}

/* -- what it is, and how it is set up ---------------------------------------------------------- */

static void hear_self(struct inquiry *inquiry, redisReply *const *replies, size_t count)
{
    redis_self_hello(inquiry->facts, replies[0]);
    redis_self_info(inquiry->facts, replies[1]);
    for (size_t i = 2; i < count; i++)
        redis_self_setting(inquiry->facts, redis_self_settings[i - 2], replies[i]);
}

static bool ask_self(struct inquiry *inquiry)
{
    size_t count = 2;

    add_words(inquiry, "HELLO", "2", NULL);
    add_words(inquiry, "INFO", NULL, NULL);
    for (const char *const *name = redis_self_settings; *name; name++, count++)
        add_words(inquiry, "CONFIG", "GET", *name);
    return ask(inquiry, count, hear_self);
}

/* -- does it run scripts? --------------------------------------------------------------------- */

static void hear_script(struct inquiry *inquiry, redisReply *const *replies, size_t count)
{
    struct server_facts *facts = inquiry->facts;

    (void)count;
    if (replies[0]->type == REDIS_REPLY_INTEGER)
        facts->script_ns = moment_until(inquiry->sent, inquiry->answered);
    else
        snprintf(facts->script_fault, sizeof facts->script_fault, "%.120s",
                 replies[0]->str ? replies[0]->str : "it answers something else");
}

static bool ask_script(struct inquiry *inquiry)
{
    add_words(inquiry, "EVAL", "return 1", "0");
    return ask(inquiry, 1, hear_script);
}

/* -- what its user may do ---------------------------------------------------------------------- */

static void note_lack(struct server_facts *facts, size_t right, const redisReply *reply)
{
    enum rights_lack lack =
        reply->type == REDIS_REPLY_ERROR ? rights_judge(reply->str) : RIGHTS_FINE;

    facts->lacks[right] |= lack == RIGHTS_LACK_COMMAND;
    facts->lacks_keys |= lack == RIGHTS_LACK_KEYS;
    facts->lacks_channels |= lack == RIGHTS_LACK_CHANNELS;
}

static bool frames(const struct right *right)
{
    return strcmp(right->name, "multi") == 0 || strcmp(right->name, "exec") == 0;
}

static void hear_frame(struct inquiry *inquiry, redisReply *const *replies, size_t count)
{
    size_t next = 0;

    for (size_t i = 0; rights[i].name && next < count; i++)
        if (frames(&rights[i]))
            note_lack(inquiry->facts, i, replies[next++]);
    inquiry->facts->rights_known = replies[0]->type != REDIS_REPLY_ERROR;
}

static void hear_rights(struct inquiry *inquiry, redisReply *const *replies, size_t count)
{
    size_t next = 1; /* the first is MULTI's */

    for (size_t i = 0; rights[i].name && next < count; i++)
        if (!frames(&rights[i]))
            note_lack(inquiry->facts, i, replies[next++]);
}

static void add_right(struct inquiry *inquiry, const struct right *right, const char *key,
                      const char *channel)
{
    const char *argv[RIGHT_WORDS];
    int argc = 0;

    for (; argc < RIGHT_WORDS && right->call[argc]; argc++) {
        const char *word = right->call[argc];
        argv[argc] = strcmp(word, "%k") == 0 ? key : strcmp(word, "%c") == 0 ? channel : word;
    }
    add(inquiry, argc, argv);
}

/* Rights are checked when a command is queued, and nothing of what is queued here is ever executed: the
 * connection is closed instead. */
static bool ask_rights(struct inquiry *inquiry)
{
    char *key = key_in_store(inquiry->address->prefix, SCRATCH);
    char *channel = key_in_store(inquiry->address->prefix, CHANNEL);
    size_t count = 1;

    add_words(inquiry, "MULTI", NULL, NULL);
    add_words(inquiry, "EXEC", NULL, NULL);
    bool going = ask(inquiry, 2, hear_frame);
    if (going && inquiry->facts->rights_known) {
        add_words(inquiry, "MULTI", NULL, NULL);
        for (const struct right *right = rights; right->name; right++) {
            if (frames(right))
                continue;
            add_right(inquiry, right, key, channel);
            count++;
        }
        going = ask(inquiry, count, hear_rights);
    }
    free(key);
    free(channel);
    return going;
}

/* -- all of it --------------------------------------------------------------------------------- */

static bool greet(struct inquiry *inquiry)
{
    struct moment began = moment_now();

    redis_link_greet(inquiry->link, moment_plus(began, inquiry->address->connect_timeout));
    if (loop_run(inquiry->loop) < 0 || inquiry->failed)
        return false;
    inquiry->facts->connected_ns = moment_until(began, inquiry->answered);
    return true;
}

/* A server that answers some questions and then no more is not one to rely on. */
static void inquire(struct inquiry *inquiry)
{
    inquiry->facts->reached = greet(inquiry) && ask_pings(inquiry) && ask_self(inquiry) &&
                              ask_script(inquiry) && ask_rights(inquiry);
}

static void know_nothing(struct server_facts *facts)
{
    *facts = (struct server_facts){.connected_ns = UNTOLD,
                                   .ping_median_ns = UNTOLD,
                                   .ping_max_ns = UNTOLD,
                                   .uptime_s = UNTOLD,
                                   .ahead_ms = INT64_MIN,
                                   .maxmemory = UNTOLD,
                                   .script_ns = UNTOLD,
                                   .replicas = UNTOLD,
                                   .min_replicas = UNTOLD,
                                   .timeout_s = UNTOLD,
                                   .clients = UNTOLD,
                                   .clients_max = UNTOLD};
}

void redis_facts_none(struct server_facts *facts, const struct answer *failure)
{
    know_nothing(facts);
    facts->denied = failure->cause == CAUSE_DENIED;
    snprintf(facts->fault, sizeof facts->fault, "%s", failure->text);
}

bool redis_facts_ask(const struct store_address *address, struct server_facts *facts, char *fault,
                     size_t size)
{
    static const struct redis_link_events events = {heard, poked};
    struct inquiry inquiry = {.address = address, .facts = facts, .loop = loop_new()};

    know_nothing(facts);
    if (!inquiry.loop) {
        snprintf(fault, size, "cannot wait for the server: %s", strerror(errno));
        return false;
    }
    inquiry.link = redis_link_new(inquiry.loop, address, &events, &inquiry, fault, size);
    if (inquiry.link) {
        inquire(&inquiry);
        redis_link_free(inquiry.link);
    }
    loop_free(inquiry.loop);
    return inquiry.link != NULL;
}

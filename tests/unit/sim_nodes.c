/* Nodes of a quorum, simulated. */
#include "sim_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chance.h"

#define TIMEOUT_NS (2 * NS_PER_SEC) /* how long one request may take at all */

static const struct member_terms no_terms;

/* A request on its way; it arrives even if no one waits for the answer any more. */
struct sim_message {
    struct loop_timer timer; /* first: of both kinds */
    struct sim_node *node;
    struct sim_link *link; /* NULL: the answer is not waited for */
    unsigned life;         /* of the node when it was sent */
    enum store_verb verb;
    char owner[SIM_OWNER];
    int64_t lease;
    bool settled, uncertain, executed;
    bool connects; /* it is sent when the node greets */
    uint64_t fence, proposal;
    struct moment not_after;
    struct kept_answer kept; /* its answer */
    struct seniority seniority;
    struct sim_message *next;
};

struct sim_link {
    struct store base;
    struct member_report report;
    struct sim_node *node;
    struct loop_timer timer; /* the end of the time for it */
    store_done *done;        /* NULL: nothing is under way */
    void *arg;
    struct sim_message *message; /* under way, not lost */
    bool greeted;
    struct sim_link *next;
};

static unsigned state;
static bool silent;
static struct moment wall;

void sim_seed(unsigned seed)
{
    state = seed * 2654435761u + 1;
    chance_for_system(&state);
}

unsigned sim_below(unsigned limit)
{
    return chance(&state, limit);
}

void sim_silence(bool silence)
{
    silent = silence;
}

/* The wall clock of the clients, in place of the system's; stores have no other use for it. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    t->tv_sec = wall.ns / NS_PER_SEC;
    t->tv_nsec = wall.ns % NS_PER_SEC;
    return 0;
}

/* -- a node ---------------------------------------------------------------------------------- */

void sim_node_init(struct sim_node *node, struct loop *loop, struct trial *trial, const char *id)
{
    *node = (struct sim_node){.loop = loop, .trial = trial, .slowest = NS_PER_MS};
    node->since = moment_plus(loop_now(loop), -1000 * NS_PER_SEC);
    snprintf(node->id, sizeof node->id, "%s", id);
}

void sim_node_free(struct sim_node *node)
{
    for (struct sim_message *message = node->messages, *next; message; message = next) {
        next = message->next;
        loop_disarm(node->loop, &message->timer);
        free(message);
    }
    node->messages = NULL;
}

const char *sim_node_holder(const struct sim_node *node)
{
    return node->owner[0] && node->deadline.ns > loop_now(node->loop).ns ? node->owner : NULL;
}

static bool is_barred(const struct sim_node *node, const char *owner)
{
    for (unsigned i = 0; i < SIM_BARS && i < node->bar_count; i++) {
        if (strcmp(node->bars[i], owner) == 0)
            return true;
    }
    return false;
}

static struct seniority seniority_of(struct sim_node *node)
{
    struct moment now = loop_now(node->loop);

    if (!node->first.ns)
        node->first = now;
    return (struct seniority){.memory_ms = (now.ns - node->since.ns) / NS_PER_MS + 1,
                              .service_ms = (now.ns - node->first.ns) / NS_PER_MS + 1};
}

static void refuse(struct sim_node *node, const struct sim_message *message, enum cause cause,
                   struct kept_answer *kept)
{
    const char *holder = sim_node_holder(node);
    struct answer *answer = &kept->answer;

    answer->verdict = VERDICT_REFUSED;
    answer->cause = cause;
    if (cause == CAUSE_NOT_HOLDER && strcmp(node->taken, message->owner) == 0)
        answer->refused.revoked = &kept->revoked;
    if (holder) {
        snprintf(kept->party.owner, OWNER_SIZE, "%s", holder);
        answer->refused.holder = &kept->party;
        answer->refused.left_ms = (node->deadline.ns - loop_now(node->loop).ns) / NS_PER_MS;
    }
}

static void grant(struct sim_node *node, const struct sim_message *message,
                  struct kept_answer *kept)
{
    node->deadline = moment_plus(loop_now(node->loop), message->lease);
    if (message->settled) {
        node->entry_fence = message->fence;
        if (message->fence > node->fence)
            node->fence = message->fence;
    }
    kept->grants[0].fence = node->entry_fence;
    kept->answer.verdict = VERDICT_GRANTED;
    kept->answer.granted.grants = kept->grants;
}

static uint64_t mint(struct sim_node *node, uint64_t proposal)
{
    uint64_t now_us = (uint64_t)(loop_now(node->loop).ns + node->skew) / 1000;
    uint64_t least = now_us > node->fence ? now_us : node->fence + 1;

    node->fence = proposal <= now_us + 1000000 && proposal > least ? proposal : least;
    return node->fence;
}

static void acquire_at(struct sim_node *node, const struct sim_message *message,
                       struct kept_answer *kept)
{
    const char *holder = sim_node_holder(node);

    kept->answer =
        (struct answer){.verdict = VERDICT_UNKNOWN, .cause = CAUSE_NOT_READY, .text = "late"};
    if (message->not_after.ns < loop_now(node->loop).ns || is_barred(node, message->owner))
        return;
    if (holder && strcmp(holder, message->owner) != 0) {
        refuse(node, message, CAUSE_HELD, kept);
        return;
    }
    snprintf(node->owner, sizeof node->owner, "%s", message->owner);
    if (!message->settled)
        node->entry_fence = mint(node, message->proposal);
    grant(node, message, kept);
}

static void release_at(struct sim_node *node, const struct sim_message *message,
                       struct kept_answer *kept)
{
    kept->answer =
        (struct answer){.verdict = VERDICT_UNKNOWN, .cause = CAUSE_NOT_READY, .text = "late"};
    if (message->not_after.ns < loop_now(node->loop).ns)
        return;
    kept->answer.verdict = VERDICT_GRANTED;
    kept->answer.cause = CAUSE_NONE;
    if (strcmp(node->owner, message->owner) == 0)
        node->owner[0] = node->taken[0] = '\0';
    else
        refuse(node, message, CAUSE_NOT_HOLDER, kept);
    if (message->uncertain)
        snprintf(node->bars[node->bar_count++ % SIM_BARS], sizeof *node->bars, "%s",
                 message->owner);
}

static void execute(struct sim_node *node, struct sim_message *message)
{
    struct kept_answer *kept = &message->kept;

    switch (message->verb) {
    case VERB_ACQUIRE: acquire_at(node, message, kept); break;
    case VERB_RENEW:
        if (strcmp(node->owner, message->owner) == 0)
            grant(node, message, kept);
        else
            refuse(node, message, CAUSE_NOT_HOLDER, kept);
        break;
    default: release_at(node, message, kept); return; /* it does not tell */
    }
    if (kept->answer.verdict != VERDICT_UNKNOWN)
        message->seniority = seniority_of(node);
}

/* -- the way --------------------------------------------------------------------------------- */

/* The message's answer is not waited for any more. */
static void forget_message(struct sim_link *link)
{
    if (link->message)
        link->message->link = NULL;
    link->message = NULL;
}

static void settle(struct sim_link *link, const struct answer *answer, struct seniority seniority)
{
    store_done *done = link->done;

    loop_disarm(link->node->loop, &link->timer);
    forget_message(link);
    link->done = NULL;
    link->report.sent = false;
    link->report.seniority = seniority;
    done(link->arg, answer);
}

static void fail(struct sim_link *link)
{
    struct answer answer = {.verdict = VERDICT_UNKNOWN,
                            .cause = CAUSE_UNREACHABLE,
                            .maybe_done = link->report.sent,
                            .text = "no answer"};
    settle(link, &answer, (struct seniority){0});
}

static void drop(struct sim_message *message)
{
    struct sim_message **at = &message->node->messages;

    while (*at != message)
        at = &(*at)->next;
    *at = message->next;
    if (message->link)
        message->link->message = NULL;
    free(message);
}

static struct moment after(struct sim_node *node)
{
    int64_t unit = NS_PER_MS / 10;

    return moment_plus(loop_now(node->loop),
                       node->fastest + unit * (1 + sim_below((unsigned)(node->slowest / unit))));
}

static void move(struct sim_message *message)
{
    struct sim_node *node = message->node;
    struct moment now = loop_now(node->loop);

    wall = now;
    if (message->life != node->lives || node->down || (message->connects && !message->link) ||
        sim_below(1000) < node->loss) {
        drop(message); /* its link finds out in time */
    } else if (node->still.ns > now.ns) {
        loop_arm(node->loop, &message->timer, node->still);
    } else if (message->connects) {
        message->connects = false;
        message->link->greeted = message->link->report.sent = true;
        loop_arm(node->loop, &message->timer, after(node));
    } else if (!message->executed) {
        message->executed = true;
        execute(node, message);
        loop_arm(node->loop, &message->timer, after(node));
    } else {
        struct sim_link *link = node->mute ? NULL : message->link;
        struct kept_answer kept;
        answer_keep(&kept, &message->kept.answer);
        struct seniority seniority = message->seniority;
        drop(message);
        if (!link)
            return;
        snprintf(link->report.server, sizeof link->report.server, "%s", node->id);
        settle(link, &kept.answer, seniority);
    }
}

/* In place of the descriptors of real stores. */
static void fire(struct loop_timer *timer)
{
    if (timer->owner)
        fail(timer->owner);
    else
        move((struct sim_message *)(void *)timer);
}

static struct sim_message *post(struct sim_link *link, enum store_verb verb,
                                const struct acquire_request *request,
                                const struct member_terms *terms)
{
    struct sim_message *message = calloc(1, sizeof *message);

    if (!message)
        abort();
    message->timer = (struct loop_timer){.fire = fire};
    message->node = link->node;
    message->life = link->node->lives;
    message->verb = verb;
    message->lease = request->lease;
    message->settled = terms->fences != NULL;
    message->fence = terms->fences ? terms->fences[0] : 0;
    message->proposal = terms->proposal;
    message->not_after = MOMENT_NEVER;
    snprintf(message->owner, sizeof message->owner, "%s", request->owner);
    message->next = link->node->messages;
    link->node->messages = message;
    loop_arm(link->node->loop, &message->timer, after(link->node));
    return message;
}

static struct sim_link *of(struct store *base)
{
    return (struct sim_link *)(void *)base;
}

/* A node that is down says so; otherwise the request goes out, and until then it has time. */
static struct sim_message *begin(struct sim_link *link, const struct operation *operation,
                                 struct moment until)
{
    struct sim_node *node = link->node;
    struct moment now = loop_now(node->loop);

    if (link->done)
        accuse(node->trial, "two operations at a time on one node");
    link->done = operation->done;
    link->arg = operation->arg;
    link->report.sent = false;
    if (link->node->down || moment_reached(until, now)) {
        loop_arm(link->node->loop, &link->timer, now);
        return NULL;
    }
    loop_arm(link->node->loop, &link->timer, until);
    bool connects = !link->greeted;
    link->greeted = link->report.sent = !connects;
    link->message = post(link, operation->verb, operation_lock(operation),
                         operation->verb == VERB_RELEASE ? &no_terms : operation->terms);
    link->message->link = link;
    link->message->connects = connects;
    return link->message;
}

static void link_start(struct store *base, const struct operation *operation)
{
    struct moment until = operation->until;
    bool acquires = operation->verb == VERB_ACQUIRE, releases = operation->verb == VERB_RELEASE;
    struct sim_node *node = of(base)->node;

    if (acquires)
        until = moment_min(until, moment_plus(loop_now(node->loop), TIMEOUT_NS));
    if (acquires && (operation->acquire->queue || operation->acquire->listen))
        accuse(node->trial, "a node was asked to keep a place in a queue");
    if (acquires && !operation->acquire->mirror)
        accuse(node->trial, "a node was asked for the lock without its mirror");
    struct sim_message *message = begin(of(base), operation, until);
    if (message && releases)
        message->uncertain = operation->release->uncertain;
    if (message && (acquires || (releases && operation->release->in_time)))
        message->not_after = until;
}

static enum release_sent link_release_nowait(struct store *base,
                                             const struct release_request *request)
{
    struct sim_link *link = of(base);

    loop_disarm(link->node->loop, &link->timer);
    forget_message(link);
    link->done = NULL;
    bool up = link->greeted && !link->node->down;
    if (up && !silent)
        post(link, VERB_RELEASE, request->lock, &no_terms)->uncertain = true;
    return up ? RELEASE_SENT : RELEASE_UNSENT;
}

static void take_out(struct sim_link *link)
{
    struct sim_link **at = &link->node->links;

    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
}

static void link_close(struct store *base)
{
    struct sim_link *link = of(base);

    take_out(link);
    loop_disarm(link->node->loop, &link->timer);
    forget_message(link);
    free(link);
}

struct member sim_link(struct sim_node *node)
{
    static const struct store_ops ops = {link_close, link_start, link_release_nowait};
    struct sim_link *link = calloc(1, sizeof *link);

    if (!link)
        abort();
    link->base.ops = &ops;
    link->node = node;
    link->timer = (struct loop_timer){.fire = fire, .owner = link};
    link->next = node->links;
    node->links = link;
    fake_descriptor(node->loop, fire);
    return (struct member){&link->base, &link->report};
}

static void cut(struct sim_link *link)
{
    struct loop *loop = link->node->loop;

    link->greeted = false;
    if (link->done)
        loop_arm(loop, &link->timer, loop_now(loop));
    else
        store_changed(&link->base);
}

void sim_node_cut(struct sim_node *node)
{
    for (struct sim_link *link = node->links; link; link = link->next)
        cut(link);
}

void sim_node_kill(struct sim_node *node)
{
    node->down = true;
    node->lives++;
    node->still = (struct moment){0};
    sim_node_cut(node);
}

void sim_node_evict(struct sim_node *node)
{
    memcpy(node->taken, node->owner, sizeof node->taken);
    node->owner[0] = '\0';
}

void sim_node_start(struct sim_node *node, bool forgetful)
{
    node->down = false;
    snprintf(node->id + strcspn(node->id, "/"), 24, "/%u", node->lives);
    node->since = loop_now(node->loop);
    if (!forgetful)
        return;
    node->owner[0] = '\0';
    node->fence = node->entry_fence = 0;
    node->first = (struct moment){0};
    node->bar_count = 0;
}

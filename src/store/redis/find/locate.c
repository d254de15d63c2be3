#include "store/redis/find/locate.h"
#include "base/mem.h"
#include "os/helper_process.h"

#include <errno.h>
#include <stdio.h>

/* How often to ask, at least, whether the master is still the master: one that was replaced may go
 * unnoticed for this long. */
#define LOOK_NS (3 * NS_PER_SEC)
/* How long a look may take. */
#define LOOK_TIMEOUT_NS (2 * NS_PER_SEC)

#define LOCAL_SOCKET_SIZE 108 /* of a Unix socket, see unix(7) */

/* The result of starting the local server: its socket, or why it is not up. */
struct start {
    bool up;
    char socket[LOCAL_SOCKET_SIZE];
    char fault[160];
};

/* Reports that the server was not found. */
static void report_failure(struct locator *locator, enum cause cause, const char *fault)
{
    struct answer failure;

    answer_fail(&failure, cause, "%s", fault);
    locator->events->located(locator->arg, &failure);
}

static void ask_for_master(struct locator *locator);
static void ask_sentinels(struct loop_timer *timer);

struct locator *locator_new(struct loop *loop, const struct url *url, struct tls *tls,
                            const struct locator_events *events, void *arg, char *fault,
                            size_t size)
{
    struct locator *locator = mem_zeroed(sizeof *locator);

    *locator =
        (struct locator){.loop = loop, .url = url, .events = events, .arg = arg, .pace = LOOK_NS};
    locator->look = (struct loop_timer){.fire = ask_sentinels, .owner = locator};
    locator->fixed = url->kind->program != NULL; /* a program has no address */
    if (locator->fixed)
        return locator;
    locator->startable = url->kind->start_server != NULL;
    if (locator->startable) {
        /* Finds the server if it runs; the search reports a directory that must not be trusted. */
        char socket[LOCAL_SOCKET_SIZE];
        if (locator->url->kind->find_server(socket, sizeof socket))
            locator->addresses.count = resolve_path(socket, &locator->addresses.found[0]);
        return locator;
    }
    if (url->path && !resolve_path(url->path, &locator->addresses.found[0])) {
        snprintf(fault, size, "the path is too long for a Unix socket");
        free(locator);
        return NULL;
    }
    if (url->master)
        locator->sentinels = sentinels_new(loop, url, tls);
    else
        locator->fixed = url->path || resolve_numeric(url->hosts[0].name, url->hosts[0].port,
                                                      &locator->addresses.found[0]);
    locator->addresses.count = locator->fixed ? 1 : 0;
    return locator;
}

void locator_free(struct locator *locator)
{
    locator_stop(locator);
    if (locator->sentinels)
        sentinels_free(locator->sentinels);
    free(locator);
}

int locator_known(const struct locator *locator)
{
    return locator->doubtful ? 0 : locator->addresses.count;
}

const char *locator_host(const struct locator *locator)
{
    if (locator->sentinels)
        return locator->host;
    return locator->url->host_count ? locator->url->hosts[0].name : NULL;
}

/* -- names ----------------------------------------------------------------------------------- */

int locator_find(const struct locator *locator, const struct endpoint *at)
{
    int i = 0;

    while (i < locator->addresses.count && !endpoint_is_same(&locator->addresses.found[i], at))
        i++;
    return i < locator->addresses.count ? i : -1;
}

void locator_leave(struct locator *locator, int endpoint)
{
    if (locator->fixed || locator->startable)
        return;
    locator->left = locator->addresses.found[endpoint];
    locator->doubtful = true;
}

bool locator_may_stay(const struct locator *locator)
{
    return locator->doubtful && locator->addresses.count > 0 && !locator->sentinels;
}

void locator_stay(struct locator *locator)
{
    resolver_stop(&locator->addresses);
    locator->doubtful = false;
    /* One that could not serve comes last; the one behind it comes first, so that several such ones
     * are not tried in turns for ever. */
    struct resolver *addresses = &locator->addresses;
    struct endpoint before[RESOLVE_MAX];
    int count = addresses->count, at = locator_find(locator, &locator->left);
    memcpy(before, addresses->found, sizeof before);
    for (int i = 0; i < count && at >= 0; i++)
        addresses->found[i] = before[(at + 1 + i) % count];
}

/* The name was looked up: reports the addresses, or those of before. A name service that fails, or
 * does not know the name any more, says nothing about the server. */
static void on_resolved(void *arg, int count, const char *fault)
{
    struct locator *locator = arg;

    if (count > 0 || locator_may_stay(locator)) {
        locator_stay(locator); /* among new addresses as well, the one that was left comes last */
        locator->events->located(locator->arg, NULL);
    } else {
        struct answer failure;
        answer_fail(&failure, CAUSE_UNREACHABLE, "%s", fault);
        failure.nowhere = count < 0 && !locator->sentinels; /* they may name another one soon */
        failure.hint = count < 0 ? HINT_NAME : HINT_NONE;
        locator->events->located(locator->arg, &failure);
    }
}

/* Begins to look up a name: on_resolved() follows. False with errno: no search can be begun. */
static bool look_up(struct locator *locator, const char *host, int port)
{
    return resolver_start(&locator->addresses, locator->loop, host, port, on_resolved, locator);
}

/* -- the local server ------------------------------------------------------------------------ */

/* Starts the local server, which may block, so it runs in a process of its own. question: the kind
 * of the store; finding: a struct start, for on_started(). */
static void start_local(const void *question, void *finding)
{
    const struct store_kind *kind = question;
    struct start *start = finding;

    start->up =
        kind->start_server(start->socket, sizeof start->socket, start->fault, sizeof start->fault);
}

/* The user's own server was started in a process of its own, or could not be. finding: NULL where
 * that process ended without a word. */
static void on_started(void *arg, const void *finding)
{
    struct locator *locator = arg;
    struct start start = {0};

    if (finding)
        start = *(const struct start *)finding;
    else
        snprintf(start.fault, sizeof start.fault, "starting it: " HELPER_PROCESS_SILENT);
    helper_process_stop(locator->starter);
    locator->starter = NULL;
    if (start.up) {
        locator->addresses.count = resolve_path(start.socket, &locator->addresses.found[0]);
        locator->events->located(locator->arg, NULL);
    } else {
        report_failure(locator, CAUSE_UNFIT, start.fault); /* retrying does not help */
    }
}

/* -- Sentinels ------------------------------------------------------------------------------- */

/* Whether the last master may be tried again although too few Sentinels can be asked: their outage
 * need not be ours. But not if even one of them says otherwise. */
static bool may_keep_master(const struct locator *locator, const struct sentinel_vote *vote)
{
    switch (vote->outcome) {
    case SENTINELS_SILENT:
    case SENTINELS_DENY:
    case SENTINELS_TOO_FEW:
        return locator->addresses.count > 0 &&
               !sentinels_contradict(locator->sentinels, locator->host, locator->port);
    default: return false;
    }
}

/* Takes another password for the Sentinels, if they refuse the present one and its file has another
 * by now. Returns whether it has. */
static bool take_new_login(struct locator *locator, const struct sentinel_vote *vote)
{
    return vote->outcome == SENTINELS_DENY &&
           locator->events->refused(locator->arg, &locator->login);
}

/* The Sentinels have voted: looks up the master's name; or keeps the server that was found before,
 * if it may stay; or reports why there is none. */
static void on_voted(void *arg, const struct sentinel_vote *vote)
{
    struct locator *locator = arg;
    const struct sentinel_word *word = &sentinels_facts(locator->sentinels)->words[vote->speaker];
    struct answer failure;

    if (take_new_login(locator, vote)) {
        ask_for_master(locator);
    } else if (vote->outcome == SENTINELS_NAME) {
        snprintf(locator->host, sizeof locator->host, "%s", word->host);
        locator->port = word->port;
        snprintf(locator->found, sizeof locator->found, "the master %s:%d", word->host, word->port);
        locator->addresses.count = 0;
        if (!look_up(locator, locator->host, locator->port))
            report_failure(locator, cause_of_errno(errno), strerror(errno));
    } else if (may_keep_master(locator, vote)) {
        locator->doubtful = false;
        locator->events->located(locator->arg, NULL);
    } else {
        sentinels_explain(locator->sentinels, vote, &failure);
        locator->events->located(locator->arg, &failure);
    }
}

/* Asks the Sentinels which server is the master, in half of the time that is left: the rest is for
 * connecting to it. */
static void ask_for_master(struct locator *locator)
{
    struct moment now = loop_now(locator->loop);

    sentinels_ask(locator->sentinels, SENTINELS_VOTE, &locator->login,
                  moment_plus(now, moment_until(now, locator->until) / 2), on_voted, locator);
}

/* Looks again after four fifths to all of the locator's pace, which is a part of the lease. */
static void look_soon(struct locator *locator)
{
    struct moment now = loop_now(locator->loop);
    /* Spread by the clock: clients that were cut off together do not ask together. */
    int64_t spread = now.ns % (locator->pace / 5);

    loop_arm(locator->loop, &locator->look, moment_plus(now, locator->pace - spread));
}

/* Takes the answer of the Sentinels, which were asked in passing whether the master is still the
 * one that was found: tells that it has moved, or looks again later. */
static void on_looked(void *arg, const struct sentinel_vote *vote)
{
    struct locator *locator = arg;
    const struct sentinel_word *word = &sentinels_facts(locator->sentinels)->words[vote->speaker];
    bool ours = sentinel_names(word, locator->host, locator->port);

    if (vote->outcome == SENTINELS_NAME && !ours) {
        locator->events->moved(locator->arg);
        return;
    }
    take_new_login(locator, vote); /* for the next look */
    look_soon(locator);
}

/* Asks those Sentinels that are connected whether the master is still the same. */
static void ask_sentinels(struct loop_timer *timer)
{
    struct locator *locator = timer->owner;

    sentinels_ask(locator->sentinels, SENTINELS_KNOWN, &locator->login,
                  moment_plus(loop_now(locator->loop), LOOK_TIMEOUT_NS), on_looked, locator);
}

/* -- from outside ---------------------------------------------------------------------------- */

bool locator_search(struct locator *locator, const struct sentinel_login *login,
                    struct moment until)
{
    locator->login = *login;
    locator->until = until;
    if (locator->startable) {
        locator->starter = helper_process_start(locator->loop, start_local, locator->url->kind,
                                                sizeof(struct start), on_started, locator);
        return locator->starter;
    }
    if (!locator->sentinels)
        return look_up(locator, locator->url->hosts[0].name, locator->url->hosts[0].port);
    ask_for_master(locator);
    return true;
}

void locator_set_lease(struct locator *locator, int64_t lease)
{
    if (lease > 0)
        locator->pace = lease / 3 < LOOK_NS ? lease / 3 : LOOK_NS;
}

void locator_watch(struct locator *locator, const struct sentinel_login *login)
{
    if (!locator->sentinels)
        return;
    locator->login = *login;
    look_soon(locator);
}

void locator_stop(struct locator *locator)
{
    loop_disarm(locator->loop, &locator->look);
    resolver_stop(&locator->addresses);
    if (locator->starter)
        helper_process_stop(locator->starter);
    locator->starter = NULL;
    if (!locator->sentinels)
        return;
    sentinels_hush(locator->sentinels);
    locator->doubtful = true;
}

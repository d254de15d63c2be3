/* Finds the server that takes writes. A candidate is an address of a host in the URL. The hosts are
 * asked at the same time, since one that is silent must not hold up the others. A further address
 * of a host is another way to the same server as a rule, and tried only when the one before it has
 * failed, or is slow. */
#include "host/primary.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"

/* How long an address may take before the next one of the same host is tried as well; and how long
 * a server that takes writes waits for the answers of the others, one of which may take writes,
 * too. */
#define SLOW_NS (300 * NS_PER_MS)

/* An IPv6 address with the name of an interface has room. */
#define ADDRESS_SIZE 64

enum progress {
    CANDIDATE_UNTRIED,
    CANDIDATE_GOING,
    CANDIDATE_UP,
    CANDIDATE_FAILED,
};

struct candidate {
    struct host_target target;
    char address[ADDRESS_SIZE]; /* "": the library looks it up, or it is a Unix socket */
    size_t host_number;
    enum progress progress;
    struct database_attempt *attempt; /* GOING, UP */
    enum database_wait wait;          /* GOING */
    struct moment since;              /* GOING */
    struct host_error why;            /* FAILED */
};

static struct {
    struct candidate *at;
    size_t count;
    size_t hosts;
    char *names; /* of the hosts, and their ports, taken apart */
} candidates;

/* -- addresses --------------------------------------------------------------------------------- */

/* Adds one address of a host of the URL. */
static void add_candidate(const struct host_target *target, const char *address)
{
    struct candidate *added = MEM_APPEND(candidates.at, candidates.count);

    *added = (struct candidate){.target = *target, .host_number = candidates.hosts};
    snprintf(added->address, sizeof added->address, "%s", address);
}

/* Adds a host whose name could not be looked up, as a candidate that has failed. wrong: the error
 * of getaddrinfo(). */
static void add_failed(const struct host_target *target, int wrong)
{
    bool nowhere = wrong == EAI_NONAME || wrong == EAI_NODATA;
    const char *said = wrong == EAI_SYSTEM ? strerror(errno) : gai_strerror(wrong);

    add_candidate(target, "");
    struct candidate *added = &candidates.at[candidates.count - 1];
    added->progress = CANDIDATE_FAILED;
    host_error_set(&added->why, nowhere ? WIRE_NOWHERE : WIRE_UNREACHABLE, said);
}

/* Adds the addresses of a host as candidates. */
static void add_host(const struct host_target *target)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char address[ADDRESS_SIZE];

    bool is_socket = *target->host == '/';
    int wrong = is_socket ? 0 : getaddrinfo(target->host, NULL, &hints, &list);
    /* A library that takes a certificate's name for where to connect to tries the addresses
     * itself. */
    bool by_name = is_socket || (target->tls && database_connects_by_name);
    if (wrong && *target->known && !by_name)
        add_candidate(target, target->known); /* the address that it had before has to do */
    else if (wrong)
        add_failed(target, wrong);
    else if (by_name)
        add_candidate(target, "");
    for (struct addrinfo *one = by_name ? NULL : list; one; one = one->ai_next)
        if (getnameinfo(one->ai_addr, one->ai_addrlen, address, sizeof address, NULL, 0,
                        NI_NUMERICHOST) == 0)
            add_candidate(target, address);
    if (list)
        freeaddrinfo(list);
    candidates.hosts++;
}

/* Adds the hosts of a list as candidates: HOST:PORT,HOST:PORT and so on, with an IPv6 address in
 * [ ] and its zone behind "%25", which stands for '%'. */
static void add_hosts(const struct host_target *target)
{
    char *rest = candidates.names = mem_strdup(target->host), *text;

    while ((text = strsep(&rest, ","))) {
        struct host_target one = *target;
        char *colon = strrchr(text, ':'), *zone = strstr(text, "%25");
        *colon = '\0';
        one.port = colon + 1;
        if (*text == '[') {
            text++;
            colon[-1] = '\0';
        }
        if (zone)
            memmove(zone + 1, zone + strlen("%25"), strlen(zone + strlen("%25")) + 1);
        one.host = text;
        add_host(&one);
    }
}

/* -- attempts ---------------------------------------------------------------------------------- */

/* Whether it is time to try a candidate: each address of the same host in front of it has failed,
 * or is slow. If not, and one is under way, *due becomes no later than when that is slow. */
static bool is_due(const struct candidate *one, struct moment now, struct moment *due)
{
    for (const struct candidate *before = candidates.at; before < one; before++) {
        struct moment slow_from = moment_plus(before->since, SLOW_NS);
        if (before->host_number != one->host_number || before->progress == CANDIDATE_FAILED)
            continue;
        if (before->progress == CANDIDATE_UNTRIED || !moment_reached(slow_from, now)) {
            if (before->progress == CANDIDATE_GOING)
                *due = moment_min(*due, slow_from);
            return false;
        }
    }
    return true;
}

/* Continues to connect to a candidate, and notes what it waits for, or how it has ended. */
static void continue_attempt(struct candidate *one)
{
    one->wait = database_continue(one->attempt, &one->why);
    if (one->wait == DATABASE_UP)
        one->progress = CANDIDATE_UP;
    else if (one->wait == DATABASE_DOWN)
        one->progress = CANDIDATE_FAILED;
}

/* Waits until an attempt can continue, at most until "due", and continues those that can. */
static void await_any(struct moment due)
{
    struct pollfd *ready = mem_zeroed(candidates.count * sizeof *ready);
    struct moment now = moment_now();

    for (size_t i = 0; i < candidates.count; i++) {
        const struct candidate *one = &candidates.at[i];
        bool going = one->progress == CANDIDATE_GOING;
        ready[i].fd = going ? database_attempt_fd(one->attempt) : -1;
        ready[i].events = one->wait == DATABASE_WRITES ? POLLOUT : POLLIN;
    }
    int ms = moment_reached(due, now) ? 0 : (int)(moment_until(now, due) / NS_PER_MS + 1);
    poll(ready, candidates.count, due.ns == MOMENT_NEVER.ns ? -1 : ms);
    for (size_t i = 0; i < candidates.count; i++)
        if (ready[i].revents)
            continue_attempt(&candidates.at[i]);
    free(ready);
}

/* How many candidates have that progress. */
static size_t count_of(enum progress progress)
{
    size_t count = 0;

    for (size_t i = 0; i < candidates.count; i++)
        count += candidates.at[i].progress == progress;
    return count;
}

/* Tries the candidates until "end", or all have answered, or one takes writes and the others are
 * slow. Leaves in each how far that has come. */
static void try_all(struct moment end)
{
    struct moment now = moment_now(), due;
    bool any_up = false;

    do {
        due = end;
        for (size_t i = 0; i < candidates.count && !any_up; i++) {
            struct candidate *one = &candidates.at[i];
            if (one->progress != CANDIDATE_UNTRIED || !is_due(one, now, &due))
                continue;
            one->target.address = one->address;
            one->since = now;
            one->progress = CANDIDATE_GOING;
            one->attempt = database_begin(&one->target, candidates.count > 1);
            continue_attempt(one);
        }
        if (count_of(CANDIDATE_GOING) == 0)
            break;
        await_any(due);
        now = moment_now();
        if (!any_up && count_of(CANDIDATE_UP) > 0) {
            any_up = true;
            end = moment_min(end, moment_plus(now, SLOW_NS));
        }
    } while (!moment_reached(end, now));
}

/* -- the choice -------------------------------------------------------------------------------- */

/* Returns the server to use of those that take writes: the one that was promoted last, where they
 * know that, or else the first of the URL. */
static struct candidate *choose_primary(void)
{
    struct candidate *best = NULL;
    size_t up = count_of(CANDIDATE_UP);
    uint64_t promotions = 0;

    for (size_t i = 0; i < candidates.count; i++) {
        struct candidate *one = &candidates.at[i];
        if (one->progress != CANDIDATE_UP)
            continue;
        uint64_t those = up > 1 ? database_promotions(one->attempt) : 0;
        if (!best || those > promotions) {
            best = one;
            promotions = those;
        }
    }
    return best;
}

/* Returns the kind of failure to report where no candidate will do. If they failed for different
 * reasons, one that may pass decides: the standby of a primary that is away may take its place. */
static enum wire_error reason_of_all(void)
{
    bool all_same = true, all_full = true, may_pass = false, any_full = false, any_away = false;
    enum wire_error refusal = 0; /* of the log-in by any of them; 0: none */

    for (size_t i = 0; i < candidates.count; i++) {
        enum wire_error error = candidates.at[i].why.error;
        all_same &= error == candidates.at[0].why.error && error != WIRE_READ_ONLY;
        /* Standbys beside one that is full are as that one. */
        all_full &= error == WIRE_FULL || error == WIRE_READ_ONLY;
        any_full |= error == WIRE_FULL;
        /* PostgreSQL tells a log-in that LDAP or RADIUS has refused as a user who may not log
         * in. */
        if (error == WIRE_PASSWORD || (error == WIRE_KEPT_OUT && !refusal))
            refusal = error;
        any_away |= wire_error_breaks(error);
        may_pass |= wire_error_leaves(error) || error == WIRE_BUSY || error == WIRE_FULL ||
                    error == WIRE_NO_SPACE || error == WIRE_NO_MEMORY || error == WIRE_TROUBLE;
    }
    /* An address that is away says nothing against one of the same host that has refused the
     * log-in, as both lead to one server. */
    may_pass |= any_away && !(refusal && candidates.hosts == 1);
    return all_full && any_full    ? WIRE_FULL
           : refusal && may_pass   ? WIRE_SOME_REFUSE /* there may be another password by now */
           : refusal               ? refusal
           : all_same || !may_pass ? candidates.at[0].why.error
                                   : WIRE_NO_WRITER;
}

/* Fills the fault with why each of the candidates would not do. */
static void explain_all(struct host_error *fault)
{
    struct strbuf text = {0};

    for (size_t i = 0; i < candidates.count; i++) {
        struct candidate *one = &candidates.at[i];
        if (one->progress != CANDIDATE_FAILED)
            host_error_set(&one->why, WIRE_UNREACHABLE, "no answer");
        strbuf_printf(&text, "%s%s:%s: %s", i > 0 ? "; " : "",
                      candidates.hosts > 1 || !*one->address ? one->target.host : one->address,
                      one->target.port,
                      one->why.error == WIRE_READ_ONLY ? "read-only" : one->why.said);
    }
    host_error_set(fault, reason_of_all(), text.text);
    strbuf_free(&text);
}

bool primary_connect(const struct host_target *target, struct host_error *fault)
{
    /* A name service that is away is not waited for for long where an address is known. */
    if (*target->known)
        setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
    if (*target->host != '/' && strchr(target->host, ','))
        add_hosts(target);
    else
        add_host(target);
    try_all(candidates.count > 1 ? target->until : MOMENT_NEVER);
    struct candidate *best = choose_primary();
    if (!best && candidates.count == 1)
        *fault = candidates.at[0].why;
    else if (!best)
        explain_all(fault);
    for (size_t i = 0; i < candidates.count; i++) {
        struct candidate *one = &candidates.at[i];
        if (one != best && (one->progress == CANDIDATE_GOING || one->progress == CANDIDATE_UP))
            database_drop(one->attempt);
    }
    if (best)
        database_take(best->attempt, &best->target);
    return best;
}

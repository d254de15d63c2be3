/* The hosts are asked at the same time, since one that is silent must not hold up the others. A
 * further address of a host is another way to the same server as a rule, and tried only when the
 * one before it has failed, or is slow. */
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
    char address[ADDRESS_SIZE];
    size_t of; /* the number of its host */
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

    *added = (struct candidate){.target = *target, .of = candidates.hosts};
    snprintf(added->address, sizeof added->address, "%s", address);
}

/* Adds a host whose name could not be looked up, as a candidate that has failed. */
static void add_nameless(const struct host_target *target, int wrong)
{
    bool nowhere = wrong == EAI_NONAME || wrong == EAI_NODATA;
    const char *said = wrong == EAI_SYSTEM ? strerror(errno) : gai_strerror(wrong);

    add_candidate(target, "");
    struct candidate *added = &candidates.at[candidates.count - 1];
    added->progress = CANDIDATE_FAILED;
    host_error_set(&added->why, nowhere ? WIRE_NOWHERE : WIRE_UNREACHABLE, said);
}

/* Adds the addresses of a host as candidates. An address that the server had before does for a time
 * when its name cannot be looked up. A library that takes a certificate's name for where to connect
 * to tries the addresses itself. */
static void add_host(const struct host_target *target)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char address[ADDRESS_SIZE];

    int wrong = *target->host == '/' ? 0 : getaddrinfo(target->host, NULL, &hints, &list);
    bool by_name = *target->host == '/' || (target->tls && database_connects_by_name);
    if (wrong && *target->known && !by_name)
        add_candidate(target, target->known);
    else if (wrong)
        add_nameless(target, wrong);
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

/* Splits HOST:PORT, with an IPv6 address in [ ] and its zone behind "%25". */
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

/* Whether it is the candidate's turn, after the addresses of the same host in front of it. *due:
 * when it is. */
static bool is_due(const struct candidate *one, struct moment now, struct moment *due)
{
    for (const struct candidate *before = candidates.at; before < one; before++) {
        struct moment then = moment_plus(before->since, SLOW_NS);
        if (before->of != one->of || before->progress == CANDIDATE_FAILED)
            continue;
        if (before->progress == CANDIDATE_UNTRIED || !moment_reached(then, now)) {
            if (before->progress == CANDIDATE_GOING)
                *due = moment_min(*due, then);
            return false;
        }
    }
    return true;
}

/* Continues to connect to a candidate. */
static void continue_attempt(struct candidate *one)
{
    one->wait = database_continue(one->attempt, &one->why);
    if (one->wait == DATABASE_UP)
        one->progress = CANDIDATE_UP;
    else if (one->wait == DATABASE_DOWN)
        one->progress = CANDIDATE_FAILED;
}

/* Waits until an attempt can continue, or until then. */
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

/* How many candidates have come so far. */
static size_t count_of(enum progress progress)
{
    size_t count = 0;

    for (size_t i = 0; i < candidates.count; i++)
        count += candidates.at[i].progress == progress;
    return count;
}

/* Continues until all have answered, or one takes writes and the others are slow. */
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

/* Chooses which failure to report. Where hosts would not do for different reasons, one that may
 * pass decides: the standby of a primary that is away may take its place. Standbys beside one that
 * is full are as that one. A log-in that one has refused is told besides: there may be another
 * password by now, and PostgreSQL tells one that LDAP or RADIUS has refused as a user who may not
 * log in. Of one name, an address that is away says nothing against one that has refused it, as
 * both lead to one server. */
static enum wire_error reason_of_all(void)
{
    bool same = true, full = true, may_pass = false, any_full = false, away = false;
    enum wire_error refusal = 0;

    for (size_t i = 0; i < candidates.count; i++) {
        enum wire_error error = candidates.at[i].why.error;
        same &= error == candidates.at[0].why.error && error != WIRE_READ_ONLY;
        full &= error == WIRE_FULL || error == WIRE_READ_ONLY;
        any_full |= error == WIRE_FULL;
        if (error == WIRE_PASSWORD || (error == WIRE_KEPT_OUT && !refusal))
            refusal = error;
        away |= wire_error_breaks(error);
        may_pass |= wire_error_leaves(error) || error == WIRE_BUSY || error == WIRE_FULL ||
                    error == WIRE_NO_SPACE || error == WIRE_NO_MEMORY || error == WIRE_TROUBLE;
    }
    may_pass |= away && !(refusal && candidates.hosts == 1);
    return full && any_full      ? WIRE_FULL
           : refusal && may_pass ? WIRE_SOME_REFUSE
           : refusal             ? refusal
           : same || !may_pass   ? candidates.at[0].why.error
                                 : WIRE_NO_WRITER;
}

/* Says of each host why it would not do. */
static void tell_all(struct host_error *fault)
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
        tell_all(fault);
    for (size_t i = 0; i < candidates.count; i++) {
        struct candidate *one = &candidates.at[i];
        if (one != best && (one->progress == CANDIDATE_GOING || one->progress == CANDIDATE_UP))
            database_drop(one->attempt);
    }
    if (best)
        database_take(best->attempt, &best->target);
    return best;
}

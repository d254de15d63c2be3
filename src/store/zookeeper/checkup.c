#include "store/zookeeper/store_kind.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "net/loop.h"
#include "net/stream.h"
#include "store/diagnosis.h"
#include "store/zookeeper/session.h"

#define ANSWER_NS (5 * NS_PER_SEC)

/* A session with one server. */
struct probe {
    struct loop *loop;
    struct zk_session *session;
    enum zk_outcome outcome; /* of opening it, the latest time */
    struct answer failure;
    struct tls_expiry expiry;
    int64_t timeout;    /* ns: that it grants */
    int64_t round_trip; /* ns: of the request that begins the session */
};

/* The batch, or the session, has ended: notes what that has told, and ends the wait. */
static void on_done(void *arg, enum zk_outcome outcome, const struct zk_reply *replies,
                    const struct answer *failure)
{
    struct probe *probe = arg;

    (void)replies;
    probe->outcome = outcome;
    if (outcome == ZK_ANSWERED) {
        stream_expiry(probe->session->link->stream, &probe->expiry);
        probe->timeout = probe->session->timeout;
        probe->round_trip = moment_until(probe->session->opened, loop_now(probe->loop));
    } else if (failure) {
        probe->failure = *failure;
    }
    loop_stop(probe->loop);
}

/* The doctor watches nothing (zk_session_events.poked). */
static void ignore_poke(void *arg)
{
    (void)arg;
}

/* Begins the session, or opens it again over another connection, and waits for that, with the
 * result in probe->outcome. lease: ns, asked for as its timeout. */
static void open_session(struct probe *probe, int64_t lease)
{
    zk_session_wish(probe->session, lease);
    zk_session_send(probe->session, ZK_NEW_CONNECTION, moment_plus(moment_now(), ANSWER_NS));
    if (!answer_await(probe->loop, &probe->failure))
        probe->outcome = ZK_FAILED;
}

/* Begins a session at the one server of the address, opens it again, and closes it; *probe has what
 * became of that. False with a message in "fault": the address cannot be used. */
static bool probe_server(const struct store_address *address, int64_t lease, struct probe *probe,
                         char *fault, size_t size)
{
    static const struct zk_session_events events = {on_done, ignore_poke};

    *probe = (struct probe){.loop = loop_new()};
    probe->session = zk_session_new(probe->loop, address, &events, probe, fault, size);
    if (probe->session) {
        open_session(probe, lease);
        if (probe->outcome == ZK_ANSWERED)
            open_session(probe, lease);
        zk_close(&probe->session->batch);
        zk_session_send_nowait(probe->session);
        zk_session_free(probe->session);
    }
    loop_free(probe->loop);
    return probe->session;
}

/* Judges the session's timeout that the server has granted (ns): it takes its own bounds in place
 * of what was wished. */
static void judge_lease(const struct probe *probe, int64_t lease, struct diagnosis *diagnosis)
{
    const char *granted = DURATION_TEXT(probe->timeout), *wanted = DURATION_TEXT(lease);

    if (probe->timeout < ZK_TIMEOUT_LEAST)
        diagnosis_add(diagnosis, "lease", LEVEL_UNFIT, "set maxSessionTimeout to 40000",
                      "sessions end after %s at the longest: a waiter would lose its place",
                      granted);
    else if (probe->timeout < lease)
        diagnosis_add(diagnosis, "lease", LEVEL_NOTE,
                      "set maxSessionTimeout for longer ones, at all servers",
                      "leases are capped at %s; %s was requested", granted, wanted);
    else if (probe->timeout > lease)
        diagnosis_add(diagnosis, "lease", LEVEL_NOTE, "",
                      "a dead holder keeps its lock for %s, the shortest session here, even with a "
                      "lease of %s",
                      granted, wanted);
    else
        diagnosis_add(diagnosis, "lease", LEVEL_FINE, "", "it grants a lease of %s", granted);
}

/* Adds one server of the ensemble, by the plan's address with this host only, and its findings. A
 * server that does not answer is a finding. False with a message in "fault": the address cannot be
 * used. */
static bool check_server(const struct checkup_plan *plan, struct url_host host,
                         struct checkup *checkup, char *fault, size_t size)
{
    struct store_address address = *plan->address;
    struct url url = *plan->address->urls;
    struct probe probe;

    url.hosts[0] = host;
    url.host_count = 1;
    address.urls = &url;
    if (!probe_server(&address, plan->lease, &probe, fault, size))
        return false;
    struct checked_server *server = checkup_add(checkup, &url);
    snprintf(server->figures.software, sizeof server->figures.software, "zookeeper");
    server->reached = probe.outcome != ZK_FAILED;
    if (!server->reached) {
        server->cause = probe.failure.cause;
        diagnosis_add(&server->diagnosis, "reach", LEVEL_UNFIT,
                      probe.failure.full ? "raise maxClientCnxns, the limit for one address" : "",
                      "%s", probe.failure.text);
        return true;
    }
    server->figures.ping_median_ns = server->figures.ping_max_ns = probe.round_trip;
    diagnosis_add(&server->diagnosis, "reach", LEVEL_FINE, "", "it begins a session");
    diagnosis_add_expiry(&server->diagnosis, "", &probe.expiry);
    if (probe.outcome == ZK_ANSWERED)
        diagnosis_add(&server->diagnosis, "session", LEVEL_FINE, "", "it opens a session again");
    else
        diagnosis_add(&server->diagnosis, "session", LEVEL_UNFIT, "",
                      "it opens no session again, as ClickHouse Keeper: a lock is lost with its "
                      "first renewal");
    judge_lease(&probe, plan->lease, &server->diagnosis);
    return true;
}

bool zookeeper_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                     size_t size)
{
    const struct url *url = plan->address->urls;

    for (size_t i = 0; i < url->host_count; i++)
        if (!check_server(plan, url->hosts[i], checkup, fault, size))
            return false;
    /* Together they are fit as long as a majority of them is: one that is away is a warning. */
    size_t reached = 0, count = checkup->count;
    for (size_t i = 0; i < count; i++)
        reached += checkup->servers[i].reached;
    if (2 * reached <= count)
        diagnosis_add(&checkup->whole, "servers", LEVEL_UNFIT, "", "%zu of %zu servers serve",
                      reached, count);
    else if (count == 1)
        diagnosis_add(&checkup->whole, "servers", LEVEL_NOTE, "name all servers of the ensemble",
                      "one server is named: if it fails, no lock can be had or kept");
    else
        diagnosis_add(&checkup->whole, "servers", reached < count ? LEVEL_WARNING : LEVEL_FINE, "",
                      "%zu of %zu servers serve", reached, count);
    return true;
}

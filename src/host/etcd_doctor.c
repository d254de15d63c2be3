/* The checks. A function try_…() makes one, and adds its finding to check->out; it returns false,
 * with the fault, only where etcd could not be asked. */
#include "host/etcd_doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/etcd_gateway.h"
#include "host/http.h"

/* The size at which etcd refuses writes, unless it is told to take more. */
#define QUOTA_MB 2048
/* A cluster that keeps so many revisions compacts none, or not often enough. Each write makes a
 * revision, which takes space until it is compacted. */
#define MANY 100000
/* By how much the clocks of members that NTP sets differ at most, s. */
#define APART_MAX 2

#define ADVICE_COMPACT "etcd --auto-compaction-retention=5m --auto-compaction-mode=periodic"

/* Asks for a key, which a majority must confirm, and replies with "ok" and the member's version of
 * etcd, which is asked for once. */
static bool try_ping(const struct etcd_check *check)
{
    static char version[40]; /* "": not asked yet */
    struct strbuf body = {0};

    strbuf_puts(&body, "{\"keys_only\":true,\"key\":");
    gateway_add_name(&body, slice_of("rlock:"), "");
    strbuf_putc(&body, '}');
    json_t *reply = gateway_ask("/v3/kv/range", body.text, HTTP_READS, check->fault);
    json_t *status = reply && !*version ? gateway_status(check->fault) : NULL;
    if (status)
        snprintf(version, sizeof version, "%s",
                 json_string_value(json_object_get(status, "version")));
    bool done = reply && *version;

    strbuf_free(&body);
    json_decref(reply);
    json_decref(status);
    if (!done)
        return false;
    resp_array(check->out, 2);
    resp_bulk(check->out, slice_of("ok"));
    resp_bulk(check->out, slice_of(version));
    return true;
}

/* Tells how much of its quota etcd uses. Three quarters of the default are scarce; where little of
 * that is in use, a defragmentation suffices. */
static bool try_space(const struct etcd_check *check)
{
    json_t *status = gateway_status(check->fault);
    char text[120];

    if (!status)
        return false;
    int64_t size_mb = gateway_number(status, "dbSize") >> 20,
            used_mb = gateway_number(status, "dbSizeInUse") >> 20;
    json_decref(status);
    snprintf(text, sizeof text, "its file has %" PRId64 " MB, of which %" PRId64 " MB are in use",
             size_mb, used_mb);
    bool scarce = size_mb > QUOTA_MB - QUOTA_MB / 4;
    host_find(check->out, scarce ? "warning" : "fine", text,
              !scarce ? ""
              : used_mb < size_mb / 2
                  ? "etcdctl defrag --cluster; at 2 GB, or --quota-backend-bytes, no lock is taken"
                  : ADVICE_COMPACT "; then etcdctl defrag --cluster");
    return true;
}

/* Reports the alarms of the cluster. */
static bool try_alarms(const struct etcd_check *check)
{
    json_t *reply = gateway_ask("/v3/maintenance/alarm", "{\"action\":\"GET\"}", HTTP_READS,
                                check->fault),
           *alarm;
    bool space = false, corrupt = false;
    size_t i;

    if (!reply)
        return false;
    json_array_foreach(json_object_get(reply, "alarms"), i, alarm)
    {
        const char *name = json_string_value(json_object_get(alarm, "alarm"));
        space |= name && strcmp(name, "NOSPACE") == 0;
        corrupt |= name && strcmp(name, "CORRUPT") == 0;
    }
    json_decref(reply);
    if (corrupt)
        host_find(check->out, "unfit", "the alarm CORRUPT is on: its members have different data",
                  "replace the member that differs");
    else if (space)
        host_find(check->out, "unfit",
                  "the alarm NOSPACE is on: it takes no writes, so it grants no locks",
                  "compact, etcdctl defrag --cluster, etcdctl alarm disarm");
    else
        host_find(check->out, "fine", "there is no alarm", "");
    return true;
}

/* Asks whether etcd still has what there was at that revision. True: the answer is in *is_kept.
 * False, with the fault: etcd could not be asked. */
static bool ask_if_kept(int64_t revision, bool *is_kept, struct host_fault *fault)
{
    struct strbuf body = {0};

    strbuf_printf(&body, "{\"count_only\":true,\"revision\":\"%" PRId64 "\",\"key\":", revision);
    gateway_add_name(&body, slice_of("rlock:"), ""); /* any key will do */
    strbuf_putc(&body, '}');
    json_t *reply = gateway_ask("/v3/kv/range", body.text, HTTP_READS, fault);
    *is_kept = reply;
    strbuf_free(&body);
    json_decref(reply);
    return *is_kept || strstr(fault->why.said, "compacted"); /* an answer, too: it is not kept */
}

/* Tells whether old revisions are compacted: whether the one is gone that was MANY revisions ago,
 * or, in a cluster that is new, the first one. */
static bool try_compaction(const struct etcd_check *check)
{
    json_t *status = gateway_status(check->fault);
    int64_t revision = gateway_number(json_object_get(status, "header"), "revision");
    bool many = revision > MANY, is_kept, known = status;

    json_decref(status);
    if (!known || !ask_if_kept(many ? revision - MANY : 1, &is_kept, check->fault))
        return false;
    if (!is_kept)
        host_find(check->out, "fine", "old revisions are compacted", "");
    else if (many)
        host_find(check->out, "warning", "it keeps every write: nothing was compacted for long",
                  ADVICE_COMPACT);
    else
        host_find(check->out, "note",
                  "it may be too new to tell whether old revisions are compacted", ADVICE_COMPACT);
    return true;
}

/* Answers of the members in the URL. Their clocks are compared with this process's, so that they
 * need not be asked at once. */
struct members {
    size_t answered;
    int64_t least, most;      /* s; how far the clocks are ahead */
    uint64_t cluster, leader; /* of the latest answer; 0: it has none */
    bool apart;               /* they belong to different clusters */
    bool split;               /* they follow different leaders */
};

/* Notes a member's cluster, its leader, and how its clock differs from the process's own, all for
 * comparison with the others. */
static void note_member(struct members *members, const struct strbuf *status)
{
    int64_t ahead = (http_date_us() - moment_now().ns / NS_PER_US) / US_PER_S;
    json_t *reply = json_loadb(status->text, status->size, 0, NULL);
    const char *id =
        json_string_value(json_object_get(json_object_get(reply, "header"), "cluster_id"));
    const char *leader_id = json_string_value(json_object_get(reply, "leader"));
    uint64_t cluster = id ? strtoull(id, NULL, 10) : 0;
    uint64_t leader = leader_id ? strtoull(leader_id, NULL, 10) : 0;

    members->least = ahead < members->least ? ahead : members->least;
    members->most = ahead > members->most ? ahead : members->most;
    members->apart |= members->answered > 0 && cluster != members->cluster;
    members->split |= leader && members->leader && leader != members->leader;
    members->cluster = cluster;
    members->leader = leader ? leader : members->leader;
    members->answered++;
    json_decref(reply);
}

/* Asks each member for its state, and returns what they have answered. One that does not answer is
 * left out. Further requests go to the member that was asked before. */
static struct members ask_members(void)
{
    const struct http_request question = {HTTP_JSON, "/v3/maintenance/status", slice_of("{}"),
                                          HTTP_READS};
    struct members members = {.least = INT64_MAX, .most = INT64_MIN};
    struct strbuf reply ENDED_BY(strbuf_free) = {0};
    size_t asked = http_server();
    struct host_error why;

    for (size_t i = 0; i < http_servers(); i++) {
        http_choose(i);
        bool answered = http_post(&question, &reply, &why) == 200;
        if (answered && http_server() == i) /* and not the next member for it */
            note_member(&members, &reply);
    }
    http_choose(asked);
    return members;
}

/* Reports whether all members answer, follow one leader in one cluster, and have the same time. A
 * member that does not answer is a finding, too: so it never fails, and returns true. */
static bool try_members(const struct etcd_check *check)
{
    struct members members = ask_members();
    char text[160];

    /* Another leader may have been elected between two answers. */
    for (int i = 0; i < 2 && members.split; i++) {
        usleep(US_PER_S);
        members = ask_members();
    }
    int64_t off = members.most - members.least; /* s */
    if (members.apart) {
        host_find(check->out, "unfit",
                  "the members in the URL are of different clusters: each has locks of its own",
                  "name the members of one cluster: etcdctl member list");
    } else if (members.split) {
        host_find(check->out, "unfit",
                  "the members in the URL follow different leaders: their cluster is split, as by "
                  "--force-new-cluster, and each part has locks of its own",
                  "end the members of all parts but one, and add them to that anew");
    } else if (members.answered < http_servers()) {
        snprintf(text, sizeof text, "%zu of the %zu members in the URL answer", members.answered,
                 http_servers());
        host_find(check->out, "warning", text, "with a majority down, no lock is granted or kept");
    } else if (off > APART_MAX) {
        snprintf(text, sizeof text, "the clocks of its members differ by %" PRId64 " s", off);
        host_find(check->out, off < check->margin_us / US_PER_S ? "warning" : "unfit", text,
                  "set them by NTP: beyond 10 s, or the URL's ?margin=, a lock that no client "
                  "watches may be taken too early");
    } else {
        host_find(check->out, "fine",
                  members.answered == 1 ? "the member in the URL answers"
                                        : "all members in the URL answer, and their clocks agree",
                  members.answered == 1 ? "name all members of the cluster in the URL" : "");
    }
    return true;
}

bool etcd_doctor_ask(const char *what, const struct etcd_check *check)
{
    static const struct {
        const char *name;
        bool (*try)(const struct etcd_check *check);
    } checks[] = {{"ping", try_ping},
                  {"members", try_members},
                  {"space", try_space},
                  {"alarms", try_alarms},
                  {"compaction", try_compaction}};

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (strcmp(checks[i].name, what) == 0)
            return checks[i].try(check);
    return host_fail(check->fault, WIRE_UNFIT, "no such check");
}

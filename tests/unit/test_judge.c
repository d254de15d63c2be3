/* From what is known about a server to findings: which, how bad, and what is said. */
#include "store/redis/doctor/judge.h"

#include "base/clock.h"
#include "store/cluster/store_kind.h"
#include "store/quorum/store_kind.h"
#include "store/redis/store.h"
#include "cli/describe.h"
#include "tap.h"

struct scenario {
    struct server_facts facts;
    struct requirements requirements;
    struct url url;
};

/* A server that is as it should be, and one who wants little of it. */
static void make(struct scenario *scenario)
{
    scenario->url =
        (struct url){.kind = &redis_kind, .hosts = {{"locks", 6379}}, .host_count = 1, .tls = true};
    scenario->requirements =
        (struct requirements){.url = &scenario->url, .prefix = "rlock", .lease = 30 * NS_PER_SEC};
    scenario->facts = (struct server_facts){.reached = true,
                                            .connected_ns = NS_PER_MS,
                                            .expiry.whose = "it",
                                            .figures = {.ping_median_ns = NS_PER_MS,
                                                        .ping_max_ns = 2 * NS_PER_MS,
                                                        .software = "redis",
                                                        .version = "7.0.15",
                                                        .uptime_s = 86400,
                                                        .ahead_ms = 3,
                                                        .maxmemory = 1000000,
                                                        .memory = 899000},
                                            .mode = "standalone",
                                            .clock_ns = 100 * NS_PER_MS,
                                            .here_ns = 101 * NS_PER_MS,
                                            .memory.run_id = "r",
                                            .grace = {.has_marker = true,
                                                      .run_id = "r",
                                                      .replication = "i",
                                                      .own_replication = "i",
                                                      .longest_ms = 20000,
                                                      .now_ms = 1000000},
                                            .policy = "noeviction",
                                            .appendonly = "yes",
                                            .appendfsync = "everysec",
                                            .save = "none",
                                            .replay = REPLAY_ALLOWED,
                                            .clients = 5,
                                            .clients_max = 10000,
                                            .rights_known = true};
}

static void lack(struct server_facts *facts, const char *name)
{
    for (size_t i = 0; *rights[i].name; i++)
        facts->lacks[i] |= strcmp(rights[i].name, name) == 0;
}

static void miss(struct server_facts *facts, const char *name)
{
    lack(facts, name);
    for (size_t i = 0; *rights[i].name; i++)
        facts->unknown[i] |= strcmp(rights[i].name, name) == 0;
}

static const struct store_kind *record_of(const char *scheme)
{
    for (size_t i = 0; stores[i]; i++)
        if (strcmp(stores[i]->scheme, scheme) == 0)
            return stores[i];
    abort();
}

/* Sets what a word "name=value" says. */
static void set(struct scenario *scenario, const char *word)
{
    struct server_facts *facts = &scenario->facts;
    struct requirements *requirements = &scenario->requirements;
    const char *value = strchr(word, '=') + 1;
    int64_t number = strtoll(value, NULL, 10);
    bool known = true;
#define NUMBER(where, name) else if (strncmp(word, name "=", sizeof name) == 0) where = number
#define TEXT(where, name)   else if (strncmp(word, name "=", sizeof name) == 0) strcpy(where, value)
#define SCALED(where, name, unit)                                                                  \
    else if (strncmp(word, name "=", sizeof name) == 0) where = number * (unit)
    if (strncmp(word, "lacks=", 6) == 0)
        lack(facts, value);
    else if (strncmp(word, "unknown=", 8) == 0)
        miss(facts, value);
    NUMBER(facts->reached, "reached");
    else if (strcmp(word, "denied=1") == 0) facts->failure.cause = CAUSE_DENIED;
    NUMBER(facts->expiry.spare_s, "spare");
    SCALED(facts->figures.ping_median_ns, "median", NS_PER_MS);
    SCALED(facts->figures.ping_max_ns, "max", NS_PER_MS);
    TEXT(facts->figures.version, "version");
    TEXT(facts->mode, "mode");
    SCALED(facts->script_ns, "script", NS_PER_MS);
    NUMBER(facts->figures.uptime_s, "uptime");
    NUMBER(facts->figures.ahead_ms, "ahead");
    SCALED(facts->clock_ns, "clock", NS_PER_MS);
    NUMBER(facts->figures.maxmemory, "maxmemory");
    NUMBER(facts->figures.memory, "memory");
    NUMBER(facts->grace.has_marker, "told");
    NUMBER(facts->grace.marked, "marked");
    TEXT(facts->memory.run_id, "run");
    TEXT(facts->grace.run_id, "its_run");
    TEXT(facts->grace.replication, "its_copy");
    TEXT(facts->grace.own_replication, "copy");
    NUMBER(facts->grace.promoted, "promoted");
    NUMBER(facts->grace.longest_ms, "longest");
    NUMBER(facts->grace.until_ms, "until");
    NUMBER(facts->grace.now_ms, "now");
    TEXT(facts->failure.text, "fault");
    TEXT(facts->failure.said, "said");
    TEXT(facts->policy, "policy");
    TEXT(facts->appendonly, "aof");
    TEXT(facts->appendfsync, "fsync");
    TEXT(facts->no_fsync, "no_fsync");
    TEXT(facts->save, "save");
    NUMBER(facts->replay, "replay");
    NUMBER(facts->aof_failed, "aof_failed");
    NUMBER(facts->snapshot_failed, "snapshot_failed");
    NUMBER(facts->figures.replicas, "replicas");
    NUMBER(facts->min_replicas, "min");
    TEXT(facts->read_only, "readonly");
    NUMBER(facts->timeout_s, "timeout");
    NUMBER(facts->clients, "clients");
    NUMBER(facts->clients_max, "maxclients");
    NUMBER(facts->rights_known, "rights_known");
    NUMBER(facts->lacks_keys, "lacks_keys");
    NUMBER(facts->lacks_channels, "lacks_channels");
    NUMBER(scenario->url.tls, "tls");
    NUMBER(requirements->secret, "secret");
    NUMBER(requirements->grace, "grace");
    NUMBER(requirements->quorum, "quorum");
    SCALED(requirements->lease, "lease", NS_PER_SEC);
    else if (strncmp(word, "wanted=", 7) == 0) requirements->replicas = (unsigned)number;
    else if (strncmp(word, "host=", 5) == 0) scenario->url.hosts[0].name = value;
    else if (strncmp(word, "scheme=", 7) == 0) scenario->url.kind = record_of(value);
    else known = false;
    if (!known)
        abort();
}

/* The differences from a good server; and the findings that are not fine, as "check level". */
static const struct {
    const char *wanted;
    const char *const *words;
} rows[] = {
    {"", INPUTS("", "median=999 max=2400", "median=10 max=20 lease=1", "secret=1",
                "tls=0 secret=1 host=127.0.0.1", "tls=0 secret=1 host=localhost",
                "tls=0 secret=1 host=::1", "version=5.0.0", "version=10.1", "script=20",
                "uptime=29", "ahead=1000", "told=0", "grace=1 marked=1", "marked=1",
                "grace=1 marked=1 its_copy=other", "grace=1 marked=1 promoted=1",
                "grace=1 marked=1 until=1000000", "memory=-1", "memory=910000 maxmemory=0",
                "memory=910000 maxmemory=-1", "maxmemory=0 policy=allkeys-lru", "maxmemory=-1",
                "fsync=always", "fsync=no scheme=local", "fsync=", "no_fsync=no",
                "no_fsync=yes scheme=local", "wanted=1 replicas=1 min=1", "quorum=1",
                "scheme=sentinel replicas=1 wanted=1 min=1", "timeout=11", "spare=1",
                "clients=8999", "lacks=info", "replay=0 version=5.0.14")},
    {"reach unfit", INPUTS("reached=0", "reached=0 denied=1")},
    {"latency warning", INPUTS("median=1001", "max=2600", "median=40 lease=1")},
    {"certificate warning", INPUTS("spare=-1")},
    {"encryption note", INPUTS("tls=0")},
    {"encryption warning", INPUTS("tls=0 secret=1", "tls=0 secret=1 host=12.7.0.1")},
    {"version unfit", INPUTS("version=4.0.14")},
    {"version note", INPUTS("version=")},
    {"mode unfit", INPUTS("mode=cluster")},
    {"replicas warning",
     INPUTS("mode=cluster scheme=cluster", "wanted=1", "wanted=2 replicas=1 min=1",
            "wanted=1 replicas=-1", "quorum=1 replicas=1", "scheme=sentinel", "readonly=no")},
    {"replicas note", INPUTS("mode=cluster scheme=cluster replicas=1", "wanted=1 replicas=1",
                             "replicas=-1", "replicas=2", "scheme=sentinel replicas=1")},
    {"scripts unfit", INPUTS("script=-1")},
    {"restart warning, persistence warning", INPUTS("uptime=29 aof=no save=none")},
    {"persistence note",
     INPUTS("uptime=29 aof=no save=none grace=1 marked=1", "fsync=no", "no_fsync=yes",
            "no_fsync=yes fsync=always", "aof=no grace=1 marked=1")},
    {"persistence warning",
     INPUTS("uptime=31 aof=no save=none", "aof=no", "aof=no save=", "aof=no save=3600", "aof=")},
    {"restart note", INPUTS("uptime=-1")},
    {"clock warning",
     INPUTS("ahead=1001", "ahead=-1001", "ahead=-3600000", "clock=700", "clock=-60000")},
    {"clock note", INPUTS("ahead=-9223372036854775808")},
    {"clock unfit", INPUTS("clock=0")},
    {"grace note", INPUTS("grace=1 told=0", "grace=1 marked=1 run=", "grace=1 marked=1 now=0",
                          "marked=1 its_run=other")},
    {"grace warning",
     INPUTS("grace=1", "grace=1 marked=1 its_run=other",
            "grace=1 marked=1 its_copy=other promoted=1", "grace=1 marked=1 until=1005000")},
    {"memory warning", INPUTS("memory=910000", "memory=9223372036854775807 maxmemory=1")},
    {"eviction warning", INPUTS("maxmemory=1 policy=allkeys-lru memory=0", "policy=volatile-ttl",
                                "maxmemory=-1 policy=volatile-ttl", "maxmemory=-1 policy=")},
    {"persistence unfit", INPUTS("aof_failed=1")},
    {"snapshot warning", INPUTS("snapshot_failed=1")},
    {"replay warning", INPUTS("replay=2", "replay=2 fsync=always")},
    {"replay note", INPUTS("replay=0", "replay=2 grace=1 marked=1")},
    {"persistence warning", INPUTS("replay=2 aof=no")},
    {"replicas unfit", INPUTS("min=1", "scheme=sentinel min=1", "replicas=1 min=2")},
    {"timeout warning", INPUTS("timeout=10", "timeout=11 lease=60")},
    {"timeout note", INPUTS("timeout=-1")},
    {"clients warning", INPUTS("clients=9000")},
    {"clients note", INPUTS("clients=-1", "maxclients=-1")},
    {"rights unfit, rights note",
     INPUTS("lacks=hset", "lacks=time", "lacks=multi", "quorum=1 lacks=info", "lacks_keys=1")},
    {"rights note", INPUTS("lacks=client|setname", "lacks=select")},
    {"rights unfit, rights warning, rights note", INPUTS("lacks=scan lacks=hexists")},
    {"rights warning", INPUTS("lacks=subscribe", "lacks=unsubscribe", "lacks=scan", "lacks=role",
                              "lacks_channels=1")},
    {"rights warning, rights warning", INPUTS("lacks=scan lacks=publish")},
    {"rights unfit, rights note, rights note", INPUTS("lacks=multi rights_known=0")},
};

static void diagnose(const char *words, struct diagnosis *diagnosis)
{
    struct scenario scenario;
    char copy[128], *rest = copy;

    make(&scenario);
    strcpy(copy, words);
    for (char *word; (word = strtok_r(rest, " ", &rest));)
        set(&scenario, word);
    judge_server(&scenario.facts, &scenario.requirements, diagnosis);
}

/* A server with the facts in "words" has those findings above fine, and their worst level. */
static void test_row(const char *words, const char *wanted)
{
    struct diagnosis diagnosis;
    char got[256] = "";
    enum level worst = LEVEL_FINE;

    diagnose(words, &diagnosis);
    for (size_t i = 0; i < diagnosis.count; i++) {
        const struct finding *finding = &diagnosis.findings[i];
        if (finding->level == LEVEL_FINE)
            continue;
        sprintf(got + strlen(got), "%s%s %s", *got ? ", " : "", finding->check,
                level_name(finding->level));
        worst = finding->level > worst ? finding->level : worst;
    }
    if (diagnosis.worst != worst)
        strcat(got, ", and the worst is another");
    tap_is(got, wanted, "the good server of make(), with", words);
}

#define KEEPS                                                                                      \
    "; ACL SAVE, or CONFIG REWRITE without an aclfile, keeps it over a restart; where no user "    \
    "may "                                                                                         \
    "do that: the same rights in the user's line of redis.conf, or of the aclfile, and a restart"
#define ALL_RIGHTS                                                                                 \
    "ACL SETUSER default ~rlock:* &rlock:* +select +client|setname +role +time +eval +evalsha "    \
    "+scan +multi +exec +subscribe +unsubscribe +exists +hget +hmget +hset +hdel +hexists "        \
    "+hgetall +pexpire +publish +wait +info"
#define LOOKER                                                                                     \
    "ACL SETUSER looker on >PASSWORD ~rlock:* -@all +select +client|setname +role +time +eval "    \
    "+evalsha +scan +exists +hmget +hgetall" KEEPS
#define RESTARTED(setting)                                                                         \
    "CONFIG SET " setting "; CONFIG REWRITE, or the same in redis.conf, keeps it over a restart"

/* The finding about such a server, and the advice; NULL: none. */
static const struct {
    const char *words, *text, *advice;
} sayings[] = {
    {"aof=no save=none", "none: a restart forgets all locks", RESTARTED("appendonly yes")},
    {"policy=volatile-ttl", "volatile-ttl may throw locks away when its memory is full",
     RESTARTED("maxmemory-policy noeviction")},
    {"timeout=10", "idle connections are closed after 10s, so that each renewal needs a new one",
     RESTARTED("timeout 0")},
    {"clients=9000", "9000 of 10000; each holder and each waiter needs one",
     RESTARTED("maxclients 20000")},
    {"memory=99614720 maxmemory=104857600",
     "95.0 MB of 100.0 MB are used (95 %): when it is full it refuses new locks",
     RESTARTED("maxmemory 200mb")},
    {"memory=104857600 maxmemory=104857600 policy=allkeys-lru",
     "100.0 MB of 100.0 MB are used (100 %): it is full, and it throws keys away",
     RESTARTED("maxmemory 200mb")},

    {"grace=1",
     "may have lost locks: refuses new ones for 30s after the first request with grace on",
     "rlock init, if it has never held locks"},
    {"grace=1 marked=1 its_run=other longest=60000",
     "restarted or promoted since the last request: refuses new locks for 1m00s "
     "after the next request with grace on",
     "wait, or rlock init --force if nothing is held"},
    {"marked=1 until=1004001", "may have lost locks: refuses new ones for another 5s with grace on",
     "wait, or rlock init --force if nothing is held"},
    {"grace=1 marked=1", "over: it grants at once", ""},

    /* One command for all that is missing, also of what is not wanted now. */
    {"lacks=scan lacks=hset lacks=hexists lacks=wait lacks=cluster|slots",
     "without +hset no lock can be acquired, no latch set or counted down",
     "ACL SETUSER default +scan +hset +hexists +wait" KEEPS},
    {"lacks=scan lacks=hset", "without +scan locks and latches cannot be listed", ""},
    {"lacks=scan", "without +scan locks and latches cannot be listed",
     "ACL SETUSER default +scan" KEEPS},
    {"unknown=role", "without +role a replica is not noticed",
     "the server has no such command: take it out of its rename-command"},
    {"unknown=role lacks=scan", "without +scan locks and latches cannot be listed",
     "ACL SETUSER default +scan" KEEPS},
    {"lacks_keys=1 lacks_channels=1 lacks=pexpire", "without ~rlock:* (keys) nothing works",
     "ACL SETUSER default ~rlock:* &rlock:* +pexpire" KEEPS},
    {"lacks=multi rights_known=0", "without +multi no lock can be waited for", ALL_RIGHTS KEEPS},
    {"lacks=hexists", "a user who only looks (rlock status, latch status, latch list) needs less",
     LOOKER},
    {"lacks=hset lacks=hdel lacks=publish",
     "it may only look (rlock status, latch status, latch list)", ""},
    {"lacks=hset lacks=hgetall",
     "a user who only looks (rlock status, latch status, latch list) needs less", LOOKER},
    {"reached=0 rights_known=0 denied=1 fault=why said=WRONGPASS", "why",
     "--password-file or RLOCK_PASSWORD, and the user in the URL"},
    {"reached=0 rights_known=0 denied=1 fault=why said=NOPERM", "why", ALL_RIGHTS KEEPS},
    {"reached=0 rights_known=0 fault=refused", "refused", ""},
};

/* A server with the facts in "words" has a finding with that text and that advice. */
static void test_saying(const char *words, const char *text, const char *advice)
{
    struct diagnosis diagnosis;
    const struct finding *found = NULL;

    diagnose(words, &diagnosis);
    for (size_t i = 0; i < diagnosis.count; i++)
        if (strcmp(diagnosis.findings[i].text, text) == 0)
            found = &diagnosis.findings[i];
    tap_ok(found != NULL, "of %s it says %s", tap_show(words), tap_show(text));
    if (!found)
        for (size_t i = 0; i < diagnosis.count; i++)
            tap_note("%s: %s", diagnosis.findings[i].check, diagnosis.findings[i].text);
    tap_is(!found        ? ""
           : found->hint ? hint_words(CAUSE_NONE, found->hint)
                         : found->advice,
           advice, "and advises", words);
}

/* The right that each error reply says is missing: the words of 6.0, 6.2, 7.0 and 7.2. */
static const struct {
    enum rights_lack wanted;
    const char *const *errors;
} errors[] = {
    {RIGHTS_LACK_COMMAND,
     INPUTS("NOPERM this user has no permissions to run the 'hget' command or its subcommand",
            "NOPERM this user has no permissions to run the 'publish' command",
            "NOPERM User limited has no permissions to run the 'subscribe' command",
            "NOPERM User keykeeper has no permissions to run the 'hget' command",
            "EXECABORT Transaction discarded because of: NOPERM this user has no permissions to "
            "run the "
            "'exec' command")},
    {RIGHTS_NO_COMMAND, INPUTS("ERR unknown command 'HGET', with args beginning with: 'k' 'f' ",
                               "ERR unknown command `HGET`, with args beginning with: ")},
    {RIGHTS_LACK_KEYS,
     INPUTS("NOPERM this user has no permissions to access one of the keys used as arguments",
            "NOPERM No permissions to access a key",
            "NOPERM No permissions to access a key used as argument")},
    {RIGHTS_LACK_CHANNELS,
     INPUTS("NOPERM this user has no permissions to access one of the channels used as arguments",
            "NOPERM No permissions to access a channel",
            "NOPERM No permissions to access the 'rlock:{x}:y' channel")},
    {RIGHTS_FINE,
     INPUTS("MOVED 1234 127.0.0.1:7001", "OOM command not allowed when used memory > 'maxmemory'.",
            "ERR EXEC without MULTI")},
};

/* Servers of a quorum, or of a Cluster, in which so many slots have a master. */
static const struct {
    const char *levels; /* of each: f, n, w, u; a capital: its run id is the first one's */
    const char *wanted;
    unsigned slots;
} deployments[] = {
    {"fff", "quorum fine, fine"},           {"fnf", "quorum fine, fine"},
    {"fwf", "quorum fine, warning"},        {"fuf", "quorum warning, warning"},
    {"fuu", "quorum unfit, unfit"},         {"ffuu", "quorum unfit, unfit"},
    {"fffuu", "quorum warning, warning"},   {"ffF", "quorum unfit, unfit"},
    {"uu", "quorum unfit, unfit"},          {"ff", "quorum warning, warning"},
    {"ffff", "quorum fine, fine"},          {"fff", "cluster fine, fine", 16384},
    {"fnf", "cluster fine, fine", 16384},   {"fwf", "cluster fine, warning", 16384},
    {"fuf", "cluster unfit, unfit", 16384}, {"fff", "cluster unfit, unfit", 16383},
    {"f", "cluster fine, fine", 16384},
};

/* Several servers are judged together. Each letter of "levels" is the first of a server's level; a
 * small one stands for the same server, a capital for one of its own. */
static void test_deployment(const char *levels, const char *wanted, unsigned slots)
{
    struct redis_memory memories[5] = {0};
    struct checked_server servers[5] = {0};
    struct checkup checkup = {.servers = servers};
    struct diagnosis whole;
    char got[64];
    size_t count = checkup.count = strlen(levels);

    for (size_t i = 0; i < count; i++) {
        char level = levels[i] | 0x20;
        memories[i].remembers_ms = memories[i].serves_ms = UNTOLD;
        while (*level_name(servers[i].diagnosis.worst) != level)
            servers[i].diagnosis.worst++;
        if (level != 'u') /* one that is out of reach tells nothing */
            sprintf(memories[i].run_id, "%zu", level == levels[i] ? i : 0);
    }
    if (slots)
        cluster_judge(&checkup, slots, &whole);
    else
        quorum_judge(&checkup, memories, 30 * NS_PER_SEC, &whole);
    sprintf(got, "%s %s, %s", whole.findings[0].check, level_name(whole.findings[0].level),
            level_name(whole.worst));
    tap_is(got, wanted, slots ? "cluster_judge" : "quorum_judge", levels);
}

/* The word of each Sentinel: A or B, names it as the master; u, knows none; s, silent; d,
 * denied. */
static const struct {
    const char *words, *wanted, *part;
} sentinels[] = {
    {"AAA", "fine", "3 of 3 name the master a:1"},
    {"A", "note", "1 of 1 names the master a:1"},
    {"AA", "note", "2 of 2 name the master a:1"},
    {"AAs", "warning", "2 of 3 name the master a:1; s3:26379 says nothing (why)"},
    {"sAA", "warning", "s1:26379 says nothing (why)"},
    {"ABA", "warning", "2 of 3 name the master a:1; s2:26379 names b:1"},
    {"AAudA", "warning", "3 of 5 name the master a:1; s3:26379 knows no such master"},
    {"ABs", "unfit", "no majority of the 3 names a master"},
    {"uuu", "unfit", "s1:26379 knows no such master"},
    {"Ass", "unfit", "no majority of the 3 names a master"},
    {"ddd", "unfit", "s1:26379 says nothing (why)"},
    {"sss", "unfit", "no majority of the 3 names a master"},
};

/* Sentinels that say these words have that level, and "part" is in the text of the finding. */
static void test_sentinels(const char *words, const char *wanted, const char *part)
{
    struct sentinel_facts facts = {.count = strlen(words)};
    struct diagnosis diagnosis = {0};

    for (size_t i = 0; i < facts.count; i++) {
        struct sentinel_word *word = &facts.words[i];
        sprintf(facts.hosts[i].name, "s%zu", i + 1);
        facts.hosts[i].port = 26379;
        word->in_url = true;
        word->said = words[i] == 'u'   ? SENTINEL_UNKNOWN
                     : words[i] == 's' ? SENTINEL_SILENT
                     : words[i] == 'd' ? SENTINEL_DENIED
                                       : SENTINEL_NAMES;
        word->host[0] = (char)(words[i] | 0x20);
        word->port = 1;
        strcpy(word->why, "why");
    }
    judge_sentinels(&facts, &diagnosis);
    tap_is(level_name(diagnosis.findings[0].level), wanted, "judge_sentinels", words);
    tap_ok(strstr(diagnosis.findings[0].text, part) != NULL, "judge_sentinels %s: %s", words,
           diagnosis.findings[0].text);
}

/* A quorum with a server that has come back without its locks: for how many ms each of its servers
 * has remembered them, and for how many it has been a member. */
static void test_memories(void)
{
    static const struct {
        int64_t remembers[3], serves[3];
        const char *wanted; /* findings but the first */
        int64_t apart;      /* ms between asking them */
    } quorums_of_three[] = {
        {{UNTOLD, UNTOLD, UNTOLD}, {UNTOLD, UNTOLD, UNTOLD}, "", 0},
        {{5000, 5010, 4990}, {5000, 5010, 4990}, "", 0}, /* a quorum that is new */
        ROW({90000, 5010, 90000}, {90000, 5010, 90000},
            "server 2 may have lost locks: it is not counted for another 25s"),
        ROW({90000, 0, 90000}, {90000, 80000, 90000},
            "server 2 may have lost locks: it is not counted for another 30s"),
        {{90000, 30000, 90000}, {90000, 30000, 90000}, "", 0},
        /* As old as the others, but asked 0.5 s before each of them. */
        {{5000, 5500, 6000}, {5000, 5500, 6000}, "", 500},
    };

    for (size_t q = 0; q < COUNT(quorums_of_three); q++) {
        struct redis_memory memories[3] = {0};
        struct checked_server servers[3] = {0};
        const struct checkup checkup = {.servers = servers, .count = 3};
        struct diagnosis whole;
        for (size_t i = 0; i < 3; i++) {
            memories[i].remembers_ms = quorums_of_three[q].remembers[i];
            memories[i].serves_ms = quorums_of_three[q].serves[i];
            memories[i].told.ns = NS_PER_SEC + (int64_t)i * quorums_of_three[q].apart * NS_PER_MS;
        }
        quorum_judge(&checkup, memories, 30 * NS_PER_SEC, &whole);
        tap_is(whole.count > 1 ? whole.findings[1].text : "", quorums_of_three[q].wanted,
               "quorum_judge, of memories,", quorums_of_three[q].wanted);
    }
}

int main(void)
{
    test_memories();
    for (size_t i = 0; i < COUNT(sayings); i++)
        test_saying(sayings[i].words, sayings[i].text, sayings[i].advice);
    for (size_t i = 0; i < COUNT(sentinels); i++)
        test_sentinels(sentinels[i].words, sentinels[i].wanted, sentinels[i].part);
    for (size_t i = 0; i < COUNT(rows); i++)
        EACH(words, rows[i].words)
            test_row(*words, rows[i].wanted);
    for (size_t i = 0; i < COUNT(errors); i++)
        EACH(error, errors[i].errors)
            tap_ok(rights_judge(*error) == errors[i].wanted, "rights_judge %s", tap_show(*error));
    for (size_t i = 0; i < COUNT(deployments); i++)
        test_deployment(deployments[i].levels, deployments[i].wanted, deployments[i].slots);
    return tap_done();
}

/* From what is known about a server to findings: which, how bad, and what is said. */
#include "judge.h"

#include "clock.h"
#include "judge_sentinels.h"
#include "tap.h"

#include <stdlib.h>

/* A server that is as it should be, and one who wants little of it. */
static void make(struct server_facts *facts, struct wishes *wishes, struct url *url)
{
    *url =
        (struct url){.scheme = "redis", .hosts = {{"locks", 6379}}, .host_count = 1, .tls = true};
    *wishes = (struct wishes){.url = url, .prefix = "rlock", .lease = 30 * NS_PER_SEC};
    *facts = (struct server_facts){.reached = true,
                                   .connected_ns = NS_PER_MS,
                                   .ping_median_ns = NS_PER_MS,
                                   .ping_max_ns = 2 * NS_PER_MS,
                                   .software = "redis",
                                   .version = "7.0.15",
                                   .mode = "standalone",
                                   .uptime_s = 86400,
                                   .ahead_ms = 3,
                                   .clock_ns = 100 * NS_PER_MS,
                                   .here_ns = 101 * NS_PER_MS,
                                   .maxmemory = 1000000,
                                   .policy = "noeviction",
                                   .appendonly = "yes",
                                   .appendfsync = "everysec",
                                   .save = "none",
                                   .clients = 5,
                                   .clients_max = 10000,
                                   .rights_known = true};
}

struct world {
    struct server_facts facts;
    struct wishes wishes;
    struct url url;
};

static void lack(struct server_facts *facts, const char *name)
{
    for (size_t i = 0; rights[i].name; i++)
        facts->lacks[i] |= strcmp(rights[i].name, name) == 0;
}

/* Sets what a word "name=value" says. */
static void set(struct world *world, const char *word)
{
    struct server_facts *facts = &world->facts;
    struct wishes *wishes = &world->wishes;
    const char *value = strchr(word, '=') + 1;
    int64_t number = strtoll(value, NULL, 10);
    bool known = true;
#define NUMBER(where, name) else if (strncmp(word, name "=", sizeof name) == 0) where = number
#define TEXT(where, name)   else if (strncmp(word, name "=", sizeof name) == 0) strcpy(where, value)
#define SCALED(where, name, unit)                                                                  \
    else if (strncmp(word, name "=", sizeof name) == 0) where = number * (unit)
    if (strncmp(word, "lacks=", 6) == 0)
        lack(facts, value);
    NUMBER(facts->reached, "reached");
    NUMBER(facts->denied, "denied");
    SCALED(facts->ping_median_ns, "median", NS_PER_MS);
    SCALED(facts->ping_max_ns, "max", NS_PER_MS);
    TEXT(facts->version, "version");
    TEXT(facts->mode, "mode");
    SCALED(facts->script_ns, "script", NS_PER_MS);
    NUMBER(facts->uptime_s, "uptime");
    NUMBER(facts->ahead_ms, "ahead");
    SCALED(facts->clock_ns, "clock", NS_PER_MS);
    NUMBER(facts->maxmemory, "maxmemory");
    TEXT(facts->policy, "policy");
    TEXT(facts->appendonly, "aof");
    TEXT(facts->appendfsync, "fsync");
    TEXT(facts->save, "save");
    NUMBER(facts->aof_failed, "aof_failed");
    NUMBER(facts->snapshot_failed, "snapshot_failed");
    NUMBER(facts->replicas, "replicas");
    NUMBER(facts->min_replicas, "min");
    NUMBER(facts->timeout_s, "timeout");
    NUMBER(facts->clients, "clients");
    NUMBER(facts->clients_max, "maxclients");
    NUMBER(facts->rights_known, "rights_known");
    NUMBER(facts->lacks_keys, "lacks_keys");
    NUMBER(facts->lacks_channels, "lacks_channels");
    NUMBER(world->url.tls, "tls");
    NUMBER(wishes->secret, "secret");
    NUMBER(wishes->grace, "grace");
    NUMBER(wishes->quorum, "quorum");
    SCALED(wishes->lease, "lease", NS_PER_SEC);
    else if (strncmp(word, "wanted=", 7) == 0) wishes->replicas = (unsigned)number;
    else if (strncmp(word, "host=", 5) == 0) world->url.hosts[0].name = value;
    else if (strncmp(word, "scheme=", 7) == 0) world->url.scheme = value;
    else if (strncmp(word, "master=", 7) == 0) world->url.master = (char *)(uintptr_t)value;
    else known = false;
    if (!known)
        abort();
}

/* What differs from a good server; and what is not fine, as "check level". */
static const struct {
    const char *words, *wanted;
} rows[] = {
    {"", ""},
    {"reached=0", "reach unfit"},
    {"reached=0 denied=1", "reach unfit"},

    {"median=999 max=2400", ""},
    {"median=1001", "latency warning"},
    {"max=2600", "latency warning"},
    {"median=10 max=20 lease=1", ""},
    {"median=40 lease=1", "latency warning"},

    {"tls=0", "encryption note"},
    {"tls=0 secret=1", "encryption warning"},
    {"secret=1", ""},
    {"tls=0 secret=1 host=127.0.0.1", ""},
    {"tls=0 secret=1 host=localhost", ""},
    {"tls=0 secret=1 host=::1", ""},
    {"tls=0 secret=1 host=12.7.0.1", "encryption warning"},

    {"version=5.0.0", ""},
    {"version=10.1", ""},
    {"version=4.0.14", "version unfit"},
    {"version=", "version note"},
    {"mode=cluster", "mode unfit"},
    {"mode=cluster scheme=cluster", "replicas warning"},
    {"mode=cluster scheme=cluster replicas=1", "replicas note"},

    {"script=20", ""},
    {"script=-1", "scripts unfit"},

    {"uptime=29", ""},
    {"uptime=29 aof=no save=none", "restart warning, persistence warning"},
    {"uptime=29 aof=no save=none grace=1", "persistence note"},
    {"uptime=31 aof=no save=none", "persistence warning"},
    {"uptime=-1", "restart note"},

    {"ahead=1000", ""},
    {"ahead=1001", "clock warning"},
    {"ahead=-1001", "clock warning"},
    {"ahead=-3600000", "clock warning"},
    {"ahead=-9223372036854775808", "clock note"},
    {"clock=0", "clock unfit"},
    {"clock=700", "clock warning"},
    {"clock=-60000", "clock warning"},

    {"maxmemory=0 policy=allkeys-lru", ""},
    {"maxmemory=1 policy=allkeys-lru", "eviction warning"},
    {"policy=volatile-ttl", "eviction warning"},
    {"maxmemory=-1 policy=volatile-ttl", "eviction warning"},
    {"maxmemory=-1 policy=", "eviction warning"},
    {"maxmemory=-1", ""},

    {"fsync=always", ""},
    {"fsync=no", "persistence note"},
    {"fsync=no scheme=local", ""},
    {"fsync=", ""},
    {"aof_failed=1", "persistence unfit"},
    {"aof=no", "persistence warning"},
    {"aof=no save=", "persistence warning"},
    {"aof=no save=3600", "persistence warning"},
    {"aof=no grace=1", "persistence note"},
    {"aof=", "persistence warning"},
    {"snapshot_failed=1", "snapshot warning"},

    {"wanted=1", "replicas warning"},
    {"wanted=1 replicas=1 min=1", ""},
    {"wanted=1 replicas=1", "replicas note"},
    {"wanted=2 replicas=1 min=1", "replicas warning"},
    {"wanted=1 replicas=-1", "replicas warning"},
    {"replicas=-1", "replicas note"},
    {"replicas=2", "replicas note"},
    {"min=1", "replicas unfit"},
    {"quorum=1", ""},
    {"quorum=1 replicas=1", "replicas warning"},
    {"master=m", "replicas warning"},
    {"master=m min=1", "replicas unfit"},
    {"master=m replicas=1", "replicas note"},
    {"master=m replicas=1 wanted=1 min=1", ""},
    {"replicas=1 min=2", "replicas unfit"},

    {"timeout=11", ""},
    {"timeout=10", "timeout warning"},
    {"timeout=11 lease=60", "timeout warning"},
    {"timeout=-1", "timeout note"},
    {"clients=8999", ""},
    {"clients=9000", "clients warning"},
    {"clients=-1", "clients note"},
    {"maxclients=-1", "clients note"},

    {"lacks=hset", "rights unfit"},
    {"lacks=time", "rights unfit"},
    {"lacks=subscribe", "rights warning"},
    {"lacks=scan", "rights warning"},
    {"lacks=role", "rights warning"},
    {"lacks=select", "rights note"},
    {"lacks=info", ""},
    {"quorum=1 lacks=info", "rights unfit"},
    {"lacks=scan lacks=publish", "rights warning, rights warning"},
    {"lacks=multi rights_known=0", "rights unfit, rights note"},
    {"lacks_keys=1", "rights unfit"},
    {"lacks_channels=1", "rights warning"},
};

static void test_row(const char *words, const char *wanted)
{
    struct world world;
    struct diagnosis diagnosis;
    char copy[128], got[256] = "", *rest = copy;
    enum level worst = LEVEL_FINE;

    make(&world.facts, &world.wishes, &world.url);
    strcpy(copy, words);
    for (char *word; (word = strtok_r(rest, " ", &rest));)
        set(&world, word);
    judge_server(&world.facts, &world.wishes, &diagnosis);
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
    tap_is(got, wanted, "judge_server", words);
}

/* What each error reply says is missing: the words of 6.0, 6.2, 7.0 and 7.2. */
static const struct {
    const char *error;
    enum rights_lack wanted;
} errors[] = {
    {"NOPERM this user has no permissions to run the 'hget' command or its subcommand",
     RIGHTS_LACK_COMMAND},
    {"NOPERM this user has no permissions to access one of the keys used as arguments",
     RIGHTS_LACK_KEYS},
    {"NOPERM this user has no permissions to access one of the channels used as arguments",
     RIGHTS_LACK_CHANNELS},
    {"NOPERM this user has no permissions to run the 'publish' command", RIGHTS_LACK_COMMAND},
    {"NOPERM User limited has no permissions to run the 'subscribe' command", RIGHTS_LACK_COMMAND},
    {"NOPERM No permissions to access a key", RIGHTS_LACK_KEYS},
    {"NOPERM No permissions to access a channel", RIGHTS_LACK_CHANNELS},
    {"NOPERM No permissions to access a key used as argument", RIGHTS_LACK_KEYS},
    {"NOPERM No permissions to access the 'rlock:{x}:y' channel", RIGHTS_LACK_CHANNELS},
    {"NOPERM User keykeeper has no permissions to run the 'hget' command", RIGHTS_LACK_COMMAND},
    {"ERR unknown command 'HGET', with args beginning with: 'k' 'f' ", RIGHTS_LACK_COMMAND},
    {"ERR unknown command `HGET`, with args beginning with: ", RIGHTS_LACK_COMMAND},
    {"EXECABORT Transaction discarded because of: NOPERM this user has no permissions to run the "
     "'exec' command",
     RIGHTS_LACK_COMMAND},
    {"MOVED 1234 127.0.0.1:7001", RIGHTS_FINE},
    {"OOM command not allowed when used memory > 'maxmemory'.", RIGHTS_FINE},
    {"ERR EXEC without MULTI", RIGHTS_FINE},
};

static const struct {
    const char *levels; /* of the servers: f, n, w, u; a capital: its run id is the first one's */
    const char *wanted;
} quorums[] = {
    {"fff", "quorum fine, fine"},         {"fnf", "quorum fine, fine"},
    {"fwf", "quorum fine, warning"},      {"fuf", "quorum warning, warning"},
    {"fuu", "quorum unfit, unfit"},       {"ffuu", "quorum unfit, unfit"},
    {"fffuu", "quorum warning, warning"}, {"ffF", "quorum unfit, unfit"},
    {"uu", "quorum unfit, unfit"},
};

static enum level level_of(char letter)
{
    return letter == 'f'   ? LEVEL_FINE
           : letter == 'n' ? LEVEL_NOTE
           : letter == 'w' ? LEVEL_WARNING
                           : LEVEL_UNFIT;
}

static void test_quorum(const char *levels, const char *wanted)
{
    struct server_facts facts[5] = {0};
    struct diagnosis servers[5] = {0}, whole;
    char got[64];
    size_t count = strlen(levels);

    for (size_t i = 0; i < count; i++) {
        char level = levels[i] | 0x20;
        servers[i].worst = level_of(level);
        if (level != 'u') /* one that is out of reach tells nothing */
            sprintf(facts[i].run_id, "%zu", level == levels[i] ? i : 0);
    }
    diagnosis_of_quorum(facts, servers, count, &whole);
    sprintf(got, "%s %s, %s", whole.findings[0].check, level_name(whole.findings[0].level),
            level_name(whole.worst));
    tap_is(got, wanted, "diagnosis_of_quorum", levels);
}

/* What each Sentinel says: A or B, names it as the master; u, knows none; s, silent; x, does not run; d, denied. */
static const struct {
    const char *words, *wanted, *part;
} sentinels[] = {
    {"AAA", "fine", "3 of 3 name the master a:1"},
    {"A", "note", "1 of 1 names the master a:1"},
    {"AA", "note", "2 of 2 name the master a:1"},
    {"AAs", "warning", "2 of 3 name the master a:1; s3:26379 says nothing (why)"},
    {"xAA", "warning", "s1:26379 says nothing (why)"},
    {"ABA", "warning", "2 of 3 name the master a:1; s2:26379 names b:1"},
    {"AAudA", "warning", "3 of 5 name the master a:1; s3:26379 knows no such master"},
    {"ABs", "unfit", "no majority of the 3 names a master"},
    {"uuu", "unfit", "s1:26379 knows no such master"},
    {"Ass", "unfit", "no majority of the 3 names a master"},
    {"ddd", "unfit", "s1:26379 says nothing (why)"},
    {"xxx", "unfit", "no majority of the 3 names a master"},
};

static void test_sentinels(const char *words, const char *wanted, const char *part)
{
    static const struct url_host hosts[] = {
        {"s1", 26379}, {"s2", 26379}, {"s3", 26379}, {"s4", 26379}, {"s5", 26379}};
    struct sentinel_facts facts = {.count = strlen(words)};
    struct diagnosis diagnosis = {0};

    for (size_t i = 0; i < facts.count; i++) {
        struct sentinel_word *word = &facts.words[i];
        facts.hosts[i] = hosts[i];
        word->said = words[i] == 'u'   ? SENTINEL_UNKNOWN
                     : words[i] == 's' ? SENTINEL_SILENT
                     : words[i] == 'x' ? SENTINEL_GONE
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

static const struct {
    const char *levels; /* of the masters: f, n, w, u */
    unsigned slots;
    const char *wanted;
} clusters[] = {
    {"fff", 16384, "cluster fine, fine"},    {"fnf", 16384, "cluster fine, fine"},
    {"fwf", 16384, "cluster fine, warning"}, {"fuf", 16384, "cluster unfit, unfit"},
    {"fff", 16383, "cluster unfit, unfit"},  {"f", 16384, "cluster fine, fine"},
};

static void test_cluster(const char *levels, unsigned slots, const char *wanted)
{
    struct diagnosis servers[5] = {0}, whole;
    char got[64];
    size_t count = strlen(levels);

    for (size_t i = 0; i < count; i++)
        servers[i].worst = level_of(levels[i]);
    diagnosis_of_cluster(servers, count, slots, 16384, &whole);
    sprintf(got, "%s %s, %s", whole.findings[0].check, level_name(whole.findings[0].level),
            level_name(whole.worst));
    tap_is(got, wanted, "diagnosis_of_cluster", levels);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(clusters); i++)
        test_cluster(clusters[i].levels, clusters[i].slots, clusters[i].wanted);
    for (size_t i = 0; i < COUNT(sentinels); i++)
        test_sentinels(sentinels[i].words, sentinels[i].wanted, sentinels[i].part);
    for (size_t i = 0; i < COUNT(rows); i++)
        test_row(rows[i].words, rows[i].wanted);
    for (size_t i = 0; i < COUNT(errors); i++)
        tap_ok(rights_judge(errors[i].error) == errors[i].wanted, "rights_judge %s",
               tap_show(errors[i].error));
    for (size_t i = 0; i < COUNT(quorums); i++)
        test_quorum(quorums[i].levels, quorums[i].wanted);
    return tap_done();
}

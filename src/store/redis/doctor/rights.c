#include "store/redis/doctor/judge.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/text.h"

/* The digest of a script that no server has: EVALSHA has no effect but to show the right to it. */
#define NO_SCRIPT "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"

const struct right rights[RIGHTS_MAX] = {
    {"select", "SELECT 0", RIGHT_DB, true},
    {"client|setname", "CLIENT SETNAME rlock", RIGHT_NAME, true},
    {"role", "ROLE", RIGHT_CHECK, true},
    {"time", "TIME", RIGHT_ALL, true},
    {"eval", "EVAL return 1 %k", RIGHT_SEND, true},
    {"evalsha", "EVALSHA " NO_SCRIPT " 1 %k", RIGHT_ALL, true},
    {"scan", "SCAN 0", RIGHT_SURVEY, true},
    {"multi", "MULTI", RIGHT_QUEUE, false},
    {"exec", "EXEC", RIGHT_QUEUE, false},
    {"subscribe", "SUBSCRIBE %c", RIGHT_WAKE, false},
    {"unsubscribe", "UNSUBSCRIBE", RIGHT_WAKE, false},
    {"exists", "EXISTS %k", RIGHT_NEW, true},
    {"hget", "HGET %k f", RIGHT_RIVAL, false},
    {"hmget", "HMGET %k f", RIGHT_ALL, true},
    {"hset", "HSET %k f v", RIGHT_LOCK, false},
    {"hdel", "HDEL %k f", RIGHT_LEAVE, false},
    {"hexists", "HEXISTS %k f", RIGHT_HAND_OVER, false},
    {"hgetall", "HGETALL %k", RIGHT_SHOW, true},
    {"pexpire", "PEXPIRE %k 1", RIGHT_LOCK, false},
    {"publish", "PUBLISH %c m", RIGHT_WAKE, false},
    {"cluster|slots", "CLUSTER SLOTS", RIGHT_CLUSTER, true},
    {"asking", "ASKING", RIGHT_CLUSTER, true},
    {"wait", "WAIT 0 1", RIGHT_REPLICAS, false},
    {"info", "INFO server", RIGHT_MEMORY, false},
};

/* Tells what an error says of rights. Up to Redis 6.2: "NOPERM this user has no permissions to run
 * the 'hget' command or its subcommand", "… to access one of the keys used as arguments";
 * from 7.0 on: "… to run the 'hget' command", "… to access a key"; EXEC's is wrapped in an
 * EXECABORT. A command that was renamed is unknown. */
enum rights_lack rights_judge(const char *error)
{
    if (strstr(error, "unknown command"))
        return RIGHTS_NO_COMMAND;
    if (!strstr(error, "NOPERM"))
        return RIGHTS_FINE;
    if (strstr(error, "to access") && strstr(error, "channel"))
        return RIGHTS_LACK_CHANNELS;
    if (strstr(error, "to access") && strstr(error, "key"))
        return RIGHTS_LACK_KEYS;
    return RIGHTS_LACK_COMMAND;
}

char *rights_command(const char *user, const char *prefix, bool clustered)
{
    struct strbuf command = {.text = NULL};

    strbuf_printf(&command, "ACL SETUSER %s on resetkeys ~%s:* resetchannels &%s:* -@all", user,
                  prefix, prefix);
    for (size_t i = 0; *rights[i].name; i++)
        if (clustered || rights[i].use != RIGHT_CLUSTER)
            strbuf_printf(&command, " +%s", rights[i].name);
    return strbuf_detach(&command);
}

/* -- the rights that the user lacks ------------------------------------------------------------ */

/* The worst first. */
static const struct {
    enum right_use use;
    enum level level;
    const char *effect;
} effects[] = {
    {RIGHT_ALL, LEVEL_UNFIT, "nothing works"},
    {RIGHT_SEND, LEVEL_UNFIT, "nothing works until the server has the scripts from another user"},
    {RIGHT_LOCK, LEVEL_UNFIT, "no lock can be acquired, no latch set or counted down"},
    {RIGHT_NEW, LEVEL_UNFIT, "no KEY that is new to the server can become a lock or a latch"},
    {RIGHT_LEAVE, LEVEL_UNFIT,
     "no lock can be released, waited for, or acquired after a holder that died"},
    {RIGHT_HAND_OVER, LEVEL_UNFIT,
     "no lock that has waiters can be released, no latch counted down"},
    {RIGHT_RIVAL, LEVEL_UNFIT,
     "no lock can be tried or waited for that others hold, or held when they died"},
    {RIGHT_QUEUE, LEVEL_UNFIT, "no lock can be waited for"},
    {RIGHT_SHOW, LEVEL_UNFIT,
     "no latch can be shown, nor a lock that several hold or wait for, and no lock can be acquired "
     "after several holders that died"},
    {RIGHT_REPLICAS, LEVEL_UNFIT, "no lock can be acquired that waits for replicas"},
    {RIGHT_MEMORY, LEVEL_UNFIT, "no lock can be acquired in a quorum, or with grace"},
    {RIGHT_WAKE, LEVEL_WARNING, "waiters are not woken, but have to ask"},
    {RIGHT_SURVEY, LEVEL_WARNING, "locks and latches cannot be listed"},
    {RIGHT_CHECK, LEVEL_WARNING, "a replica is not noticed"},
    {RIGHT_CLUSTER, LEVEL_WARNING,
     "locks and latches cannot be listed, nor is it known who takes the place of a node"},
    {RIGHT_DB, LEVEL_NOTE, "only database 0 can be used"},
    {RIGHT_NAME, LEVEL_NOTE, "CLIENT LIST does not tell which connections are rlock's"},
};

static bool is_cluster(const struct requirements *requirements)
{
    return requirements->url->kind->is_sharded;
}

/* Whether a missing right matters for what the user requires. */
static bool is_needed(enum right_use use, const struct requirements *requirements)
{
    if (use == RIGHT_REPLICAS)
        return requirements->replicas > 0;
    if (use == RIGHT_MEMORY)
        return requirements->quorum || requirements->grace;
    return use != RIGHT_CLUSTER || is_cluster(requirements);
}

/* A list of words such as " +hget +hset". */
struct words {
    char text[400];
};

/* Adds the right of that index. */
static void add_right(struct words *words, size_t right)
{
    text_append(words->text, sizeof words->text, " +%s", rights[right].name);
}

/* Whether the user may execute any command with that mark (RIGHT_KEY, RIGHT_CHANNEL): the server
 * checks keys and channels after the command, so only then it is known whether those are
 * allowed. */
static bool is_tried(const struct server_facts *facts, const char *pattern)
{
    for (size_t i = 0; *rights[i].name; i++)
        if (strstr(rights[i].call, pattern) && !facts->lacks[i])
            return facts->rights_known;
    return false;
}

void judge_rights_cure(const struct server_facts *facts, const struct requirements *requirements,
                       char *out, size_t size)
{
    /* Patterns that are lacking, or may be, as far as is known. */
    bool keys = facts->lacks_keys || !is_tried(facts, RIGHT_KEY);
    bool channels = facts->lacks_channels || !is_tried(facts, RIGHT_CHANNEL);
    struct words words = {""}, unknown = {""};

    /* All rights that are missing for any use; if that is not known, all that there are. */
    for (size_t i = 0; *rights[i].name; i++)
        if ((facts->lacks[i] || !facts->rights_known) &&
            (rights[i].use != RIGHT_CLUSTER || is_cluster(requirements)))
            add_right(facts->unknown[i] ? &unknown : &words, i);
    if (*unknown.text && !*words.text && !keys && !channels) {
        snprintf(out, size, "the server has no such command: take it out of its rename-command");
        return;
    }
    snprintf(out, size, "ACL SETUSER %.30s%s%.*s%s%s%.*s%s%s; " ACL_KEEPS,
             requirements->url->user ? requirements->url->user : "default", keys ? " ~" : "",
             keys ? 100 : 0, requirements->prefix, keys ? ":*" : "", channels ? " &" : "",
             channels ? 100 : 0, requirements->prefix, channels ? ":*" : "", words.text);
}

/* Adds a finding about rights. The first of several has the advice for all. *advised: whether it
 * was given. */
static void add_lack(const struct server_facts *facts, const struct requirements *requirements,
                     enum level level, const char *text, struct diagnosis *diagnosis, bool *advised)
{
    char advice[sizeof diagnosis->findings->advice] = "";

    if (!*advised)
        judge_rights_cure(facts, requirements, advice, sizeof advice);
    *advised = true;
    diagnosis_add(diagnosis, "rights", level, advice, "%s", text);
}

/* Tells of each effect that lacking rights have, with the rights that it is due to, if the user's
 * options need them. *advised: the command that grants them was told already. */
static void judge_lacks(const struct server_facts *facts, const struct requirements *requirements,
                        struct diagnosis *diagnosis, bool *advised)
{
    char text[sizeof diagnosis->findings->text];

    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        struct words words = {""};

        for (size_t right = 0; *rights[right].name; right++)
            if (facts->lacks[right] && rights[right].use == effects[i].use)
                add_right(&words, right);
        if (!*words.text || !is_needed(effects[i].use, requirements))
            continue;
        snprintf(text, sizeof text, "without%.200s %s", words.text, effects[i].effect);
        add_lack(facts, requirements, effects[i].level, text, diagnosis, advised);
    }
}

/* -- users who only look ----------------------------------------------------------------------- */

/* Whether a user who only looks at locks needs the right of that index. */
static bool is_for_looking(size_t right, const struct requirements *requirements)
{
    return rights[right].looks && (rights[right].use != RIGHT_CLUSTER || is_cluster(requirements));
}

/* Whether the user can acquire no lock, but can look at locks. */
static bool only_looks(const struct server_facts *facts, const struct requirements *requirements)
{
    bool looks = facts->rights_known && !facts->lacks_keys, takes = true;

    for (size_t i = 0; *rights[i].name; i++) {
        bool optional = rights[i].use == RIGHT_DB || rights[i].use == RIGHT_NAME;
        if (is_for_looking(i, requirements))
            looks &= !facts->lacks[i] || optional;
        takes &= !facts->lacks[i] || rights[i].use != RIGHT_LOCK;
    }
    return looks && !takes;
}

/* Tells that this user may only look; or, of one that may more, which rights suffice for that. */
static void tell_of_looking(const struct server_facts *facts,
                            const struct requirements *requirements, struct diagnosis *diagnosis)
{
    char advice[sizeof diagnosis->findings->advice];
    struct words words = {""};

    if (only_looks(facts, requirements)) {
        diagnosis_add(diagnosis, "rights", LEVEL_NOTE, "",
                      "it may only look (rlock status, latch status, latch list)");
        return;
    }
    for (size_t i = 0; *rights[i].name; i++)
        if (is_for_looking(i, requirements))
            add_right(&words, i);
    snprintf(advice, sizeof advice, "ACL SETUSER looker on >PASSWORD ~%.100s:* -@all%s; " ACL_KEEPS,
             requirements->prefix, words.text);
    diagnosis_add(diagnosis, "rights", LEVEL_NOTE, advice,
                  "a user who only looks (rlock status, latch status, latch list) needs less");
}

/* ---------------------------------------------------------------------------------------------- */

void judge_rights(const struct server_facts *facts, const struct requirements *requirements,
                  struct diagnosis *diagnosis)
{
    size_t before = diagnosis->count;
    bool advised = false;
    char text[200];

    if (facts->lacks_keys) {
        snprintf(text, sizeof text, "without ~%.100s:* (keys) nothing works", requirements->prefix);
        add_lack(facts, requirements, LEVEL_UNFIT, text, diagnosis, &advised);
    }
    judge_lacks(facts, requirements, diagnosis, &advised);
    if (facts->lacks_channels) {
        snprintf(text, sizeof text,
                 "without &%.100s:* (channels) waiters are not woken, but have to ask",
                 requirements->prefix);
        add_lack(facts, requirements, LEVEL_WARNING, text, diagnosis, &advised);
    }
    /* The first of the findings about rights is the worst. */
    bool unfit = diagnosis->count > before && diagnosis->findings[before].level == LEVEL_UNFIT;
    if (!facts->rights_known)
        diagnosis_add(diagnosis, "rights", LEVEL_NOTE, "",
                      "grant +multi to see which other rights are missing");
    if (unfit)
        tell_of_looking(facts, requirements, diagnosis);
    else if (diagnosis->count == before)
        diagnosis_add(diagnosis, "rights", LEVEL_FINE, "", "all that are needed");
}

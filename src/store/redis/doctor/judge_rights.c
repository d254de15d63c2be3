/* What a user lacks of the rights that rlock needs, what does not work without, and the command
 * that gives them. */
#include "store/redis/doctor/judge_rights.h"

#include <stdio.h>
#include <string.h>

#define KEEPS "ACL SAVE, or CONFIG REWRITE where there is no aclfile, keeps it over a restart"

/* The worst first. */
static const struct {
    enum right_use use;
    enum level level;
    const char *effect;
} effects[] = {
    {RIGHT_ALL, LEVEL_UNFIT, "nothing works"},
    {RIGHT_SEND, LEVEL_UNFIT, "nothing works until the server has the scripts from another user"},
    {RIGHT_LOCK, LEVEL_UNFIT, "no lock can be had, no latch set or counted down"},
    {RIGHT_NEW, LEVEL_UNFIT, "no KEY that is new to the server can become a lock or a latch"},
    {RIGHT_LEAVE, LEVEL_UNFIT,
     "no lock can be given back, waited for, or had after a holder that died"},
    {RIGHT_HAND_OVER, LEVEL_UNFIT,
     "no lock can be given back that others wait for, no latch counted down"},
    {RIGHT_RIVAL, LEVEL_UNFIT,
     "no lock can be tried or waited for that others hold, or held until they died"},
    {RIGHT_QUEUE, LEVEL_UNFIT, "no lock can be waited for"},
    {RIGHT_SHOW, LEVEL_UNFIT,
     "no lock that several hold or wait for can be shown, no latch, and no lock be had after "
     "several holders that died"},
    {RIGHT_REPLICAS, LEVEL_UNFIT, "no lock can be had that waits for replicas"},
    {RIGHT_MEMORY, LEVEL_UNFIT, "no lock can be had of a quorum, or with grace"},
    {RIGHT_WAKE, LEVEL_WARNING, "waiters are not woken, but have to ask"},
    {RIGHT_SURVEY, LEVEL_WARNING, "locks and latches cannot be listed"},
    {RIGHT_CHECK, LEVEL_WARNING, "nobody notices that it is a replica"},
    {RIGHT_CLUSTER, LEVEL_WARNING,
     "locks and latches cannot be listed, nor is it known who takes the place of a node"},
    {RIGHT_DB, LEVEL_NOTE, "only database 0 can be used"},
    {RIGHT_NAME, LEVEL_NOTE, "CLIENT LIST does not tell which connections are rlock's"},
};

static const char *user_of(const struct wishes *wishes)
{
    return wishes->url->user ? wishes->url->user : "default";
}

static bool is_cluster(const struct wishes *wishes)
{
    return wishes->url->record->is_sharded;
}

/* What is missing matters to those who want this. */
static bool is_needed(enum right_use use, const struct wishes *wishes)
{
    if (use == RIGHT_REPLICAS)
        return wishes->replicas > 0;
    if (use == RIGHT_MEMORY)
        return wishes->quorum || wishes->grace;
    return use != RIGHT_CLUSTER || is_cluster(wishes);
}

/* A list of words as " +hget +hset". */
struct words {
    char text[400];
    size_t used;
};

static void add_right(struct words *words, size_t right)
{
    if (words->used < sizeof words->text)
        words->used += (size_t)snprintf(words->text + words->used, sizeof words->text - words->used,
                                        " +%s", rights[right].name);
}

/* Those that are missing for one use. */
static void list_lacks(const struct server_facts *facts, enum right_use use, struct words *words)
{
    *words = (struct words){0};
    for (size_t i = 0; rights[i].name; i++)
        if (facts->lacks[i] && rights[i].use == use)
            add_right(words, i);
}

/* All that are missing, whatever for, so that nobody has to come again; all that there are, if
 * it is not known. */
static void list_all(const struct server_facts *facts, const struct wishes *wishes,
                     struct words *words)
{
    *words = (struct words){0};
    for (size_t i = 0; rights[i].name; i++)
        if ((facts->lacks[i] || !facts->rights_known) &&
            (rights[i].use != RIGHT_CLUSTER || is_cluster(wishes)))
            add_right(words, i);
}

/* A server looks at keys and channels after the command: whether those are allowed is known from
 * a command alone that is. */
static bool is_tried(const struct server_facts *facts, const char *pattern)
{
    for (size_t i = 0; rights[i].name; i++)
        for (size_t word = 0; word < RIGHT_WORDS && rights[i].call[word]; word++)
            if (strcmp(rights[i].call[word], pattern) == 0 && !facts->lacks[i])
                return facts->rights_known;
    return false;
}

/* The command that gives all that is missing. */
void judge_rights_cure(const struct server_facts *facts, const struct wishes *wishes, char *out,
                       size_t size)
{
    bool keys = facts->lacks_keys || !is_tried(facts, RIGHT_KEY);
    bool channels = facts->lacks_channels || !is_tried(facts, RIGHT_CHANNEL);
    struct words words;

    list_all(facts, wishes, &words);
    snprintf(out, size, "ACL SETUSER %.30s%s%.*s%s%s%.*s%s%s; " KEEPS, user_of(wishes),
             keys ? " ~" : "", keys ? 100 : 0, wishes->prefix, keys ? ":*" : "",
             channels ? " &" : "", channels ? 100 : 0, wishes->prefix, channels ? ":*" : "",
             words.text);
}

/* Of several findings, the first has the advice for all. */
static void add(const struct server_facts *facts, const struct wishes *wishes, enum level level,
                const char *text, struct diagnosis *diagnosis, bool *advised)
{
    char advice[sizeof diagnosis->findings->advice] = "";

    if (!*advised)
        judge_rights_cure(facts, wishes, advice, sizeof advice);
    *advised = true;
    diagnosis_add(diagnosis, "rights", level, advice, "%s", text);
}

static void judge_lacks(const struct server_facts *facts, const struct wishes *wishes,
                        struct diagnosis *diagnosis, bool *advised)
{
    char text[sizeof diagnosis->findings->text];
    struct words words;

    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        list_lacks(facts, effects[i].use, &words);
        if (words.used == 0 || !is_needed(effects[i].use, wishes))
            continue;
        snprintf(text, sizeof text, "without%.200s %s", words.text, effects[i].effect);
        add(facts, wishes, effects[i].level, text, diagnosis, advised);
    }
}

static void judge_keys(const struct server_facts *facts, const struct wishes *wishes,
                       struct diagnosis *diagnosis, bool *advised)
{
    char text[200];

    if (facts->lacks_keys) {
        snprintf(text, sizeof text, "without ~%.100s:* (keys) nothing works", wishes->prefix);
        add(facts, wishes, LEVEL_UNFIT, text, diagnosis, advised);
    }
}

static void judge_channels(const struct server_facts *facts, const struct wishes *wishes,
                           struct diagnosis *diagnosis, bool *advised)
{
    char text[200];

    if (facts->lacks_channels) {
        snprintf(text, sizeof text,
                 "without &%.100s:* (channels) waiters are not woken, but have to ask",
                 wishes->prefix);
        add(facts, wishes, LEVEL_WARNING, text, diagnosis, advised);
    }
}

/* -- who only looks ---------------------------------------------------------------------------- */

static bool is_for_looking(size_t right, const struct wishes *wishes)
{
    return rights[right].looks && (rights[right].use != RIGHT_CLUSTER || is_cluster(wishes));
}

/* Whether it can take no lock at all, but look at them. */
static bool only_looks(const struct server_facts *facts, const struct wishes *wishes)
{
    bool looks = facts->rights_known && !facts->lacks_keys, takes = true;

    for (size_t i = 0; rights[i].name; i++) {
        bool optional = rights[i].use == RIGHT_DB || rights[i].use == RIGHT_NAME;
        if (is_for_looking(i, wishes))
            looks &= !facts->lacks[i] || optional;
        takes &= !facts->lacks[i] || rights[i].use != RIGHT_LOCK;
    }
    return looks && !takes;
}

static void tell_of_looking(const struct server_facts *facts, const struct wishes *wishes,
                            struct diagnosis *diagnosis)
{
    char advice[sizeof diagnosis->findings->advice];
    struct words words = {0};

    if (only_looks(facts, wishes)) {
        diagnosis_add(diagnosis, "rights", LEVEL_NOTE, "",
                      "it may look (rlock status, latch status, latch list), and no more");
        return;
    }
    for (size_t i = 0; rights[i].name; i++)
        if (is_for_looking(i, wishes))
            add_right(&words, i);
    snprintf(advice, sizeof advice, "ACL SETUSER looker on >PASSWORD ~%.100s:* -@all%s; " KEEPS,
             wishes->prefix, words.text);
    diagnosis_add(diagnosis, "rights", LEVEL_NOTE, advice,
                  "a user who only looks (rlock status, latch status, latch list) needs less");
}

/* ---------------------------------------------------------------------------------------------- */

void judge_rights(const struct server_facts *facts, const struct wishes *wishes,
                  struct diagnosis *diagnosis)
{
    size_t before = diagnosis->count;
    bool advised = false;

    judge_keys(facts, wishes, diagnosis, &advised);
    judge_lacks(facts, wishes, diagnosis, &advised);
    judge_channels(facts, wishes, diagnosis, &advised);
    bool unfit = diagnosis->count > before && diagnosis->findings[before].level == LEVEL_UNFIT;
    if (!facts->rights_known)
        diagnosis_add(diagnosis, "rights", LEVEL_NOTE, "",
                      "which others are missing cannot be told without +multi");
    if (unfit)
        tell_of_looking(facts, wishes, diagnosis);
    else if (diagnosis->count == before)
        diagnosis_add(diagnosis, "rights", LEVEL_FINE, "", "all that are needed");
}

/* All Sentinels of a master. */
#include "store/redis/find/sentinels.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/redis/find/sentinel.h"

#include <stdio.h>

struct member {
    struct sentinel *sentinel;
    struct url_host host;
    char *name;                /* the host's, if it is not in the URL; NULL */
    char id[SENTINEL_ID_SIZE]; /* by which others know it; "": none has told */
    bool named, told;          /* in the URL; by those that were asked last */
};

struct sentinels {
    struct loop *loop;
    const struct url *url;
    struct tls *tls;
    struct member members[SENTINELS_MAX];
    struct sentinel_word words[SENTINELS_MAX]; /* as they were when they were counted last */
    size_t count;

    bool asking;
    enum sentinels_question question;
    char *password;
    struct moment until;
    sentinels_done *done;
    void *arg;
};

static struct sentinel_word word_of(const struct member *member)
{
    struct sentinel_word word = *sentinel_word(member->sentinel);

    word.named = member->named;
    word.told = member->told;
    if (!word.id[0])
        memcpy(word.id, member->id, sizeof word.id);
    return word;
}

static struct sentinel_vote take_vote(struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->count; i++)
        sentinels->words[i] = word_of(&sentinels->members[i]);
    return sentinel_vote(sentinels->words, sentinels->count);
}

static bool is_asked(const struct member *member)
{
    return (member->named || member->told) &&
           sentinel_word(member->sentinel)->said == SENTINEL_ASKED;
}

static bool is_complete(const struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->count; i++) {
        if (is_asked(&sentinels->members[i]))
            return false;
    }
    return true;
}

/* -- the members ---------------------------------------------------------------------------- */

static void heard(void *arg);

/* name: the host's, which the member owns from now on; NULL if the URL has it. */
static struct member *add_member(struct sentinels *sentinels, struct url_host host, char *name)
{
    struct member *member = &sentinels->members[sentinels->count++];

    *member = (struct member){.host = host, .name = name, .named = !name};
    if (name)
        member->host.name = name;
    member->sentinel = sentinel_new(sentinels->loop, sentinels->url, &member->host, sentinels->tls,
                                    heard, sentinels);
    return member;
}

static bool is_in_url(const struct sentinels *sentinels, const struct url_host *host)
{
    for (size_t i = 0; i < sentinels->count; i++) {
        const struct url_host *known = &sentinels->members[i].host;
        if (known->port == host->port && strcmp(known->name, host->name) == 0)
            return true;
    }
    return false;
}

/* Returns NULL if it is not known yet. */
static struct member *find_member(struct sentinels *sentinels, const struct sentinel_peer *peer)
{
    for (size_t i = 0; i < sentinels->count; i++) {
        struct member *member = &sentinels->members[i];
        const char *id = sentinel_word(member->sentinel)->id;
        bool same = peer->id[0] && strcmp(id[0] ? id : member->id, peer->id) == 0;
        if (same || sentinel_is_at(member->sentinel, peer->host, peer->port))
            return member;
    }
    return NULL;
}

static void ask_member(struct sentinels *sentinels, struct member *member, bool peers)
{
    sentinel_ask(member->sentinel, sentinels->password, peers, sentinels->until);
}

static void learn_of(struct sentinels *sentinels, const struct sentinel_peer *peer)
{
    struct member *member = find_member(sentinels, peer);
    bool known = member && (member->named || member->told);

    if (!member && sentinels->count < SENTINELS_MAX)
        member =
            add_member(sentinels, (struct url_host){.port = peer->port}, mem_strdup(peer->host));
    if (!member)
        return;
    member->told = true;
    memcpy(member->id, peer->id, sizeof member->id);
    if (!known)
        ask_member(sentinels, member, true);
}

/* Asks the Sentinels that those which have answered tell of. */
static void learn_of_others(struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->count; i++) {
        const struct member *member = &sentinels->members[i];
        size_t count;
        const struct sentinel_peer *peers = sentinel_peers(member->sentinel, &count);
        bool tells =
            (member->named || member->told) && sentinel_votes(sentinel_word(member->sentinel));
        for (size_t peer = 0; tells && peer < count; peer++)
            learn_of(sentinels, &peers[peer]);
    }
}

/* -- asking ---------------------------------------------------------------------------------- */

static void heard(void *arg)
{
    struct sentinels *sentinels = arg;

    if (!sentinels->asking)
        return;
    learn_of_others(sentinels);
    struct sentinel_vote vote = take_vote(sentinels);
    /* Slower Sentinels may finish: their connections serve the next question. */
    if (vote.outcome == SENTINELS_OPEN ||
        (sentinels->question == SENTINELS_ALL && !is_complete(sentinels)))
        return;
    sentinels->asking = false;
    sentinels->done(sentinels->arg, &vote);
}

struct sentinels *sentinels_new(struct loop *loop, const struct url *url, struct tls *tls)
{
    struct sentinels *sentinels = mem_zeroed(sizeof *sentinels);

    *sentinels = (struct sentinels){.loop = loop, .url = url, .tls = tls};
    for (size_t i = 0; i < url->host_count; i++) {
        if (!is_in_url(sentinels, &url->hosts[i])) /* one that is listed twice has one vote */
            add_member(sentinels, url->hosts[i], NULL);
    }
    return sentinels;
}

void sentinels_free(struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->count; i++) {
        sentinel_free(sentinels->members[i].sentinel);
        free(sentinels->members[i].name);
    }
    free(sentinels->password);
    free(sentinels);
}

/* Sentinels that were told of before count once they are told of again. */
void sentinels_ask(struct sentinels *sentinels, enum sentinels_question question,
                   const char *password, struct moment until, sentinels_done *done, void *arg)
{
    bool peers = question != SENTINELS_KNOWN;
    char *old = sentinels->password;

    sentinels->asking = true;
    sentinels->question = question;
    sentinels->until = until;
    sentinels->done = done;
    sentinels->arg = arg;
    sentinels->password = password ? mem_strdup(password) : NULL;
    for (size_t i = 0; i < sentinels->count; i++) {
        struct member *member = &sentinels->members[i];
        member->told &= !peers;
        if (member->named || member->told)
            ask_member(sentinels, member, peers);
        else
            sentinel_hush(member->sentinel);
    }
    free(old);
}

void sentinels_hush(struct sentinels *sentinels)
{
    sentinels->asking = false;
}

/* -- their words -------------------------------------------------------------------------- */

bool sentinels_contradict(const struct sentinels *sentinels, const char *host, int port)
{
    for (size_t i = 0; i < sentinels->count; i++) {
        const struct sentinel_word *word = &sentinels->words[i];
        if ((word->named || word->told) && sentinel_votes(word) &&
            !sentinel_names(word, host, port))
            return true;
    }
    return false;
}

size_t sentinels_count(const struct sentinels *sentinels)
{
    return sentinels->count;
}

const struct url_host *sentinels_host(const struct sentinels *sentinels, size_t i)
{
    return &sentinels->members[i].host;
}

const struct sentinel_word *sentinels_word(const struct sentinels *sentinels, size_t i)
{
    return &sentinels->words[i];
}

static bool is_silent(const struct sentinel_word *word)
{
    return (word->named || word->told) && word->said == SENTINEL_SILENT;
}

static bool was_listed(const struct sentinels *sentinels, size_t i)
{
    for (size_t before = 0; before < i; before++) {
        if (is_silent(&sentinels->words[before]) &&
            strcmp(sentinels->words[before].why, sentinels->words[i].why) == 0)
            return true;
    }
    return false;
}

/* Prints those without an answer by their reasons: "10.0.0.2:26379, 10.0.0.3:26379 (Connection
 * refused), 10.0.0.4:26379 (no answer in time)". */
static void list_silent(const struct sentinels *sentinels, char *out, size_t size)
{
    *out = '\0';
    for (size_t first = 0; first < sentinels->count; first++) {
        const char *why = sentinels->words[first].why;
        if (!is_silent(&sentinels->words[first]) || was_listed(sentinels, first))
            continue;
        for (size_t i = first; i < sentinels->count; i++) {
            const struct url_host *host = &sentinels->members[i].host;
            if (is_silent(&sentinels->words[i]) && strcmp(sentinels->words[i].why, why) == 0)
                text_append(out, size, "%s%.60s:%d", *out ? ", " : "", host->name, host->port);
        }
        text_append(out, size, " (%.60s)", why);
    }
}

void sentinels_explain(const struct sentinels *sentinels, const struct sentinel_vote *vote,
                       struct answer *answer)
{
    const struct sentinel_word *word = sentinels_word(sentinels, vote->speaker);
    const struct url_host *host = sentinels_host(sentinels, vote->speaker);
    char silent[sizeof answer->text];

    list_silent(sentinels, silent, sizeof silent);
    switch (vote->outcome) {
    case SENTINELS_DO_NOT_KNOW: /* it may still be added */
        answer_fail(answer, CAUSE_NOT_READY, "the sentinels know no master '%.60s'%s%s",
                    sentinels->url->master, word->why[0] ? ", but " : "", word->why);
        break;
    case SENTINELS_DIFFER:
        answer_fail(answer, CAUSE_NOT_READY, "the sentinels do not agree on the master");
        break;
    case SENTINELS_TOO_FEW:
        answer_fail(answer, CAUSE_NOT_READY, "only %zu of %zu sentinels %s: no answer from %.200s",
                    vote->votes, vote->all, vote->votes == 1 ? "answers" : "answer", silent);
        break;
    case SENTINELS_DENY:
    case SENTINELS_UNFIT:
        answer_fail(answer, vote->outcome == SENTINELS_DENY ? CAUSE_DENIED : CAUSE_UNFIT,
                    "sentinel %.60s:%d: %s", host->name, host->port, word->why);
        break;
    case SENTINELS_SILENT:
    case SENTINELS_OPEN:
    case SENTINELS_NAME:
        answer_fail(answer, CAUSE_UNREACHABLE, "no sentinel answers: %.230s", silent);
        break;
    }
}

/* All Sentinels of a URL. */
#include "sentinels.h"
#include "mem.h"
#include "sentinel.h"

#include <stdarg.h>
#include <stdio.h>

struct sentinels {
    const struct url *url;
    struct sentinel *each[URL_HOSTS_MAX];
    const struct url_host *hosts[URL_HOSTS_MAX];
    size_t count;
    bool asking;
    bool all; /* every one of them has to say something */
    char *password;
    void (*done)(void *arg, const struct sentinel_vote *vote);
    void *arg;
};

static struct sentinel_vote take_vote(const struct sentinels *sentinels)
{
    struct sentinel_word words[URL_HOSTS_MAX];

    for (size_t i = 0; i < sentinels->count; i++)
        words[i] = *sentinel_word(sentinels->each[i]);
    return sentinel_vote(words, sentinels->count);
}

static bool is_complete(const struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->count; i++)
        if (sentinel_word(sentinels->each[i])->said == SENTINEL_ASKED)
            return false;
    return true;
}

static void heard(void *arg)
{
    struct sentinels *sentinels = arg;
    struct sentinel_vote vote = take_vote(sentinels);

    /* Who is slower than needed may finish: that connection serves the next question. */
    if (!sentinels->asking || vote.outcome == SENTINELS_OPEN ||
        (sentinels->all && !is_complete(sentinels)))
        return;
    sentinels->asking = false;
    sentinels->done(sentinels->arg, &vote);
}

/* One that is named twice has one vote. */
static bool is_known(const struct sentinels *sentinels, const struct url_host *host)
{
    for (size_t i = 0; i < sentinels->count; i++) {
        if (sentinels->hosts[i]->port == host->port &&
            strcmp(sentinels->hosts[i]->name, host->name) == 0)
            return true;
    }
    return false;
}

struct sentinels *sentinels_new(struct loop *loop, const struct url *url, struct tls *tls)
{
    struct sentinels *sentinels = mem_zeroed(sizeof *sentinels);

    sentinels->url = url;
    for (size_t i = 0; i < url->host_count; i++) {
        if (is_known(sentinels, &url->hosts[i]))
            continue;
        sentinels->hosts[sentinels->count] = &url->hosts[i];
        sentinels->each[sentinels->count++] = sentinel_new(loop, url, i, tls, heard, sentinels);
    }
    return sentinels;
}

void sentinels_free(struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->count; i++)
        sentinel_free(sentinels->each[i]);
    free(sentinels->password);
    free(sentinels);
}

static void ask(struct sentinels *sentinels, const char *password, struct moment until,
                void (*done)(void *arg, const struct sentinel_vote *vote), void *arg)
{
    char *old = sentinels->password;

    sentinels->asking = true;
    sentinels->done = done;
    sentinels->arg = arg;
    sentinels->password = password ? mem_strdup(password) : NULL;
    for (size_t i = 0; i < sentinels->count; i++)
        sentinel_ask(sentinels->each[i], sentinels->password, until);
    free(old);
}

void sentinels_ask(struct sentinels *sentinels, const char *password, struct moment until,
                   void (*done)(void *arg, const struct sentinel_vote *vote), void *arg)
{
    sentinels->all = false;
    ask(sentinels, password, until, done, arg);
}

void sentinels_ask_all(struct sentinels *sentinels, const char *password, struct moment until,
                       void (*done)(void *arg, const struct sentinel_vote *vote), void *arg)
{
    sentinels->all = true;
    ask(sentinels, password, until, done, arg);
}

void sentinels_hush(struct sentinels *sentinels)
{
    sentinels->asking = false;
}

bool sentinels_contradict(const struct sentinels *sentinels, const char *host, int port)
{
    for (size_t i = 0; i < sentinels->count; i++) {
        const struct sentinel_word *word = sentinel_word(sentinels->each[i]);
        bool spoke = word->said == SENTINEL_NAMES || word->said == SENTINEL_UNKNOWN;
        if (spoke && !sentinel_names(word, host, port))
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
    return sentinels->hosts[i];
}

const struct sentinel_word *sentinels_word(const struct sentinels *sentinels, size_t i)
{
    return sentinel_word(sentinels->each[i]);
}

static void explain(struct answer *answer, enum cause cause, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void explain(struct answer *answer, enum cause cause, const char *fmt, ...)
{
    va_list args;

    *answer = (struct answer){.verdict = VERDICT_UNKNOWN, .cause = cause};
    va_start(args, fmt);
    vsnprintf(answer->text, sizeof answer->text, fmt, args);
    va_end(args);
}

void sentinels_explain(const struct sentinels *sentinels, const struct sentinel_vote *vote,
                       struct answer *answer)
{
    const struct sentinel_word *word = sentinels_word(sentinels, vote->speaker);
    const struct url_host *host = sentinels->hosts[vote->speaker];

    switch (vote->outcome) {
    case SENTINELS_DO_NOT_KNOW:
        explain(answer, CAUSE_UNFIT, "the sentinels know no master '%.60s'%s%s",
                sentinels->url->master, word->why[0] ? ", but " : "", word->why);
        break;
    case SENTINELS_DIFFER:
        explain(answer, CAUSE_NOT_READY, "the sentinels do not agree on the master");
        break;
    case SENTINELS_TOO_FEW:
        explain(answer, CAUSE_NOT_READY,
                "%zu of %zu sentinels %s, too few to be sure who is the master", vote->votes,
                sentinels->count, vote->votes == 1 ? "answers" : "answer");
        break;
    case SENTINELS_DENY:
    case SENTINELS_UNFIT:
        explain(answer, vote->outcome == SENTINELS_DENY ? CAUSE_DENIED : CAUSE_UNFIT,
                "sentinel %.60s:%d: %s", host->name, host->port, word->why);
        break;
    case SENTINELS_GONE:
    case SENTINELS_SILENT:
    case SENTINELS_OPEN:
    case SENTINELS_NAME:
        explain(answer, CAUSE_UNREACHABLE, "no sentinel answers (%.60s:%d: %s)", host->name,
                host->port, word->why);
        break;
    }
}

/* Error replies by their words. */
#include "redis_error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    enum redis_error class;
} error_words[] = {
    {"NOSCRIPT", REDIS_ERROR_NOSCRIPT},
    {"BUSY", REDIS_ERROR_PASSING},
    {"LOADING", REDIS_ERROR_PASSING},
    {"MISCONF", REDIS_ERROR_PASSING},
    {"MASTERDOWN", REDIS_ERROR_PASSING},
    {"NOREPLICAS", REDIS_ERROR_PASSING},
    {"TRYAGAIN", REDIS_ERROR_PASSING},
    {"CLUSTERDOWN", REDIS_ERROR_PASSING},
    {"UNBLOCKED", REDIS_ERROR_PASSING},
    {"max number of clients", REDIS_ERROR_PASSING},
    {"READONLY", REDIS_ERROR_READONLY},
    {"OOM", REDIS_ERROR_UNFIT},
    {"NOAUTH", REDIS_ERROR_DENIED},
    {"WRONGPASS", REDIS_ERROR_DENIED},
    {"NOPERM", REDIS_ERROR_DENIED},
    {"invalid password", REDIS_ERROR_DENIED},
    {"without any password configured", REDIS_ERROR_DENIED},
    {"ACL failure", REDIS_ERROR_DENIED},
    {"can't access", REDIS_ERROR_DENIED},
    {"can't run this command", REDIS_ERROR_DENIED},
    {"has no permissions", REDIS_ERROR_DENIED},
    {"WRONGTYPE", REDIS_ERROR_MISFIT},
    {"CROSSSLOT", REDIS_ERROR_CLUSTER},
    {"cluster support disabled", REDIS_ERROR_CLUSTER},
};

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = text; (at = strstr(at, word)); at += length) {
        bool starts = at == text || !isalnum((unsigned char)at[-1]);
        if (starts && !isalnum((unsigned char)at[length]))
            return true;
    }
    return false;
}

static bool is_redirection(const char *text)
{
    return strncmp(text, "MOVED ", 6) == 0 || strncmp(text, "ASK ", 4) == 0;
}

enum redis_error redis_error_class(const char *text)
{
    size_t length = strcspn(text, " ");

    if (is_redirection(text))
        return REDIS_ERROR_CLUSTER;
    /* A code of its own comes first: what follows may name users and commands. */
    for (size_t i = 0; i < sizeof error_words / sizeof *error_words; i++) {
        if (strlen(error_words[i].word) == length &&
            strncmp(text, error_words[i].word, length) == 0)
            return error_words[i].class;
    }
    for (size_t i = 0; i < sizeof error_words / sizeof *error_words; i++) {
        if (has_word(text, error_words[i].word))
            return error_words[i].class;
    }
    return REDIS_ERROR_OTHER;
}

static void answer_unknown(struct answer *answer, enum cause cause, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void answer_unknown(struct answer *answer, enum cause cause, const char *fmt, ...)
{
    va_list args;

    answer->verdict = VERDICT_UNKNOWN;
    answer->cause = cause;
    va_start(args, fmt);
    vsnprintf(answer->text, sizeof answer->text, fmt, args);
    va_end(args);
}

static void answer_cluster(const char *text, struct answer *answer)
{
    bool moved = is_redirection(text);

    if (strstr(text, "cluster support disabled"))
        answer_unknown(answer, CAUSE_CLUSTER, "this Redis is no Cluster");
    else
        answer_unknown(answer, CAUSE_CLUSTER, "this is a node of a Redis Cluster: %.160s", text);
    snprintf(answer->moved, sizeof answer->moved, "%s", moved ? text : "");
}

void redis_error_answer(const char *text, struct answer *answer)
{
    if (!*text)
        text = "the server answered with an error, and did not say which";
    switch (redis_error_class(text)) {
    case REDIS_ERROR_MISFIT:
        answer->verdict = VERDICT_REFUSED;
        answer->cause = CAUSE_MISFIT;
        snprintf(answer->text, sizeof answer->text,
                 "the store's key of that name holds other data (%.120s)", text);
        break;
    case REDIS_ERROR_CLUSTER: answer_cluster(text, answer); break;
    case REDIS_ERROR_DENIED: answer_unknown(answer, CAUSE_DENIED, "%.200s", text); break;
    case REDIS_ERROR_NOSCRIPT:
    case REDIS_ERROR_PASSING: answer_unknown(answer, CAUSE_NOT_READY, "%.200s", text); break;
    case REDIS_ERROR_READONLY:
    case REDIS_ERROR_UNFIT:
    case REDIS_ERROR_OTHER: answer_unknown(answer, CAUSE_UNFIT, "%.200s", text); break;
    }
}

void redis_error_senseless(struct answer *answer)
{
    memset(answer, 0, sizeof *answer);
    answer_unknown(answer, CAUSE_UNFIT, "the server's answer makes no sense");
    answer->maybe_done = true;
}

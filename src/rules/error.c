/* Makes answers of error replies: of a Redis server, by a word in them, or of a host before a
 * database, which tells the kind of its failure (wire_error.h). */
#include "rules/error.h"
#include "base/decimal.h"
#include "base/text.h"
#include "rules/wire_error.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The errors of Redis, by a word in them. */
static const struct error_word {
    const char *word;
    enum redis_error class;
    const char *plain; /* the meaning, in words about the server; NULL: its text tells more */
    enum hint hint;
} error_words[] = {
    {"NOSCRIPT", REDIS_ERROR_NOSCRIPT, "it does not keep the scripts it is sent", HINT_NONE},
    {"BUSY", REDIS_ERROR_PASSING, "busy with a script that takes long", HINT_SCRIPT_KILL},
    {"LOADING", REDIS_ERROR_PASSING, "still loading its data", HINT_NONE},
    {"MISCONF", REDIS_ERROR_PASSING, NULL, HINT_DISK},
    {"MASTERDOWN", REDIS_ERROR_READONLY, "a replica that cannot reach its master", HINT_NONE},
    {"NOREPLICAS", REDIS_ERROR_PASSING, "it has too few replicas to take writes",
     HINT_FEW_REPLICAS},
    {"TRYAGAIN", REDIS_ERROR_PASSING, "the Cluster is moving the key's slot", HINT_NONE},
    {"CLUSTERDOWN", REDIS_ERROR_PASSING, "the Cluster is down", HINT_NONE},
    {"UNBLOCKED", REDIS_ERROR_READONLY, "it has become a replica meanwhile", HINT_NONE},
    {"max number of clients", REDIS_ERROR_PASSING,
     "too many clients: its max number of clients is reached", HINT_MAXCLIENTS},
    {"READONLY", REDIS_ERROR_READONLY, "a read-only replica; locks live on the master", HINT_NONE},
    {"OOM", REDIS_ERROR_UNFIT, "out of memory: it has used up its maxmemory", HINT_MAXMEMORY},
    {"NOAUTH", REDIS_ERROR_LOGIN, "it asks for a password", HINT_PASSWORD},
    {"WRONGPASS", REDIS_ERROR_LOGIN, "wrong password, or no such user", HINT_PASSWORD},
    {"NOPERM", REDIS_ERROR_DENIED, NULL, HINT_RIGHTS},
    {"DENIED", REDIS_ERROR_DENIED,
     "it is in protected mode: without a password it serves only its own host", HINT_REQUIREPASS},
    {"invalid password", REDIS_ERROR_LOGIN, "wrong password", HINT_PASSWORD},
    {"without any password configured", REDIS_ERROR_LOGIN, "it has no password, but was given one",
     HINT_NO_PASSWORD},
    {"ACL failure", REDIS_ERROR_DENIED, NULL, HINT_RIGHTS},
    {"can't access", REDIS_ERROR_DENIED, NULL, HINT_RIGHTS},
    {"can't run this command", REDIS_ERROR_DENIED, NULL, HINT_RIGHTS},
    {"has no permissions", REDIS_ERROR_DENIED, NULL, HINT_RIGHTS},
    {"WRONGTYPE", REDIS_ERROR_MISFIT, "the store's key of that name holds other data", HINT_NONE},
    {"CROSSSLOT", REDIS_ERROR_CLUSTER, NULL, HINT_NONE},
    {"cluster support disabled", REDIS_ERROR_CLUSTER, NULL, HINT_NONE},
};

/* Whether the text has the word, not as a part of another. */
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

bool redis_error_is_redirection(const char *text)
{
    return text_behind("MOVED ", text) || text_behind("ASK ", text);
}

bool redis_error_turns_away(const char *text)
{
    return text_behind("DENIED ", text) || strstr(text, "max number of clients");
}

/* The row of error_words for a server's error text: that of the word it begins with, or else the
 * first one whose word is anywhere in it. NULL: it has none of the words. */
static const struct error_word *find_word(const char *text)
{
    size_t length = strcspn(text, " ");

    /* The code in front comes first: the rest of the text may name users and commands. */
    for (size_t i = 0; i < sizeof error_words / sizeof *error_words; i++) {
        if (strlen(error_words[i].word) == length &&
            strncmp(text, error_words[i].word, length) == 0)
            return &error_words[i];
    }
    for (size_t i = 0; i < sizeof error_words / sizeof *error_words; i++) {
        if (has_word(text, error_words[i].word))
            return &error_words[i];
    }
    return NULL;
}

/* Codes with which a server refuses what it has not begun. In front only: within a script they tell
 * of one command of it. */
static const char *const refusals[] = {"NOSCRIPT",    "BUSY",   "LOADING", "MASTERDOWN", "TRYAGAIN",
                                       "CLUSTERDOWN", "MOVED",  "ASK",     "CROSSSLOT",  "NOAUTH",
                                       "WRONGPASS",   "NOPERM", "DENIED",  "EXECABORT"};
/* By these a server refuses either each write of a script or none (OOM: it asks only at the first),
 * or it does not know what it is asked. */
static const char *const refusals_of_all[] = {
    "READONLY", "OOM", "MISCONF", "NOREPLICAS", "unknown command", "max number of clients"};

enum redis_error redis_error_class(const char *text)
{
    struct host_error error;
    const struct error_word *found = host_error_read(text, &error) ? NULL : find_word(text);

    if (redis_error_is_redirection(text))
        return REDIS_ERROR_CLUSTER;
    return found ? found->class : REDIS_ERROR_OTHER;
}

/* -- in words ---------------------------------------------------------------------------------- */

/* Words which right the user lacks, by the server's text. Up to 6.2 a server does not tell which
 * command of a script it was, nor which key. */
static void explain_right(const char *text, char *out, size_t size)
{
    static const char before[] = "run the '";
    const char *command = strstr(text, before);

    if (command) {
        command += strlen(before);
        snprintf(out, size, "no right to run '%.*s'", (int)strcspn(command, "'"), command);
    } else if (strstr(text, "channel")) {
        snprintf(out, size, "no right to the channels it needs");
    } else if (strstr(text, "key")) {
        snprintf(out, size, "no right to the keys it needs");
    } else {
        snprintf(out, size, "no right to run a command that it needs");
    }
}

/* Words why the server cannot write to its disk, by its text, which tells that of its append-only
 * file, but not of a snapshot. */
static void explain_disk(const char *text, char *out, size_t size)
{
    static const char before[] = "AOF file: ", full[] = "No space left on device";
    const char *why = strstr(text, before);

    if (strstr(text, full))
        snprintf(out, size, "its disk is full (%s), and it takes no writes", full);
    else if (why)
        snprintf(out, size, "it cannot save its data to disk (%s), and takes no writes",
                 why + strlen(before));
    else
        snprintf(out, size, "it cannot save its data to disk, and takes no writes");
}

/* Words an error of the server. word: its row of error_words; NULL: none fits. */
static void explain_error(const char *text, const struct error_word *word, char *out, size_t size)
{
    if (strstr(text, "cluster support disabled"))
        snprintf(out, size, "this server is not in cluster mode");
    else if (redis_error_class(text) == REDIS_ERROR_CLUSTER)
        snprintf(out, size, "this is a node of a Redis Cluster");
    else if (!*text)
        snprintf(out, size, "the server answered with an error, and did not say which");
    else if (!word)
        snprintf(out, size, "it answers with an error: %s", text);
    else if (word->plain)
        snprintf(out, size, "%s", word->plain);
    else if (strcmp(word->word, "MISCONF") == 0)
        explain_disk(text, out, size);
    else
        explain_right(text, out, size);
}

static const enum cause causes[] = {
    [REDIS_ERROR_NOSCRIPT] = CAUSE_NOT_READY, [REDIS_ERROR_PASSING] = CAUSE_NOT_READY,
    [REDIS_ERROR_READONLY] = CAUSE_NOT_READY, [REDIS_ERROR_UNFIT] = CAUSE_UNFIT,
    [REDIS_ERROR_LOGIN] = CAUSE_DENIED,       [REDIS_ERROR_DENIED] = CAUSE_DENIED,
    [REDIS_ERROR_MISFIT] = CAUSE_MISFIT,      [REDIS_ERROR_CLUSTER] = CAUSE_CLUSTER,
    [REDIS_ERROR_OTHER] = CAUSE_UNFIT};

/* The meaning of a database's error to the user. The first row does for an error that is not
 * known. */
static const struct wire_failure {
    enum wire_error error;
    enum cause cause;
    enum hint hint;
    bool by_user;      /* another user may fare better */
    const char *words; /* in place of the server's; NULL: the library's or the system's stay */
} failures[] = {
    {WIRE_UNREACHABLE, CAUSE_UNREACHABLE, HINT_NONE, false, NULL},
    {WIRE_ENDED, CAUSE_UNREACHABLE, HINT_NONE, false, "the server has ended the connection"},
    {WIRE_NOWHERE, CAUSE_UNREACHABLE, HINT_NAME, false, "there is no host of that name"},
    {WIRE_NOT_READY, CAUSE_NOT_READY, HINT_NONE, false,
     "it starts up, recovers or shuts down, and does not serve now"},
    {WIRE_BUSY, CAUSE_NOT_READY, HINT_NONE, false,
     "it takes longer than it allows itself; its tables may be locked"},
    {WIRE_FULL, CAUSE_NOT_READY, HINT_MAX_CONNECTIONS, true, "too many clients"},
    {WIRE_NO_SPACE, CAUSE_NOT_READY, HINT_NONE, false, "its disk is full, and it takes no writes"},
    {WIRE_QUOTA, CAUSE_NOT_READY, HINT_QUOTA, false,
     "it has used up its quota of space, and takes no writes"},
    {WIRE_NO_MEMORY, CAUSE_NOT_READY, HINT_NONE, false, "out of memory"},
    {WIRE_TROUBLE, CAUSE_NOT_READY, HINT_NONE, true, NULL},
    {WIRE_READ_ONLY, CAUSE_NOT_READY, HINT_NONE, false, "read-only; locks live on the primary"},
    {WIRE_NO_WRITER, CAUSE_NOT_READY, HINT_NONE, false, NULL},
    {WIRE_SOME_REFUSE, CAUSE_NOT_READY, HINT_PASSWORD_OR_USER, false, NULL},
    {WIRE_FAILED, CAUSE_NOT_READY, HINT_NONE, false, NULL},
    {WIRE_PASSWORD, CAUSE_DENIED, HINT_PASSWORD_OR_USER, true, "wrong password, or no such user"},
    {WIRE_NO_PASSWORD, CAUSE_DENIED, HINT_PASSWORD_OR_USER, true, "it asks for a password"},
    {WIRE_NO_USER, CAUSE_DENIED, HINT_PASSWORD_OR_USER, false, "it asks for a user and a password"},
    {WIRE_NO_USERS, CAUSE_DENIED, HINT_NO_USERS, true,
     "its authentication is not enabled, but it was given a user"},
    {WIRE_KEPT_OUT, CAUSE_DENIED, HINT_LOGIN, true, "no right to log in from here"},
    {WIRE_DENIED, CAUSE_DENIED, HINT_GRANT, true, "no right to the database, or to its tables"},
    {WIRE_KEYS_DENIED, CAUSE_DENIED, HINT_ROLE, true, "no right to the keys it needs"},
    {WIRE_NO_TABLES, CAUSE_UNFIT, HINT_TABLES, false, "the database has no tables for locks"},
    {WIRE_NOT_KEPT, CAUSE_UNFIT, HINT_NONE, false,
     "a table does not keep what is written to it (has it a trigger, a rule or a policy?)"},
    {WIRE_NO_SHEDLOCK, CAUSE_UNFIT, HINT_SHEDLOCK, false,
     "the database has no table shedlock for the mirror"},
    {WIRE_SHEDLOCK_DENIED, CAUSE_DENIED, HINT_SHEDLOCK, true,
     "no right to the table shedlock for the mirror, or it is not there"},
    {WIRE_NO_DATABASE, CAUSE_UNFIT, HINT_DATABASE, true, "the server has no such database"},
    {WIRE_NO_TRANSACTIONS, CAUSE_UNFIT, HINT_NONE, false,
     "a pooler gives each statement another session (pool_mode=statement), but locks take "
     "transactions"},
    {WIRE_STRANGER, CAUSE_UNFIT, HINT_NONE, false, "it is not a database server of that kind"},
    {WIRE_DRIVER, CAUSE_UNFIT, HINT_NONE, false, NULL},
    {WIRE_NO_TLS, CAUSE_UNFIT, HINT_NONE, false, NULL},
    {WIRE_UNFIT, CAUSE_UNFIT, HINT_NONE, true, NULL},
};

/* Fills the answer with the failure of a database, as its host has told it. */
static void answer_database(const struct host_error *error, struct answer *answer)
{
    const struct wire_failure *failure = failures;
    size_t i = sizeof failures / sizeof *failures;

    while (--i > 0 && failures[i].error != error->error)
        ;
    failure += i;
    const char *user = failure->by_user ? error->user : "";
    /* Then the words are the server's own. */
    bool is_quoted = failure->error == WIRE_UNFIT || failure->error == WIRE_TROUBLE;

    answer_fail(answer, failure->cause, "%s%s%s%s%s", *user ? "user " : "", user, *user ? ": " : "",
                is_quoted ? "it answers with an error: " : "",
                failure->words ? failure->words : error->said);
    answer->hint = failure->hint;
    answer->maybe_done = error->maybe_done;
    answer->nowhere = error->error == WIRE_NOWHERE;
    answer->full = error->error == WIRE_FULL;
    answer->login_refused = wire_error_refuses_login(error->error);
    text_copy(answer->said, sizeof answer->said, *error->said ? error->said : "failed");
}

void redis_error_answer(const char *text, struct answer *answer)
{
    const struct error_word *word = find_word(text);
    struct host_error error;

    if (host_error_read(text, &error)) {
        answer_database(&error, answer);
        return;
    }
    enum redis_error class = redis_error_class(text);
    answer->cause = causes[class];
    answer->verdict = answer->cause == CAUSE_MISFIT ? VERDICT_REFUSED : VERDICT_UNKNOWN;
    answer->hint = word ? word->hint : HINT_NONE;
    answer->full = answer->hint == HINT_MAXCLIENTS;
    answer->login_refused = class == REDIS_ERROR_LOGIN;
    text_copy(answer->said, sizeof answer->said, text);
    explain_error(answer->said, word, answer->text, sizeof answer->text);
}

void redis_error_of_script(const char *text, struct answer *answer)
{
    struct host_error error;

    redis_error_answer(text, answer);
    answer->verdict = VERDICT_UNKNOWN;
    if (host_error_read(text, &error)) /* a host has told whether it may be done */
        return;
    size_t length = strcspn(text, " ");
    answer->maybe_done = true; /* unless it is one of the refusals */
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (strlen(refusals[i]) == length && strncmp(text, refusals[i], length) == 0)
            answer->maybe_done = false;
    for (size_t i = 0; i < sizeof refusals_of_all / sizeof *refusals_of_all; i++)
        if (has_word(text, refusals_of_all[i]))
            answer->maybe_done = false;
}

void redis_error_senseless(struct answer *answer)
{
    answer_fail(answer, CAUSE_UNFIT, "the server's answer makes no sense");
    answer->maybe_done = true;
}

bool redis_error_is_senseless(const struct answer *answer)
{
    return answer->verdict == VERDICT_UNKNOWN && answer->cause == CAUSE_UNFIT &&
           answer->maybe_done && !answer->said[0];
}

bool redis_newer_layout(const char *kind, const char *known, char *text, size_t size)
{
    size_t prefix = strcspn(known, "/") + 1; /* "lock/" */
    size_t length = strcspn(kind, " ");      /* of "lock/2", without a version of rlock behind it */
    int64_t version, ours;

    if (strncmp(kind, known, prefix) != 0 || length > 20 || /* it is something else */
        !decimal_read(kind + prefix, length - prefix, INT32_MAX, &version) ||
        !decimal_read(known + prefix, strlen(known + prefix), INT32_MAX, &ours) || version <= ours)
        return false;
    if (kind[length])
        snprintf(text, size, "layout %.*s needs rlock %.20s or newer", (int)length, kind,
                 kind + length + 1);
    else
        snprintf(text, size, "layout %.*s needs a newer rlock (this one reads %s)", (int)length,
                 kind, known);
    return true;
}

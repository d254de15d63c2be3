/* Kinds of failures, and their words. */
#include "store/sql/failure.h"

#include <stdio.h>

#include "store/sql/mirror.h"

static void explain_missing(struct answer *answer)
{
    snprintf(answer->text, sizeof answer->text,
             "the database has no table shedlock for the mirror");
    answer->hint = HINT_SHEDLOCK;
}

/* words: what it means, in place of the server's; NULL: they are the library's or the system's, and
 * stay. by_user: another user may fare better. */
static const struct failure {
    enum wire_error error;
    enum cause cause;
    enum hint hint;
    bool by_user;
    const char *words;
} failures[] = {
    {WIRE_UNREACHABLE, CAUSE_UNREACHABLE, HINT_NONE, false, NULL},
    {WIRE_ENDED, CAUSE_UNREACHABLE, HINT_NONE, false, "the server has ended the connection"},
    {WIRE_NOWHERE, CAUSE_UNREACHABLE, HINT_NAME, false, "there is no host of that name"},
    {WIRE_NOT_READY, CAUSE_NOT_READY, HINT_NONE, false,
     "it starts up, or recovers, and does not serve yet"},
    {WIRE_BUSY, CAUSE_NOT_READY, HINT_NONE, false,
     "it takes longer than it allows itself; its tables may be locked"},
    {WIRE_FULL, CAUSE_NOT_READY, HINT_MAX_CONNECTIONS, true, "too many clients"},
    {WIRE_NO_SPACE, CAUSE_NOT_READY, HINT_NONE, false, "its disk is full, and it takes no writes"},
    {WIRE_NO_MEMORY, CAUSE_NOT_READY, HINT_NONE, false, "out of memory"},
    {WIRE_TROUBLE, CAUSE_NOT_READY, HINT_NONE, true, NULL},
    {WIRE_PASSWORD, CAUSE_DENIED, HINT_PASSWORD_OR_USER, true, "wrong password, or no such user"},
    {WIRE_KEPT_OUT, CAUSE_DENIED, HINT_LOGIN, true, "no right to log in from here"},
    {WIRE_DENIED, CAUSE_DENIED, HINT_GRANT, true, "no right to the database, or to its tables"},
    {WIRE_NO_TABLES, CAUSE_UNFIT, HINT_TABLES, false, "the database has no tables for locks"},
    {WIRE_NO_DATABASE, CAUSE_UNFIT, HINT_DATABASE, true, "the server has no such database"},
    {WIRE_READ_ONLY, CAUSE_UNFIT, HINT_NONE, false, "read-only; locks live on the primary"},
    {WIRE_STRANGER, CAUSE_UNFIT, HINT_NONE, false, "it is no database server of that kind"},
    {WIRE_NO_TLS, CAUSE_UNFIT, HINT_NONE, false, NULL},
    {WIRE_UNFIT, CAUSE_UNFIT, HINT_NONE, true, NULL},
    {WIRE_NO_DRIVER, CAUSE_UNFIT, HINT_DRIVER, false, NULL},
    {WIRE_NO_START, CAUSE_UNFIT, HINT_LIBRARY, false, NULL},
};

static const struct failure *failure_of(enum wire_error error)
{
    for (size_t i = 1; i < sizeof failures / sizeof *failures; i++)
        if (failures[i].error == error)
            return &failures[i];
    return failures;
}

void sql_answer_failure(struct answer *answer, const struct store_address *address,
                        const struct sql_reply *reply)
{
    const struct failure *failure = failure_of(reply->error);
    bool raw = reply->error == WIRE_UNFIT || reply->error == WIRE_TROUBLE;
    const char *words = failure->words ? failure->words : reply->said;
    const char *user = failure->by_user && reply->user ? reply->user : "";
    const char *password = store_address_password(address);
    bool missing = reply->error == WIRE_PASSWORD && !(password && *password);
    char name[300];

    url_print(address->urls, name, sizeof name);
    answer_fail(answer, failure->cause, "%s%.120s: %s%.60s%s%s%s",
                failure->cause == CAUSE_UNREACHABLE ? "cannot reach " : "", name,
                *user ? "user " : "", user, *user ? ": " : "",
                raw ? "it answers with an error: " : "",
                missing ? "it asks for a password" : words);
    answer->hint = missing && store_lost_password(address) ? HINT_KEPT_PASSWORD : failure->hint;
    answer->nowhere = reply->error == WIRE_NOWHERE;
    answer->full = reply->error == WIRE_FULL;
    snprintf(answer->said, sizeof answer->said, "%.*s", (int)sizeof answer->said - 1, reply->said);
    if (reply->error == WIRE_NO_TABLES && sql_mirror_is_missing(reply->said))
        explain_missing(answer);
}

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

void sql_answer_failure(struct answer *answer, const struct store_address *address,
                        const struct sql_reply *reply)
{
    const struct wire_failure *failure = wire_failure_of(reply->error);
    const char *words = failure->words ? failure->words : reply->said;
    const char *user = failure->by_user && reply->user ? reply->user : "";
    const char *password = store_address_password(address);
    bool missing = reply->error == WIRE_PASSWORD && !(password && *password);
    char name[300];

    url_print(address->urls, name, sizeof name);
    answer_fail(answer, failure->cause, "%s%.120s: %s%.60s%s%s%s",
                failure->cause == CAUSE_UNREACHABLE ? "cannot reach " : "", name,
                *user ? "user " : "", user, *user ? ": " : "",
                wire_error_is_raw(failure->error) ? "it answers with an error: " : "",
                missing ? "it asks for a password" : words);
    answer->hint = missing && store_lost_password(address) ? HINT_KEPT_PASSWORD : failure->hint;
    answer->nowhere = reply->error == WIRE_NOWHERE;
    answer->full = reply->error == WIRE_FULL;
    snprintf(answer->said, sizeof answer->said, "%.*s", (int)sizeof answer->said - 1, reply->said);
    if (reply->error == WIRE_NO_TABLES && sql_mirror_is_missing(reply->said))
        explain_missing(answer);
}

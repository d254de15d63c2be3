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

void sql_answer_failure(struct answer *answer, const struct url *url, const struct sql_reply *reply)
{
    static const struct {
        enum wire_error error;
        enum cause cause;
        enum hint hint;
        const char *words; /* NULL: the server's own */
    } known[] = {
        {WIRE_DENIED, CAUSE_DENIED, HINT_NONE, NULL},
        {WIRE_NO_TABLES, CAUSE_UNFIT, HINT_TABLES, "the database has no tables for locks"},
        {WIRE_NOT_READY, CAUSE_NOT_READY, HINT_NONE, NULL},
        {WIRE_UNFIT, CAUSE_UNFIT, HINT_NONE, NULL},
        {WIRE_NO_DRIVER, CAUSE_UNFIT, HINT_DRIVER, NULL},
    };
    char name[300];

    url_print(url, name, sizeof name);
    answer_fail(answer, CAUSE_UNREACHABLE, "cannot reach %s: %s", name, reply->said);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].error != reply->error)
            continue;
        answer_fail(answer, known[i].cause, "%s: %s", name,
                    known[i].words ? known[i].words : reply->said);
        answer->hint = known[i].hint;
    }
    snprintf(answer->said, sizeof answer->said, "%.*s", (int)sizeof answer->said - 1, reply->said);
    if (reply->error == WIRE_NO_TABLES && sql_mirror_is_missing(reply->said))
        explain_missing(answer);
}

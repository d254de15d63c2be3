/* Errors of databases. */
#include "rules/wire_error.h"

#include <stdio.h>
#include <string.h>

#include "base/decimal.h"

#define CODE "RLOCKSTORE "

bool wire_error_breaks(enum wire_error error)
{
    return error == WIRE_UNREACHABLE || error == WIRE_ENDED || error == WIRE_NOWHERE;
}

bool wire_error_is_raw(enum wire_error error)
{
    return error == WIRE_UNFIT || error == WIRE_TROUBLE;
}

static const struct wire_failure failures[] = {
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
    {WIRE_NO_PASSWORD, CAUSE_DENIED, HINT_PASSWORD_OR_USER, true, "it asks for a password"},
    {WIRE_KEPT_OUT, CAUSE_DENIED, HINT_LOGIN, true, "no right to log in from here"},
    {WIRE_DENIED, CAUSE_DENIED, HINT_GRANT, true, "no right to the database, or to its tables"},
    {WIRE_NO_TABLES, CAUSE_UNFIT, HINT_TABLES, false, "the database has no tables for locks"},
    {WIRE_NO_SHEDLOCK, CAUSE_UNFIT, HINT_SHEDLOCK, false,
     "the database has no table shedlock for the mirror"},
    {WIRE_NO_DATABASE, CAUSE_UNFIT, HINT_DATABASE, true, "the server has no such database"},
    {WIRE_NO_TRANSACTIONS, CAUSE_UNFIT, HINT_NONE, false,
     "a pooler gives each statement another session (pool_mode=statement), but locks take "
     "transactions"},
    {WIRE_READ_ONLY, CAUSE_UNFIT, HINT_NONE, false, "read-only; locks live on the primary"},
    {WIRE_STRANGER, CAUSE_UNFIT, HINT_NONE, false, "it is not a database server of that kind"},
    {WIRE_NO_TLS, CAUSE_UNFIT, HINT_NONE, false, NULL},
    {WIRE_UNFIT, CAUSE_UNFIT, HINT_NONE, true, NULL},
};

const struct wire_failure *wire_failure_of(enum wire_error error)
{
    for (size_t i = 1; i < sizeof failures / sizeof *failures; i++)
        if (failures[i].error == error)
            return &failures[i];
    return failures;
}

/* "RLOCKSTORE u? 6 locker could not …": the letter, "?" or "-", and how long the user's name is. */
void host_error_print(const struct host_error *error, char *out, size_t size)
{
    snprintf(out, size, CODE "%c%c %zu %s %.*s", error->error, error->maybe_done ? '?' : '-',
             strlen(error->user), error->user, (int)strcspn(error->said, "\r\n"), error->said);
}

bool host_error_read(const char *text, struct host_error *error)
{
    const char *at = text + strlen(CODE);
    int64_t length;

    *error = (struct host_error){.error = WIRE_UNFIT};
    if (strncmp(text, CODE, strlen(CODE)) != 0 || strlen(at) < 5)
        return false;
    error->error = (enum wire_error)at[0];
    error->maybe_done = at[1] == '?';
    at += 3;
    if (!decimal_take(&at, sizeof error->user - 1, &length) || *at != ' ' ||
        strlen(++at) < (size_t)length + 1)
        return false;
    memcpy(error->user, at, (size_t)length);
    snprintf(error->said, sizeof error->said, "%s", at + length + 1);
    return true;
}

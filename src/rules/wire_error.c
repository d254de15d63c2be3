/* An error as a host's reply: "RLOCKSTORE u? 6 locker could not …": the letter of its kind, "?" if
 * the request may be done or else "-", the length of the user, the user, and the words. */
#include "rules/wire_error.h"

#include <stdio.h>
#include <string.h>

#include "base/decimal.h"

#define CODE "RLOCKSTORE "

bool wire_error_breaks(enum wire_error error)
{
    return error == WIRE_UNREACHABLE || error == WIRE_ENDED || error == WIRE_NOWHERE;
}

bool wire_error_leaves(enum wire_error error)
{
    return error == WIRE_READ_ONLY || error == WIRE_NOT_READY;
}

bool wire_error_refuses_login(enum wire_error error)
{
    return error == WIRE_PASSWORD || error == WIRE_NO_PASSWORD || error == WIRE_NO_USER ||
           error == WIRE_SOME_REFUSE;
}

bool host_error_set(struct host_error *error, enum wire_error kind, const char *said)
{
    *error = (struct host_error){.error = kind};
    text_append(error->said, sizeof error->said, "%.*s", (int)strcspn(said, "\n"), said);
    return false;
}

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
    if (strncmp(text, CODE, strlen(CODE)) != 0 || strlen(at) < strlen("u? 0 "))
        return false;
    error->error = (enum wire_error)at[0];
    error->maybe_done = at[1] == '?';
    at += strlen("u? ");
    if (!decimal_take(&at, sizeof error->user - 1, &length) || *at != ' ' ||
        strlen(++at) < (size_t)length + 1)
        return false;
    memcpy(error->user, at, (size_t)length);
    text_copy(error->said, sizeof error->said, at + length + 1);
    return true;
}

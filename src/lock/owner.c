#include "lock/owner.h"

#include <stdio.h>
#include <string.h>

#define UUID_LENGTH (OWNER_UUID_SIZE - 1)

/* The third group of a UUID of rlock acquire's: version 8 is for private use (RFC 9562). */
#define MARK_AT 14
static const char mark[] = {'8', 'a', 'c', 'c'};

/* Whether the text is a UUID in the form that rlock makes: the store compares them byte by byte. */
static bool is_uuid(const char *text)
{
    for (int i = 0; i < UUID_LENGTH; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (!text[i] || !strchr(dash ? "-" : "0123456789abcdef", text[i]))
            return false;
    }
    return true;
}

const char *owner_fault(const char *text)
{
    for (int depth = 1; is_uuid(text); depth++) {
        text += UUID_LENGTH;
        if (*text == '\0')
            return depth > OWNER_DEPTH ? "is nested too deep" : NULL;
        if (*text++ != '.')
            break;
    }
    return "is not an owner token";
}

/* Whether rlock acquire made the token that ends with this UUID. */
static bool is_marked(const char *uuid)
{
    return strncmp(uuid + MARK_AT, mark, sizeof mark) == 0;
}

void owner_mark(char uuid[OWNER_UUID_SIZE])
{
    memcpy(uuid + MARK_AT, mark, sizeof mark);
}

bool owner_is_acquired(const char *owner)
{
    const char *dot = strrchr(owner, '.');

    return is_marked(dot ? dot + 1 : owner);
}

bool owner_acquired_in(const char *owner, char outer[OWNER_SIZE])
{
    const char *dot = strrchr(owner, '.');

    /* Both parts beside the last dot are UUIDs. */
    if (!dot || !is_marked(dot + 1) || !is_marked(dot - UUID_LENGTH))
        return false;
    memmove(outer, owner, (size_t)(dot - owner));
    outer[dot - owner] = '\0';
    return true;
}

bool owner_nest(const char *outer, const char *uuid, char owner[OWNER_SIZE])
{
    bool nested = outer && *outer;
    int length =
        snprintf(owner, OWNER_SIZE, "%s%s%s", nested ? outer : "", nested ? "." : "", uuid);

    return length < OWNER_SIZE;
}

void owner_beside(const char *other, const char *uuid, char owner[OWNER_SIZE])
{
    const char *dot = strrchr(other, '.');
    int kept = dot ? (int)(dot - other + 1) : 0;

    snprintf(owner, OWNER_SIZE, "%.*s%s", kept, other, uuid);
}

bool owner_nests_in(const char *owner, const char *ancestor)
{
    size_t length = strlen(ancestor);
    return strncmp(owner, ancestor, length) == 0 && owner[length] == '.';
}

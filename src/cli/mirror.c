#include "cli/mirror.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "lock/key.h"

#define SHEDLOCK_NAME_MAX 64 /* the width of a column of its table */

static bool has_control(const char *text)
{
    while (*text && (unsigned char)*text >= ' ' && *text != 0x7f)
        text++;
    return *text != '\0';
}

/* Characters of UTF-8. */
static size_t count_characters(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

const char *mirror_read(const char *value, const char *key, char out[MIRROR_SIZE])
{
    static const char *const kinds[] = {"string", "redisson", "shedlock"};
    const char *colon = strchrnul(value, ':'), *name = *colon ? colon + 1 : key;
    const char *kind = NULL;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(kinds[i], value, (size_t)(colon - value)) == 0 &&
            kinds[i][colon - value] == '\0')
            kind = kinds[i];
    if (!kind || !*name)
        return "is none of string:NAME, redisson:NAME and shedlock:NAME";
    if (strlen(name) > KEY_MAX_BYTES || has_control(name))
        return "has a NAME that is too long or has controls";
    if (strcmp(kind, "shedlock") == 0 && count_characters(name) > SHEDLOCK_NAME_MAX)
        return "has a NAME of more than 64 characters";
    snprintf(out, MIRROR_SIZE, "%s:%s", kind, name);
    return NULL;
}

/* Whether the store has locks of that kind. */
static bool has_mirrors(const struct store_record *record, const char *mirror, size_t length)
{
    for (const char *const *kind = record->mirrors; *kind; kind++)
        if (strlen(*kind) == length && strncmp(*kind, mirror, length) == 0)
            return true;
    return false;
}

int mirror_judge(const char *mirror, const char *key, const struct call *call)
{
    const struct store_address *address = &call->settings.address;
    const struct store_record *record = store_record_of(address);
    const char *name = strchr(mirror, ':') + 1;
    size_t length = (size_t)(name - mirror);

    int status = command_need(call, STORE_MIRROR);
    if (status != STATUS_OK)
        return status;
    /* Those of several servers are of the same kind. */
    if (!has_mirrors(address->urls->record, mirror, length - 1))
        return command_misused(call, "%s has no --mirror %.*s", record->name, (int)length, mirror);
    if (address->grace)
        return command_misused(call, "--mirror does not go with --grace, of which other "
                                     "programs know nothing");
    if (!record->beside || record->beside(address->prefix, key, name))
        return STATUS_OK;
    command_error(call,
                  "--mirror: the keys %.200s and %.200s are in different slots of the "
                  "Cluster",
                  key, name);
    say_hint("take what is between the braces of NAME for KEY, or else the whole NAME");
    return STATUS_USAGE;
}

#include "lock/identity.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/percent.h"
#include "base/strbuf.h"

#define CODED_MAX (3 * IDENTITY_WORD_MAX) /* bytes of an encoded word */
#define WORDS     5                       /* of an identity; notes follow */

/* Whether it is a byte of a UTF-8 character, but not its first. */
static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

void identity_set(char word[IDENTITY_WORD_MAX + 1], const char *value)
{
    size_t length = strnlen(value, IDENTITY_WORD_MAX + 1);

    if (length > IDENTITY_WORD_MAX) {
        length = IDENTITY_WORD_MAX;
        /* A character has three such bytes at most. */
        while (length > IDENTITY_WORD_MAX - 3 && is_continuation(value[length]))
            length--;
        if (is_continuation(value[length])) /* not UTF-8: it has no boundaries */
            length = IDENTITY_WORD_MAX;
    }
    memmove(word, value, length);
    word[length] = '\0';
}

/* Encodes a word for a line; a bare "-" stands for an empty one, so that "-" itself is encoded. "="
 * is, too, so that no label looks like a note, for which scripts search. */
static void word_print(const char *word, char coded[CODED_MAX + 1])
{
    bool dash = strcmp(word, "-") == 0;

    if (*word == '\0')
        strcpy(coded, "-");
    else
        percent_encode(word, dash ? "-" : "=", coded, CODED_MAX + 1);
}

char *identity_print(const struct identity *who)
{
    char host[CODED_MAX + 1], user[CODED_MAX + 1], command[CODED_MAX + 1], label[CODED_MAX + 1];
    char pid[24] = "-";
    const char *note = who->version[0] ? " " IDENTITY_NOTE_VERSION "=" : "";
    const char *in = who->zone[0] ? " " IDENTITY_NOTE_ZONE "=" : "";

    word_print(who->host, host);
    word_print(who->user, user);
    word_print(who->command, command);
    word_print(who->label, label);
    if (who->pid > 0)
        snprintf(pid, sizeof pid, "%ld", who->pid);
    return strbuf_print("%s %s %s %s %s%s%s%s%s", host, user, pid, command, label, note,
                        who->version, in, who->zone);
}

/* Decodes a word of a line, of "length" bytes; "" if it is damaged: it has raw control characters,
 * which identity_print() does not write, or cannot be decoded. */
static void word_parse(const char *text, size_t length, char word[IDENTITY_WORD_MAX + 1])
{
    char plain[IDENTITY_WORD_MAX + 8]; /* more than a word: identity_set() then cuts it well */

    *word = '\0';
    if (length == 1 && *text == '-')
        return;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return;
    if (percent_decode(text, length, plain, sizeof plain) == PERCENT_FINE)
        identity_set(word, plain);
}

/* Returns the number that is the text; 0 if it is none, or larger than "most". */
static int64_t number_parse(const char *text, size_t length, int64_t most)
{
    int64_t number = 0;

    decimal_read(text, length, most, &number);
    return number;
}

char *identity_note(const char *line, const char *name, int64_t number)
{
    /* A note needs the five words of an identity before it. */
    return strbuf_print("%s %s=%" PRId64, *line ? line : IDENTITY_UNKNOWN, name, number);
}

/* Returns the value of the note NAME=VALUE in a line, still encoded, and its *size; NULL: there is
 * none. Notes stand behind the words of the identity. */
static const char *find_note(const char *text, size_t length, const char *name, size_t *size)
{
    const char *end = text + length;
    size_t named = strlen(name);

    for (size_t i = 0;; i++) {
        const char *space = memchr(text, ' ', (size_t)(end - text));
        size_t word = (size_t)((space ? space : end) - text);
        if (i >= WORDS && word > named && text[named] == '=' && memcmp(text, name, named) == 0) {
            *size = word - named - 1;
            return text + named + 1;
        }
        if (!space)
            return NULL;
        text = space + 1;
    }
}

int64_t identity_noted(const char *text, size_t length, const char *name)
{
    size_t size;
    const char *value = find_note(text, length, name, &size);

    return value ? number_parse(value, size, INT64_MAX) : 0;
}

bool identity_noted_word(const char *text, size_t length, const char *name,
                         char word[IDENTITY_WORD_MAX + 1])
{
    size_t size = 0;
    const char *value = find_note(text, length, name, &size);

    word_parse(value ? value : "", size, word);
    return value;
}

void identity_parse(const char *text, size_t length, struct identity *who)
{
    char *const words[WORDS] = {who->host, who->user, NULL /* pid */, who->command, who->label};
    const char *word = text, *end = text + length;
    char version[IDENTITY_WORD_MAX + 1], zone[IDENTITY_WORD_MAX + 1];

    *who = (struct identity){0};
    for (size_t i = 0; i < WORDS; i++) {
        const char *space = memchr(word, ' ', (size_t)(end - word));
        size_t size = (size_t)((space ? space : end) - word);
        if (words[i])
            word_parse(word, size, words[i]);
        else
            who->pid = (long)number_parse(word, size, INT_MAX);
        if (!space)
            break;
        word = space + 1;
    }
    identity_noted_word(text, length, IDENTITY_NOTE_VERSION, version);
    snprintf(who->version, sizeof who->version, "%.20s", version);
    identity_noted_word(text, length, IDENTITY_NOTE_ZONE, zone);
    snprintf(who->zone, sizeof who->zone, "%.16s", zone);
}

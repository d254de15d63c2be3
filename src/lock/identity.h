/* The identity of a process that asks for a lock, as the store keeps it: host, user, pid, command
 * and label in one line of percent-encoded words, "-" for one that is not known. Notes may follow,
 * words like waited=1500; a reader ignores those that it does not know. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDENTITY_WORD_MAX 256 /* bytes of one decoded word; longer ones are cut at a character */

#define IDENTITY_UNKNOWN "- - - - -" /* all of it */

#define IDENTITY_ZONE_SIZE 17 /* 16 hexadecimal digits */

struct identity {
    char host[IDENTITY_WORD_MAX + 1]; /* "" when not known */
    char user[IDENTITY_WORD_MAX + 1];
    char command[IDENTITY_WORD_MAX + 1];
    char label[IDENTITY_WORD_MAX + 1];
    long pid;         /* 0 when not known */
    char version[24]; /* of rlock */
    /* A hash of the host and its pid namespace, in which the pid counts, as that of a container; ""
     * when not known. */
    char zone[IDENTITY_ZONE_SIZE];
};

/* Copies "value" into one word of an identity, cut to IDENTITY_WORD_MAX bytes at a UTF-8
 * boundary. */
void identity_set(char word[IDENTITY_WORD_MAX + 1], const char *value);

/* The note with the version of rlock. */
#define IDENTITY_NOTE_VERSION "v"
/* The note with its zone. */
#define IDENTITY_NOTE_ZONE "in"

/* Returns the line: five words, host user pid command label; the version and the zone as notes. The
 * caller frees. */
char *identity_print(const struct identity *who);

/* Reads the line of identity_print() from "text" of "length" bytes. Foreign or damaged words are
 * unknown, not an error: they are only shown to people. */
void identity_parse(const char *text, size_t length, struct identity *who);

/* Returns the line with the note NAME=NUMBER behind it; "number" is not negative. The caller
 * frees. */
char *identity_note(const char *line, const char *name, int64_t number);

/* Returns the number of the note NAME in "text" of "length" bytes; 0 if there is none, or it is not
 * a number. */
int64_t identity_noted(const char *text, size_t length, const char *name);

/* Copies the decoded text of the note NAME in "text" of "length" bytes to "word". False and "" if
 * there is none. */
bool identity_noted_word(const char *text, size_t length, const char *name,
                         char word[IDENTITY_WORD_MAX + 1]);

/* Who asks for a lock, as the store keeps it: host, user, pid, command and label in one line of
 * percent-encoded words, "-" for what is not known. Notes may follow, words like waited=1500: a
 * reader passes over those that it does not know, as versions without notes do. */
#ifndef RLOCK_LOCK_IDENTITY_H
#define RLOCK_LOCK_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDENTITY_WORD_MAX 256 /* bytes of one decoded word; longer ones are cut at a character */

#define IDENTITY_UNKNOWN "- - - - -" /* all of it */

struct identity {
    char host[IDENTITY_WORD_MAX + 1]; /* "" when not known */
    char user[IDENTITY_WORD_MAX + 1];
    char command[IDENTITY_WORD_MAX + 1];
    char label[IDENTITY_WORD_MAX + 1];
    long pid;         /* 0 when not known */
    char version[24]; /* of rlock */
};

/* Copies "value" into one word of an identity, cut to IDENTITY_WORD_MAX bytes at a UTF-8
 * boundary. */
void identity_set(char word[IDENTITY_WORD_MAX + 1], const char *value);

/* The note with the version of rlock. */
#define IDENTITY_NOTE_VERSION "v"

/* Five words: host user pid command label; and the version as a note. The caller frees. */
char *identity_print(const struct identity *who);

/* Reads what identity_print() wrote, from "text" of "length" bytes; foreign or damaged words come
 * out as unknown, never as an error: it is only shown to people. */
void identity_parse(const char *text, size_t length, struct identity *who);

/* The line with the note NAME=NUMBER behind it; "number" is not negative. The caller frees; NULL
 * without memory. */
char *identity_note(const char *line, const char *name, int64_t number);

/* The number of the note NAME in "text" of "length" bytes; 0 if there is none, or one that makes no
 * sense. */
int64_t identity_noted(const char *text, size_t length, const char *name);

/* The text of a note; "" if there is none, and false. */
bool identity_noted_word(const char *text, size_t length, const char *name,
                         char word[IDENTITY_WORD_MAX + 1]);

#endif

/* Who asks for a lock, as the store keeps it: host, user, pid, command and label in one line of
 * percent-encoded words, "-" for what is not known. */
#ifndef RLOCK_IDENTITY_H
#define RLOCK_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#define IDENTITY_WORD_MAX 256 /* bytes of one decoded word; longer ones are cut at a character */

struct identity {
    char host[IDENTITY_WORD_MAX + 1]; /* "" when not known */
    char user[IDENTITY_WORD_MAX + 1];
    char command[IDENTITY_WORD_MAX + 1];
    char label[IDENTITY_WORD_MAX + 1];
    long pid; /* 0 when not known */
};

/* Copies "value" into one word of an identity, cut to IDENTITY_WORD_MAX bytes at a UTF-8 boundary. */
void identity_set(char word[IDENTITY_WORD_MAX + 1], const char *value);

/* Five words: host user pid command label. The caller frees. */
char *identity_print(const struct identity *who);

/* Reads what identity_print() wrote, from "text" of "length" bytes; foreign or damaged words come out
 * as unknown, never as an error: it is only shown to people. */
void identity_parse(const char *text, size_t length, struct identity *who);

#endif

/* The users that may look: those of a file as htpasswd(1) writes it, with bcrypt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct users;

/* Reads lines USER:HASH of a text of so many bytes, with a NUL behind them; empty ones and those
 * that begin with # are none. NULL where the text makes no sense: "fault" says why, and *line
 * where, counted from 1; 0: in all of it. */
struct users *users_parse(const char *text, size_t length, unsigned *line, char *fault,
                          size_t size);
/* Whether that is one of the users, and their password. To find out takes as long as the hash of
 * the file has it, for unknown users as well; a password that was right before takes no time. */
bool users_admit(struct users *users, const char *name, const char *password);
/* Whether users_admit() knows the answer already, which is yes then. */
bool users_know(const struct users *users, const char *name, const char *password);
void users_free(struct users *users);

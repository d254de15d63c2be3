/* Addresses of lock stores: parse them, print them without their password. The kind of store
 * parses the rest of an address behind its scheme. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct store_kind;

#define URL_HOSTS_MAX 16
/* Room for one with so many names of hosts, of 253 bytes at most. */
#define URL_TEXT_SIZE 5120

struct url_host {
    const char *name; /* or a numeric address, an IPv6 one without its brackets */
    int port;
};

struct url {
    char *text;                    /* one allocation that everything below points into */
    const struct store_kind *kind; /* of the store that it is the address of */
    bool tls;
    const char *user;     /* NULL if none */
    const char *password; /* NULL if none; "" is a password */
    struct url_host hosts[URL_HOSTS_MAX];
    size_t host_count;
    /* The path of a Unix socket or file, of the directory of a database's socket, or of a node
     * without its '/'; NULL: none. */
    const char *path;
    const char *master; /* its name among Sentinels; NULL: none */
    int db;
    const char *database; /* of a database server; NULL: none */
    const char *table;    /* the prefix of its tables' names; NULL: the usual one */
    const char *margin;   /* of etcd: a duration or "never"; NULL: the usual one */
};

/* Parses into *url, which the caller frees with url_free(). False with a message in "fault"
 * that follows "the URL" and quotes nothing of the text but the scheme (it may hold a password):
 * "has no host", "has a port that is not a number from 1 to 65535", "has the unknown scheme
 * 'foo' …". *url is then empty and needs no url_free(). */
bool url_parse(const char *text, struct url *url, char *fault, size_t size);
void url_free(struct url *url);

/* Prints the address without user and password, in its shortest form: redis://127.0.0.1:6379/0,
 * unix:///run/r.sock?db=2. Returns out. */
char *url_print(const struct url *url, char *out, size_t size);

/* Finds the password's bytes within "text" as given (still encoded), so that it can be blotted out:
 * false if there is none. Works on any text with "://"; of one that url_parse() refuses it takes
 * rather too much (up to the last '@', and a word without ':' before it, which may be meant as a
 * password). */
bool url_password_span(const char *text, size_t *start, size_t *length);

/* -- several addresses in one text, with white space between them ------------------------------ */

/* Returns the first word of "text", and its length in *length; NULL if there is none. */
const char *urls_word(const char *text, size_t *length);

/* Finds the bytes of the next password, as url_password_span() does; false: there is no other.
 * from: 0, or where the last one ended (or began, if it was cut out): the rest of its address, up
 * to white space, is skipped. *start counts from the beginning of "text". White space within what
 * may be a password is taken for a part of it. */
bool urls_password_span(const char *text, size_t from, size_t *start, size_t *length);

/* Overwrites the passwords of what looks like addresses in "text" with asterisks. */
void urls_blot(char *text);

#define URLS_SHOWN_SIZE 84
/* Prints the user's text for a message: without those passwords, and cut to a fair length, "..."
 * for the rest. Returns "out". */
char *urls_show(const char *text, char out[URLS_SHOWN_SIZE]);
#define URLS_TEXT(text) urls_show(text, (char[URLS_SHOWN_SIZE]){""})

/* True if both name the same server, whatever its database. */
bool urls_same_server(const struct url *a, const struct url *b);

/* Addresses of lock stores: parse them, print them without their password.
 *
 * redis://[[USER]:PASS@]HOST[:PORT][/DB]   (PORT 6379, DB 0; HOST may be an IPv6 address in [ ])
 * unix:///PATH[?db=N]   or   unix://[USER]:PASS@/PATH[?db=N]
 * sentinel://[[USER]:PASS@]HOST[:PORT][,HOST[:PORT]...]/MASTER[/DB]   (PORT 26379)
 * cluster://[[USER]:PASS@]HOST[:PORT][,HOST[:PORT]...]   (PORT 6379)
 * local:
 *
 * rediss, sentinels and clusters are the same over TLS. USER, PASS, PATH and MASTER are percent-decoded. */
#ifndef RLOCK_URL_H
#define RLOCK_URL_H

#include <stdbool.h>
#include <stddef.h>

#define URL_HOSTS_MAX 16

struct url_host {
    const char *name; /* or a numeric address, an IPv6 one without its brackets */
    int port;
};

struct url {
    char *text;           /* one allocation that everything below points into */
    const char *scheme;   /* "redis", "unix", "sentinel", "cluster", "local"; without the s of TLS */
    bool tls;
    const char *user;     /* NULL if none */
    const char *password; /* NULL if none; "" is a password */
    struct url_host hosts[URL_HOSTS_MAX];
    size_t host_count;  /* one for redis; none for unix and local */
    const char *path;   /* of unix; NULL for others */
    const char *master; /* its name, of sentinel; NULL for others */
    int db;
};

/* Parses into *url, which the caller gives back with url_free(). False with a message in "fault" that
 * follows "the URL" and quotes nothing of the text but the scheme (it may hold a password): "has no
 * host", "has a port that is not a number from 1 to 65535", "has the unknown scheme 'foo' …".
 * *url is then empty and needs no url_free(). */
bool url_parse(const char *text, struct url *url, char *fault, size_t size);
void url_free(struct url *url);

/* Prints the address without user and password, in its shortest form: redis://127.0.0.1:6379/0,
 * unix:///run/r.sock?db=2. Returns out. */
char *url_print(const struct url *url, char *out, size_t size);

/* Finds the password's bytes within "text" as given (still encoded), so that it can be blotted out:
 * false if there is none. Works on any text with "://"; of one that url_parse() refuses it takes
 * rather too much (up to the last '@', and a word without ':' before it). */
bool url_password_span(const char *text, size_t *start, size_t *length);

#endif

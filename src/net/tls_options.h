/* A user's settings of TLS. */
#ifndef RLOCK_NET_TLS_OPTIONS_H
#define RLOCK_NET_TLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* A file or directory that a user names: borrowed for as long as the struct tls lives. */
struct tls_file {
    const char *path; /* NULL: nothing */
    const char *text; /* its content, of "size" bytes; NULL: it is a directory */
    size_t size;
    bool rereadable;   /* it can be read again */
    const char *place; /* where it was set: "--tls-ca", "/etc/rlock.conf:3: tls-ca" */
    int status;        /* exit status where it makes no sense */
};

/* The same. */
struct tls_options {
    struct tls_file
        ca; /* certificates to trust, by themselves or in a directory; without: the system's */
    struct tls_file cert, key; /* of a client; without a key: in cert's file */
    const char *server_name;   /* verified, and sent as SNI, instead of the host's name */
    /* Where tls_new() notes what to exit with if it fails, and that where it is for no fault of a
     * file above: there is no OpenSSL; its configuration makes no sense. */
    int *status;
    int library_status, policy_status;
};

/* The longest of these files. */
#define TLS_FILE_SIZE_MAX (8U << 20)

#endif

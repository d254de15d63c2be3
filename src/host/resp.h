/* RESP2, the protocol of Redis, from the server's side: commands come, replies go. Pure. */
#pragma once

#include "base/strbuf.h"
#include "host/record.h"

struct redisReader;

/* Commands that have come. All zero at first. */
struct resp_in {
    struct redisReader *reader;
    void *command; /* that was read last */
    struct slice *words;
};

enum resp_state { RESP_MORE, RESP_COMMAND, RESP_DAMAGED };

/* Adds bytes that have come, which are copied. */
void resp_feed(struct resp_in *in, const char *bytes, size_t size);
/* The next command: *count words, valid until the next call, and each is followed by a NUL.
 * RESP_MORE: it has not come as a whole. */
enum resp_state resp_next(struct resp_in *in, const struct slice **words, size_t *count);
void resp_in_free(struct resp_in *in);

/* These add a reply to the end. */
void resp_bulk(struct strbuf *out, struct slice slice);
void resp_null(struct strbuf *out);
void resp_number(struct strbuf *out, int64_t number);
/* So many replies follow, which are its elements. */
void resp_array(struct strbuf *out, size_t count);
/* One line: only the first of "text". */
void resp_status(struct strbuf *out, const char *text);
void resp_error(struct strbuf *out, const char *text);

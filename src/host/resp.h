/* RESP2, the protocol of Redis, from the server's side: commands come, replies go. Pure. */
#pragma once

#include "base/strbuf.h"
#include "host/record.h"

/* Commands that have come. All zero at first. */
struct resp_in {
    struct strbuf bytes;
    size_t taken; /* of the commands that were read */
    struct piece *words;
    size_t words_room;
};

enum resp_state { RESP_MORE, RESP_COMMAND, RESP_DAMAGED };

/* Room for some more bytes; *size is how many. To be followed by resp_received(). Commands that
 * were read before are invalid then. */
char *resp_room(struct resp_in *in, size_t *size);
void resp_received(struct resp_in *in, size_t size);
/* The next command: its words point into the bytes, and each is followed by a NUL. RESP_MORE: it
 * has not come as a whole. */
enum resp_state resp_next(struct resp_in *in, const struct piece **words, size_t *count);
void resp_in_free(struct resp_in *in);

/* These add a reply to the end. */
void resp_bulk(struct strbuf *out, struct piece piece);
void resp_null(struct strbuf *out);
void resp_number(struct strbuf *out, int64_t number);
/* So many replies follow, which are its elements. */
void resp_array(struct strbuf *out, size_t count);
/* One line: only the first of "text". */
void resp_status(struct strbuf *out, const char *text);
void resp_error(struct strbuf *out, const char *text);

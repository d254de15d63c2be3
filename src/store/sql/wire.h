/* What rlock and a driver (src/drivers) say to each other: frames over a socket pair, each one
 * request or one answer, with a list of texts in it. Pure.
 *
 * A frame is its length (4 bytes, most significant first, of what follows), a byte that says what
 * it is, and the texts: each its length (4 bytes), its bytes, and a NUL. Neither side believes the
 * other: what is damaged or longer than WIRE_FRAME_MAX ends the connection. */
#ifndef RLOCK_STORE_SQL_WIRE_H
#define RLOCK_STORE_SQL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/wire_error.h"

/* Both have to be of the same; it is the first text of WIRE_CONNECT. */
#define WIRE_VERSION   3
#define WIRE_FRAME_MAX (4U << 20)

enum wire_type {
    /* To the driver. Each is answered once, in order. The first number is the time limit in ms,
     * after which the driver ends itself. */
    WIRE_CONNECT = 'C',   /* version, limit, host, port, user, password, database, 1 for TLS, file
                             of CA certificates, of a certificate, of its key, client's name.
                             host: a path is that of a Unix socket, or of its directory */
    WIRE_STATEMENT = 'S', /* limit, SQL */

    /* From the driver. */
    WIRE_CONNECTED = 'H', /* the server's version */
    WIRE_ROWS = 'R',      /* number of columns, and all values row by row; NULL is "". Of a
                             statement without any: one value, how many rows it has changed */
    WIRE_ERROR = 'E',     /* an enum wire_error as a letter, the server's or its library's words,
                             the user who has logged in or was to */
    WIRE_CALLED = 'N',    /* unasked: a channel was notified that is listened to */
};

/* Frames to be sent. All zero at first; free(bytes) at the end. */
struct wire_out {
    char *bytes;
    size_t size, room;
    size_t frame; /* where the frame begins that is being written */
};

void wire_begin(struct wire_out *out, enum wire_type type);
void wire_text(struct wire_out *out, const char *text);
void wire_number(struct wire_out *out, int64_t number);
/* False where the frame is too long: it is taken out again. */
bool wire_end(struct wire_out *out);
/* Takes out the frame that is being written. */
void wire_cancel(struct wire_out *out);
/* The first "count" bytes have been sent. */
void wire_sent(struct wire_out *out, size_t count);

/* Bytes that have come. All zero at first; free(bytes) at the end. */
struct wire_in {
    char *bytes;
    size_t size, room;
    size_t taken; /* of the frames that were read */
};

/* One that has come; it points into the bytes. */
struct wire_frame {
    enum wire_type type;
    const char *at, *end;
};

/* Room for some more bytes; *size is how many. To be followed by wire_received(). Frames that were
 * read before are invalid then. */
char *wire_room(struct wire_in *in, size_t *size);
void wire_received(struct wire_in *in, size_t count);

enum wire_state { WIRE_MORE, WIRE_FRAME, WIRE_DAMAGED };
/* The next frame. WIRE_MORE: it has not come as a whole. */
enum wire_state wire_next(struct wire_in *in, struct wire_frame *frame);
/* The next text of a frame; false if there is none, or it is damaged. */
bool wire_take(struct wire_frame *frame, const char **text);
/* The same as a number that is not negative. */
bool wire_take_number(struct wire_frame *frame, int64_t *number);

#endif

/* A database server begins without TLS: its client asks for it in the database's protocol. */
#include "store/hosted/certificate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "net/loop.h"
#include "net/resolve.h"
#include "net/stream.h"
#include "net/tls.h"
#include "store/hosted/dialect.h"
#include "store/url.h"

/* https://www.postgresql.org/docs/current/protocol-message-formats.html: SSLRequest, which the
 * server answers with one letter. */
static const char pg_request[8] = "\0\0\0\x08\x04\xd2\x16\x2f";
#define PG_TAKES_TLS 'S'

/* https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html: the
 * server's greeting comes first. SSLRequest: the packet's length and number, capabilities
 * (PROTOCOL_41, SSL, SECURE_CONNECTION, PLUGIN_AUTH), longest packet, and utf8mb4. */
static const char my_request[36] = "\x20\0\0\x01\0\x8a\x08\0\0\0\0\x01\x2d";
#define MY_HEAD_SIZE 4

/* One look at the certificates of a server. */
struct look {
    const struct url *url;
    const struct sql_dialect *dialect;
    struct loop *loop;
    struct tls *tls;
    struct stream *stream;
    struct resolver addresses;
    int next; /* of these */
    struct strbuf heard;
    bool asked; /* for TLS: what comes next is that */
    bool seen;
    struct tls_expiry *expiry;
    char *fault;
    size_t fault_size;
};

/* Ends the look without certificates, for that reason. */
static void end_look(struct look *look, const char *fault)
{
    snprintf(look->fault, look->fault_size, "%s", fault);
    loop_stop(look->loop);
}

/* Connects to the host's next address; fault: what was wrong with the one before, with which the
 * look ends if there is no next one. A database first speaks plainly, and begins TLS when it was
 * asked for it (look->asked); etcd begins with it. */
static void connect_next(struct look *look, const char *fault)
{
    int at = look->next++;

    look->asked = !look->dialect;
    strbuf_cut(&look->heard, 0);
    if (at >= look->addresses.count)
        end_look(look, fault);
    else if (stream_open(look->stream, &look->addresses.found[at], look->asked ? look->tls : NULL,
                         look->url->hosts[0].name) != 0)
        connect_next(look, strerror(errno));
}

/* The connection is up, and TLS if it was begun: then its certificates are all that is wanted. A
 * plain connection asks PostgreSQL for TLS; MySQL speaks first. */
static void on_connected(void *arg)
{
    struct look *look = arg;

    stream_expiry(look->stream, look->expiry);
    look->seen = look->expiry->whose;
    if (look->seen)
        loop_stop(look->loop);
    else if (!look->dialect->is_mysql)
        stream_send(look->stream, pg_request, sizeof pg_request);
}

/* Takes what a database server says before TLS, until that is complete: PostgreSQL's one letter,
 * or MySQL's greeting, after which it is asked for TLS. Then the stream begins the handshake. */
static void on_received(void *arg, const char *bytes, size_t size)
{
    struct look *look = arg;

    strbuf_add(&look->heard, bytes, size);
    const unsigned char *head = (const unsigned char *)look->heard.text;
    size_t greeting = look->dialect->is_mysql ? MY_HEAD_SIZE : 1; /* in front of TLS */
    if (look->dialect->is_mysql && look->heard.size >= MY_HEAD_SIZE)
        greeting += head[0] | (size_t)head[1] << 8; /* the length of the packet behind the head */
    if (look->asked || look->heard.size < greeting)
        return;
    look->asked = true;
    if (!look->dialect->is_mysql && *look->heard.text != PG_TAKES_TLS) {
        end_look(look, "it takes no TLS");
        return;
    }
    if (look->dialect->is_mysql)
        stream_send(look->stream, my_request, sizeof my_request);
    stream_secure(look->stream, look->tls, look->url->hosts[0].name);
}

/* The connection has failed: tries the next address. */
static void on_broken(void *arg, const char *why)
{
    connect_next(arg, why);
}

/* The host's name was looked up: tries its addresses, or ends with the fault if there are none. */
static void on_resolved(void *arg, int count, const char *fault)
{
    (void)count;
    connect_next(arg, fault);
}

bool certificate_look(const struct store_address *address, const struct sql_dialect *dialect,
                      struct tls_expiry *expiry, char *fault, size_t size)
{
    static const struct stream_events events = {on_connected, on_received, on_broken};
    const struct url_host *host = &address->urls->hosts[0];
    struct look look = {.url = address->urls,
                        .dialect = dialect,
                        .loop = loop_new(),
                        .tls = tls_new(&address->tls, fault, size),
                        .expiry = expiry,
                        .fault = fault,
                        .fault_size = size};

    *expiry = (struct tls_expiry){0};
    if (look.tls) {
        look.stream = stream_new(look.loop, &events, &look);
        if (!resolver_start(&look.addresses, look.loop, host->name, host->port, on_resolved, &look))
            end_look(&look, strerror(errno));
        else if (loop_run_for(look.loop, address->connect_timeout) == 0)
            end_look(&look, stream_overdue(look.stream));
        resolver_stop(&look.addresses);
        stream_free(look.stream);
        strbuf_free(&look.heard);
        tls_discard(look.tls);
    }
    loop_free(look.loop);
    return look.seen;
}

/* rlock-serve: locks over HTTP. `rlock serve` executes it. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/decimal.h"
#include "cli/lock_watch.h"
#include "cli/metrics.h"
#include "cli/render.h"
#include "cmd/commands.h"
#include "os/file.h"
#include "serve/host_header.h"
#include "serve/http.h"
#include "serve/listener.h"
#include "serve/users.h"
#include "store/url.h"

#define AUTH_FILE_MAX ((size_t)1024 * 1024)

/* The store is asked when a client asks, and not more often than this. */
#define SURVEY_EVERY (1 * NS_PER_SEC)
/* A wrong password costs as long as this many times the time that it took to find out. */
#define QUIET_TIMES 4
#define TABLE_WIDTH 160 /* of the table for browsers without JavaScript */
/* A store that has not answered by then is out of reach, for the clients that wait. */
#define PATIENCE (5 * NS_PER_SEC)

struct server {
    struct call call;
    struct lock_watch locks;
    struct listener listener;
    struct http_events events;
    struct strbuf about;
    struct http *http;
    /* By which browsers may know it: its own name and those that were given. */
    char own_name[HOST_NAME_MAX + 1];
    const char **names;
    size_t name_count;
    struct users *users;       /* the users that may look; NULL: every client that can connect */
    struct moment quiet_until; /* a password was wrong: so long no other is tried */

    struct moment fresh_until; /* until when the published documents count */
    bool survey_wanted;        /* a client waits for the next survey */
    bool history_wanted;       /* with former runs, which cost the store more */
    bool idle;                 /* nothing is under way; loop_stop() begins a survey */
    bool surveying;
    int told_to_end; /* by that signal; 0 */
};

/* -- what is published ------------------------------------------------------------------------- */

/* Makes the documents of the present locks, for programs and for people, as `rlock status` prints
 * them: free locks only where they are named. */
static void print_locks(const struct server *server, struct http_texts *texts)
{
    const struct render_style style = {.width = TABLE_WIDTH};
    const struct lock_views *seen = &server->locks.list.locks;
    struct survey_request request = server->locks.request;
    struct lock_views shown = {.views = mem_zeroed((seen->count + 1) * sizeof *shown.views)};
    struct strbuf *table = &texts->all[HTTP_TABLE];

    request.idle = false;
    for (size_t i = 0; i < seen->count; i++)
        if (survey_reports(&request, &seen->views[i]))
            shown.views[shown.count++] = seen->views[i];
    render_json(&texts->all[HTTP_LOCKS], &shown, &server->locks.list.pauses);
    lock_watch_heading(&server->locks, table);
    strbuf_puts(table, "\n\n");
    render_table(table, shown.views, shown.count, &style);
    free(shown.views);
}

/* Makes the documents of an outage: {"error":"…","seen":"…"}, the time of the last answer, or null;
 * and that in words. */
static void print_outage(const struct server *server, struct http_texts *texts)
{
    char seen[DESCRIBE_TIME_SIZE] = "";
    json_t *object = jansson.object();
    struct strbuf *table = &texts->all[HTTP_TABLE];

    if (server->locks.seen)
        describe_utc((int64_t)server->locks.seen * 1000, seen);
    json_put_text(object, "error", server->locks.why);
    json_put_text(object, "seen", seen);
    json_write(&texts->all[HTTP_LOCKS], object);
    strbuf_puts(&texts->all[HTTP_HISTORY], texts->all[HTTP_LOCKS].text);
    lock_watch_heading(&server->locks, table);
    strbuf_putc(table, '\n');
}

/* A look at the locks has ended: prints all documents, and has http hand them to the
 * clients that wait. */
static void publish_locks(void *arg)
{
    struct server *server = arg;
    const struct lock_watch *locks = &server->locks;
    struct http_texts texts = {.away = locks->away};

    if (locks->away) {
        print_outage(server, &texts);
    } else {
        print_locks(server, &texts);
        /* The history was surveyed, or the store has none ("idle" is for those with a memory). */
        if (locks->request.runs > 0 || !locks->request.idle) {
            /* As `rlock history --json` does. */
            size_t count;
            struct past_run *runs = past_runs_collect(&server->locks.list.locks, &count);
            render_history_json(&texts.all[HTTP_HISTORY], runs, count);
            free(runs);
        }
    }
    metrics_render(&texts.all[HTTP_METRICS], locks->away ? NULL : &locks->list,
                   locks->request.idle);
    server->survey_wanted = server->history_wanted; /* by a client that came meanwhile */
    http_publish(server->http, &texts);
}

/* Called by http for a request: whether the document that is there, if one is, is new enough. If
 * not, the request waits for what is published next, and a survey begins as soon as it may. */
static bool is_fresh(void *arg, enum http_document wanted, bool there)
{
    struct server *server = arg;
    /* A survey of a store that is away may take long, and the document says that it is. */
    bool out_of_reach = server->surveying && server->locks.away;

    if (there && (out_of_reach || !moment_reached(server->fresh_until, moment_now())))
        return true;
    server->survey_wanted = true;
    server->history_wanted |= wanted == HTTP_HISTORY;
    if (server->idle)
        loop_stop(server->call.query.loop);
    return false;
}

/* Makes the document about the store, {"store":"…","prefix":"…"}. */
static void print_about(struct server *server)
{
    const struct store_address *address = &server->call.settings.address;
    char url[URL_TEXT_SIZE];
    struct strbuf store = {0};
    json_t *object = jansson.object();

    for (size_t i = 0; i < address->url_count; i++)
        strbuf_printf(&store, "%s%s", i ? " " : "", url_print(&address->urls[i], url, sizeof url));
    json_put_text(object, "store", store.text);
    strbuf_free(&store);
    json_put_text(object, "prefix", address->prefix);
    json_write(&server->about, object);
}

/* Whether the Host header names this server: a page of another one, whose name leads here, must not
 * read it. */
static bool knows_host(void *arg, const char *host)
{
    const struct server *server = arg;

    return host_header_is_known(host, server->names, server->name_count);
}

/* Whether the user may come in. A check of a password takes long on purpose. After a wrong one, no
 * other is checked for a while (HTTP_BUSY), so that a stranger cannot keep the server busy; users
 * whose password was right before come in at once. */
static enum http_admission admits_user(void *arg, const char *user, const char *password)
{
    struct server *server = arg;
    struct moment began = moment_now();

    if (users_know(server->users, user, password))
        return HTTP_ADMITTED;
    if (!moment_reached(server->quiet_until, began))
        return HTTP_BUSY;
    if (users_admit(server->users, user, password))
        return HTTP_ADMITTED;
    struct moment now = moment_now();
    server->quiet_until = moment_plus(now, QUIET_TIMES * moment_until(began, now));
    return HTTP_STRANGER;
}

/* -- the rounds -------------------------------------------------------------------------------- */

/* Surveys the locks, and makes documents of them, for all clients that wait. It reads the runs only
 * if one of them wants those. */
static void survey_locks(struct server *server)
{
    struct answer answer;
    bool was_away = server->locks.away;

    server->fresh_until = moment_plus(moment_now(), SURVEY_EVERY);
    server->locks.request.runs = server->history_wanted ? QUERY_RUNS_ALL : 0;
    server->history_wanted = false;
    server->surveying = true;
    lock_watch_ask(&server->locks, &answer);
    server->surveying = false;
    if (server->told_to_end)
        return;
    if (server->locks.away && !was_away)
        say_warning("serve: out of reach: %s", server->locks.why);
    else if (was_away && !server->locks.away)
        say_warning("serve: the store answers again");
    publish_locks(server);
}

/* Surveys the locks when a client wants to see them, but not too often; otherwise waits for one. */
static void serve_documents(struct server *server)
{
    struct loop *loop = server->call.query.loop;

    while (!server->told_to_end) {
        int64_t early = moment_until(moment_now(), server->fresh_until);
        if (!server->survey_wanted) {
            server->idle = true;
            if (loop_run(loop) < 0)
                return;
            server->idle = false;
        } else if (early > 0) {
            loop_run_for(server->call.query.loop, early);
        } else {
            survey_locks(server);
        }
    }
}

static void on_signal(void *owner, int signo)
{
    struct server *server = owner;

    if (!child_signal_is_fatal(signo))
        return;
    server->told_to_end = signo;
    loop_stop(server->call.query.loop);
}

/* -- the names of this host -------------------------------------------------------------------- */

static void add_name(struct server *server, const char *name)
{
    *MEM_APPEND(server->names, server->name_count) = name;
}

/* -- its users --------------------------------------------------------------------------------- */

/* Takes the file of users. Returns the status. */
static int take_users(struct server *server)
{
    const struct file_options options = {.limit = AUTH_FILE_MAX};
    const char *path = command_value(&server->call, OPTION_AUTH_FILE);
    struct file file;
    char fault[256];
    unsigned line;

    if (!path)
        return STATUS_OK;
    if (file_read(&file, path, &options, fault, sizeof fault) != 0)
        return command_misused(&server->call, AUTH_FILE " '%.100s' cannot be read: %s", path,
                               fault);
    server->users = users_parse(file.text, file.size, &line, fault, sizeof fault);
    file_wipe(&file);
    if (server->users)
        return STATUS_OK;
    if (line > 0)
        command_error(&server->call, AUTH_FILE " %.100s:%u: %s", path, line, fault);
    else
        command_error(&server->call, AUTH_FILE " %.100s: %s", path, fault);
    return STATUS_CONFIG;
}

/* Listens where --listen says, and serves there. Returns STATUS_OK, or says why not. */
static int open_listener(struct server *server)
{
    const char *listen = command_value(&server->call, OPTION_LISTEN);
    const char *address = listen ? listen : "";
    char fault[256], shown[256];

    switch (listener_open(&server->listener, address, fault, sizeof fault)) {
    case LISTENER_MISUSED: {
        int64_t number;
        const char *port = address + (*address == ':'); /* PORT or :PORT, as others write it */
        if (!decimal_parse(port, 1, UINT16_MAX, &number))
            return command_misused(&server->call, "'%s' %s", URLS_TEXT(address), fault);
        command_error(&server->call, "'%s' %s", URLS_TEXT(address), fault);
        say_hint("127.0.0.1:%s, or 0.0.0.0:%s for other hosts", port, port);
        return STATUS_USAGE;
    }
    case LISTENER_REFUSED:
        command_error(&server->call, "%.100s: %s", address, fault);
        return STATUS_SYSTEM;
    default: break;
    }
    if (server->listener.host)
        add_name(server, server->listener.host);
    print_about(server);
    /* A client of a Unix socket is not a browser. */
    server->events = (struct http_events){.is_fresh = is_fresh,
                                          .knows_host = server->listener.host ? knows_host : NULL,
                                          .admits = server->users ? admits_user : NULL,
                                          .about = server->about.text};
    server->http = http_start(server->call.query.loop, server->listener.sockets,
                              server->listener.count, &server->events, server);
    if (!server->http) {
        command_error(&server->call, "%.100s: cannot serve HTTP there", address);
        return STATUS_SYSTEM;
    }
    for (size_t i = 0; i < server->listener.count; i++)
        say_warning("serve: listening on %s",
                    listener_print(&server->listener, i, shown, sizeof shown));
    if (!server->users && !listener_is_local(&server->listener))
        say_warning("serve: everyone who can reach it sees all locks; " AUTH_FILE
                    " asks for a password");
    return STATUS_OK;
}

/* Collects the names by which browsers may know this server, and takes the file of users. */
static int check_serve(struct call *call)
{
    struct server *server = (struct server *)call;
    const struct arguments *given = &call->arguments;

    call->as_json = true; /* loads the library for documents */
    add_name(server, "localhost");
    if (gethostname(server->own_name, sizeof server->own_name - 1) == 0 && *server->own_name)
        add_name(server, server->own_name);
    for (size_t i = 0; i < given->option_count; i++) {
        const char *name = given->options[i].value;
        if (given->options[i].id != OPTION_ALLOW_HOST)
            continue;
        if (!host_header_is_name(name))
            return command_misused(call, ALLOW_HOST " '%.100s' is not the name of a host", name);
        add_name(server, name);
    }
    return take_users(server);
}

/* Serves until a signal asks for the end. */
static int execute_serve(struct call *call)
{
    struct server *server = (struct server *)call;
    struct inherited inherited;
    int status = command_open(call);

    /* The page is served whether the store is there or not, and says so. */
    call->query.who = NULL;
    call->query.server_wait = 0;
    if (status == STATUS_OK)
        status = command_catch_signals(call, &inherited, on_signal);
    server->locks = (struct lock_watch){.query = &call->query,
                                        .request = command_request(call),
                                        .patience = PATIENCE,
                                        .silent = publish_locks,
                                        .arg = server};
    server->locks.request.idle = store_can(&call->settings.address, STORE_MEMORY);
    if (status == STATUS_OK)
        status = open_listener(server);
    if (status != STATUS_OK)
        return status;
    serve_documents(server);
    return server->told_to_end ? STATUS_OK : STATUS_SYSTEM;
}

static void end_serve(struct call *call)
{
    struct server *server = (struct server *)call;

    if (server->http)
        http_stop(server->http);
    if (server->names) /* check_serve() has run, so the listener is set */
        listener_close(&server->listener);
    free(server->names);
    strbuf_free(&server->about);
    users_free(server->users);
    lock_list_free(&server->locks.list);
}

/* The record of `rlock serve` (cmd/companion.c) does not act by itself: this program does. */
int main(int argc, char **argv)
{
    struct command program = command_serve;

    program.size = sizeof(struct server);
    program.storeless = false;
    program.check = check_serve;
    program.act = execute_serve;
    program.end = end_serve;
    child_fill_standard_descriptors();
    return command_execute(&program, argc, argv);
}

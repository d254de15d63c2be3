#include "relay.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 16384 };

struct chunk {
    struct chunk *next;
    int64_t due; /* ms */
    size_t length, sent;
    char bytes[CHUNK];
};

/* One direction of a connection: from fd[way] to fd[!way]. */
struct half {
    struct fault fault;
    struct chunk *first, **last;
    int64_t busy_until; /* the last byte of a trickle went out, the next one may then */
    bool ended, shut;   /* the source said end of file; it was passed on */
};

struct link {
    bool open;
    int fd[2]; /* UP: the client's, DOWN: the target's */
    struct half half[2];
};

static struct link links[LINKS];
static struct relay_count count;
static struct {
    bool armed, resets;
    int way;
    char text[LINE];
    struct fault faults[2];
} trigger;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void link_close(struct link *link, bool reset)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    for (int way = UP; way <= DOWN; way++) {
        if (reset)
            setsockopt(link->fd[way], SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(link->fd[way]);
        for (struct chunk *c = link->half[way].first, *next; c; c = next) {
            next = c->next;
            free(c);
        }
    }
    link->open = false;
}

void relay_open(int client, const struct sockaddr *target, socklen_t length,
                const struct fault faults[2])
{
    struct link *link = links;
    while (link->open && link < links + LINKS - 1)
        link++;
    if (link->open) {
        close(client);
        return;
    }
    int server = socket(target->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    count.accepted++;
    *link = (struct link){.open = true, .fd = {client, server}};
    for (int way = UP; way <= DOWN; way++) {
        link->half[way].fault = faults[way];
        link->half[way].last = &link->half[way].first;
    }
    /* Connecting may block: to this machine it does not, unless the target's backlog is full. */
    if (server < 0 || connect(server, target, length))
        link_close(link, true);
}

void relay_set(const struct fault faults[2])
{
    for (struct link *link = links; link < links + LINKS; link++)
        for (int way = UP; way <= DOWN; way++)
            link->half[way].fault = faults[way];
}

void relay_reset(void)
{
    for (struct link *link = links; link < links + LINKS; link++)
        if (link->open)
            link_close(link, true);
}

void relay_trigger(int way, const char *text, const struct fault *faults)
{
    trigger.armed = text != NULL;
    trigger.resets = faults == NULL;
    trigger.way = way;
    snprintf(trigger.text, sizeof trigger.text, "%s", text ? text : "");
    if (faults)
        memcpy(trigger.faults, faults, sizeof trigger.faults);
}

struct relay_count relay_count(void)
{
    struct relay_count now = count;
    for (int i = 0; i < LINKS; i++)
        now.open += links[i].open;
    return now;
}

/* Pulls the trigger if this is the chunk; false when the connection has to go. */
static bool trigger_pull(struct link *link, int way, const char *bytes, size_t length)
{
    if (!trigger.armed || trigger.way != way)
        return true;
    if (strcmp(trigger.text, "any") && !memmem(bytes, length, trigger.text, strlen(trigger.text)))
        return true;
    trigger.armed = false;
    for (int i = UP; i <= DOWN; i++)
        link->half[i].fault = trigger.faults[i];
    return !trigger.resets;
}

/* Queues what was read; false when the connection has to go. */
static bool half_take(struct link *link, int way, const char *bytes, size_t length)
{
    struct half *half = &link->half[way];
    struct fault *fault = &half->fault;
    bool cut_here = fault->cut >= 0 && (int64_t)length >= fault->cut;
    size_t keep = cut_here ? (size_t)fault->cut : length;
    if (fault->cut > 0)
        fault->cut -= (int64_t)keep;
    if (!fault->drop && keep > 0) {
        struct chunk *chunk = calloc(1, sizeof *chunk);
        if (!chunk)
            return false;
        memcpy(chunk->bytes, bytes, keep);
        chunk->length = keep;
        chunk->due = now_ms() + fault->delay;
        *half->last = chunk;
        half->last = &chunk->next;
    }
    if (cut_here) {
        fault->hold = true;
        fault->cut = -1;
        return !fault->cut_closes;
    }
    return trigger_pull(link, way, bytes, length);
}

static bool half_read(struct link *link, int way)
{
    char bytes[CHUNK];
    ssize_t got = recv(link->fd[way], bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got > 0)
        return half_take(link, way, bytes, (size_t)got);
    link->half[way].ended = true;
    return true;
}

/* Sends what is due; false when the connection has to go. */
static bool half_write(struct link *link, int way)
{
    struct half *half = &link->half[way];
    int64_t now = now_ms();
    while (half->first && half->first->due <= now && half->busy_until <= now) {
        struct chunk *chunk = half->first;
        size_t size = half->fault.trickle ? 1 : chunk->length - chunk->sent;
        ssize_t sent =
            send(link->fd[!way], chunk->bytes + chunk->sent, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        count.passed[way] += (unsigned long long)sent;
        chunk->sent += (size_t)sent;
        half->busy_until = half->fault.trickle ? now + half->fault.trickle : 0;
        if (chunk->sent < chunk->length)
            continue;
        half->first = chunk->next;
        if (!half->first)
            half->last = &half->first;
        free(chunk);
    }
    if (half->ended && !half->first && !half->shut) {
        half->shut = true;
        shutdown(link->fd[!way], SHUT_WR);
    }
    return !(link->half[UP].shut && link->half[DOWN].shut);
}

/* Returns the events to poll one end for; lowers *wait to the ms until something is due there. */
static int end_events(const struct link *link, int way, int64_t now, int64_t *wait)
{
    const struct half *in = &link->half[way], *out = &link->half[!way];
    int events = in->fault.hold || in->ended ? 0 : POLLIN;
    if (!out->first)
        return events;
    int64_t due = out->first->due > out->busy_until ? out->first->due : out->busy_until;
    if (due <= now)
        return events | POLLOUT;
    if (*wait < 0 || due - now < *wait)
        *wait = due - now;
    return events;
}

int relay_watch(struct pollfd *set)
{
    int64_t wait = -1, now = now_ms();
    for (int i = 0; i < LINKS; i++)
        for (int way = UP; way <= DOWN; way++) {
            int events = links[i].open ? end_events(&links[i], way, now, &wait) : 0;
            set[2 * i + way] =
                (struct pollfd){.fd = events ? links[i].fd[way] : -1, .events = (short)events};
        }
    return (int)wait;
}

void relay_move(const struct pollfd *set)
{
    for (int i = 0; i < LINKS; i++)
        for (int way = UP; way <= DOWN; way++) {
            struct link *link = &links[i];
            const struct pollfd *seen = &set[2 * i + way];
            if (!link->open)
                continue;
            bool readable = seen->events & POLLIN && seen->revents;
            if (readable && !half_read(link, way))
                link_close(link, true);
            else if (!half_write(link, way))
                link_close(link, false);
        }
}

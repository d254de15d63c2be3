#include "store/diagnosis.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/store_kind.h"

void diagnosis_add(struct diagnosis *diagnosis, const char *check, enum level level,
                   const char *advice, const char *fmt, ...)
{
    struct finding *finding = &diagnosis->findings[diagnosis->count];
    va_list list;

    if (diagnosis->count == DIAGNOSIS_MAX)
        abort();
    diagnosis->count++;
    *finding = (struct finding){.check = check, .level = level};
    text_copy(finding->advice, sizeof finding->advice, advice);
    va_start(list, fmt);
    text_vappend(finding->text, sizeof finding->text, fmt, list);
    va_end(list);
    if (level > diagnosis->worst)
        diagnosis->worst = level;
}

void diagnosis_hint(struct diagnosis *diagnosis, enum hint hint)
{
    diagnosis->findings[diagnosis->count - 1].hint = hint;
}

static int by_size(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

void diagnosis_sort_pings(int64_t *pings, size_t count, int64_t *median, int64_t *longest)
{
    qsort(pings, count, sizeof *pings, by_size);
    *median = pings[count / 2];
    *longest = pings[count - 1];
}

const char *level_name(enum level level)
{
    static const char *const names[] = {"fine", "note", "warning", "unfit"};
    return names[level];
}

const char *diagnosis_print_ms(int64_t ns, char out[32])
{
    snprintf(out, 32, "%" PRId64 ".%02" PRId64 " ms", ns / NS_PER_MS, ns % NS_PER_MS / 10000);
    return out;
}

void diagnosis_add_latency(struct diagnosis *diagnosis, const struct server_figures *figures,
                           int64_t connected_ns, int64_t lease)
{
    int64_t timeout = lease / 6;
    bool slow = figures->ping_max_ns > timeout / 2 || figures->ping_median_ns > timeout / 5;
    bool told = connected_ns != UNTOLD;

    diagnosis_add(diagnosis, "latency", slow ? LEVEL_WARNING : LEVEL_FINE, "",
                  "%s, at most %s%s%s%s%s%s", LATENCY_TEXT(figures->ping_median_ns),
                  LATENCY_TEXT(figures->ping_max_ns), told ? "; " : "",
                  told ? LATENCY_TEXT(connected_ns) : "", told ? " to connect" : "",
                  slow ? "; slow for a lease of " : "", slow ? DURATION_TEXT(lease) : "");
    if (slow)
        diagnosis_hint(diagnosis, HINT_LONGER_LEASE);
}

void diagnosis_add_encryption(struct diagnosis *diagnosis, const struct url *url, bool secret)
{
    const char *host = url->host_count ? url->hosts[0].name : NULL;
    bool on_this_host = !host || strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
                        strncmp(host, "127.", 4) == 0;
    char advice[80];

    snprintf(advice, sizeof advice, "%s://, if other people are on that network",
             url->kind->secure);
    if (url->tls)
        diagnosis_add(diagnosis, "encryption", LEVEL_FINE, "", "TLS");
    else if (on_this_host)
        diagnosis_add(diagnosis, "encryption", LEVEL_FINE, "", "none, on this host");
    else
        diagnosis_add(diagnosis, "encryption", secret ? LEVEL_WARNING : LEVEL_NOTE, advice,
                      "none: %slock owners can be read in transit",
                      secret ? "the password and " : "");
}

void diagnosis_add_expiry(struct diagnosis *diagnosis, const char *where,
                          const struct tls_expiry *expiry)
{
    bool late = expiry->spare_s < 0;

    if (expiry->whose)
        diagnosis_add(diagnosis, "certificate", late ? LEVEL_WARNING : LEVEL_FINE,
                      late ? "renew it: from then on no host can connect, and locks are lost" : "",
                      "%s%s ends in %s", where, expiry->whose,
                      expiry->left_s > DURATION_MAX_NS / NS_PER_SEC
                          ? "more than ten years"
                          : DURATION_TEXT(expiry->left_s * NS_PER_SEC));
}

const struct server_figures untold_figures = {.ping_median_ns = UNTOLD,
                                              .ping_max_ns = UNTOLD,
                                              .uptime_s = UNTOLD,
                                              .ahead_ms = INT64_MIN,
                                              .replicas = UNTOLD,
                                              .memory = UNTOLD,
                                              .maxmemory = UNTOLD};

struct checked_server *checkup_add(struct checkup *checkup, const struct url *url)
{
    struct checked_server *server = MEM_APPEND(checkup->servers, checkup->count);

    *server = (struct checked_server){.figures = untold_figures};
    url_print(url, server->name, sizeof server->name);
    return server;
}

void checkup_free(struct checkup *checkup)
{
    free(checkup->servers);
}

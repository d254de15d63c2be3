/* Findings, and what they come to. */
#include "diagnosis.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

void diagnosis_add(struct diagnosis *diagnosis, const char *check, enum level level,
                   const char *advice, const char *fmt, ...)
{
    struct finding *finding = &diagnosis->findings[diagnosis->count];
    va_list list;

    if (diagnosis->count == DIAGNOSIS_MAX)
        abort();
    diagnosis->count++;
    *finding = (struct finding){.check = check, .level = level};
    snprintf(finding->advice, sizeof finding->advice, "%s", advice);
    va_start(list, fmt);
    vsnprintf(finding->text, sizeof finding->text, fmt, list);
    va_end(list);
    if (level > diagnosis->worst)
        diagnosis->worst = level;
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

void diagnosis_of_trial(const struct trial *trial, struct diagnosis *diagnosis)
{
    char acquire[32], renew[32], release[32];

    if (trial->granted)
        diagnosis_add(diagnosis, "lock", LEVEL_FINE, "",
                      "acquired in %s, renewed in %s, released in %s",
                      diagnosis_print_ms(trial->acquire_ns, acquire),
                      diagnosis_print_ms(trial->renew_ns, renew),
                      diagnosis_print_ms(trial->release_ns, release));
    else if (trial->held_by_other)
        diagnosis_add(diagnosis, "lock", LEVEL_FINE, "", "held by another doctor, so locks work");
    else
        diagnosis_add(diagnosis, "lock", LEVEL_UNFIT, "", "none could be had: %s", trial->fault);
}

/* Two URLs may lead to one server by different names. */
static bool find_double(const struct server_facts *facts, size_t count, struct diagnosis *diagnosis)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (!*facts[i].run_id || strcmp(facts[i].run_id, facts[j].run_id) != 0)
                continue;
            diagnosis_add(diagnosis, "quorum", LEVEL_UNFIT, "a server of its own for each URL",
                          "servers %zu and %zu are the same one", j + 1, i + 1);
            return true;
        }
    }
    return false;
}

void diagnosis_of_quorum(const struct server_facts *facts, const struct diagnosis *servers,
                         size_t count, struct diagnosis *diagnosis)
{
    size_t fit = 0, least = count / 2 + 1;

    *diagnosis = (struct diagnosis){0};
    for (size_t i = 0; i < count; i++) {
        fit += servers[i].worst < LEVEL_UNFIT;
        if (servers[i].worst == LEVEL_WARNING || servers[i].worst == LEVEL_UNFIT)
            diagnosis->worst = LEVEL_WARNING;
    }
    if (find_double(facts, count, diagnosis))
        return;
    diagnosis_add(diagnosis, "quorum",
                  fit < least   ? LEVEL_UNFIT
                  : fit < count ? LEVEL_WARNING
                                : LEVEL_FINE,
                  fit < count ? "mend the others" : "",
                  "%zu of %zu servers are fit, %zu are needed", fit, count, least);
}

void diagnosis_of_cluster(const struct diagnosis *servers, size_t count, unsigned slots,
                          unsigned all, struct diagnosis *diagnosis)
{
    size_t unfit = 0;

    *diagnosis = (struct diagnosis){0};
    for (size_t i = 0; i < count; i++) {
        unfit += servers[i].worst == LEVEL_UNFIT;
        if (servers[i].worst == LEVEL_WARNING)
            diagnosis->worst = LEVEL_WARNING;
    }
    if (slots < all)
        diagnosis_add(diagnosis, "cluster", LEVEL_UNFIT, "redis-cli --cluster fix",
                      "%u of %u slots are nobody's: keys there cannot be locked", all - slots, all);
    else if (unfit > 0)
        diagnosis_add(diagnosis, "cluster", LEVEL_UNFIT, "mend the others",
                      "%zu of %zu masters are fit: keys of the others cannot be locked",
                      count - unfit, count);
    else
        diagnosis_add(diagnosis, "cluster", LEVEL_FINE, "", "%zu masters have all slots", count);
}

/* Locks as Prometheus text (format 0.0.4). Names, types and labels are a contract, which
 * rlock-metrics(1) documents. Pure. */
#pragma once

#include "base/strbuf.h"
#include "cli/query.h"

/* The type of the text in HTTP. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Prints the whole text, which ends in "# EOF" and a newline. locks: the result of a survey, each
 * key once; NULL: the store has not answered, and rlock_up is the only sample. memory: the store
 * counts the ends of runs, and lists free locks, too. */
void metrics_render(struct strbuf *out, const struct lock_list *locks, bool memory);

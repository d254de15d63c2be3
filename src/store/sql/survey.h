/* All locks of a prefix, and who waits for them, in one statement. */
#ifndef RLOCK_STORE_SQL_SURVEY_H
#define RLOCK_STORE_SQL_SURVEY_H

#include "store/store.h"

struct sql_reply;
struct sql_text;

/* prefix: NULL for any. */
void sql_survey_query(struct sql_text *text, const struct survey_request *request,
                      const char *prefix);
/* Reports what came of it; false if that makes no sense. */
bool sql_survey_report(const struct survey_request *request, const char *prefix,
                       const struct sql_reply *reply);

#endif

/* Times of day. */
#include "cli/daytime.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

char *daytime_print(int64_t now_ms, int64_t at_ms, bool seconds, char out[DAYTIME_SIZE])
{
    time_t now = now_ms / 1000, at = at_ms / 1000 + (seconds ? 0 : 30);
    struct tm here, there;
    char date[24] = "", time[16];

    if (!localtime_r(&now, &here) || !localtime_r(&at, &there))
        return strcpy(out, "?");
    if (here.tm_year != there.tm_year || here.tm_yday != there.tm_yday)
        strftime(date, sizeof date, "%Y-%m-%d ", &there);
    strftime(time, sizeof time, seconds ? "%H:%M:%S" : "%H:%M", &there);
    snprintf(out, DAYTIME_SIZE, "%s%s", date, time);
    return out;
}

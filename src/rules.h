/* The table of settings: how each is named, where it may be set, what values it takes. */
#ifndef RLOCK_RULES_H
#define RLOCK_RULES_H

#include "settings.h"

struct rule {
    const char *name;     /* in files, and as an option */
    const char *variable; /* of the environment; NULL: none */
    const char *initial;  /* the value where nothing is said; NULL: leave it zero */
    bool secret;          /* the value is not to be shown */
    /* Takes a value: NULL, or what is wrong with it, as "is not …". "room" has RULES_FAULT_SIZE bytes for
     * a message that is no constant. */
    const char *(*take)(struct settings *settings, const char *value, char *room);
};

#define RULES_FAULT_SIZE 160

extern const struct rule rules[SETTING_COUNT];

/* The setting of that name, or 0. */
enum setting rules_find(const char *name);

#endif

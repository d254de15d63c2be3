/* Tests that unmask a driver that does not keep the promises of docs/drivers.md: with several
 * processes of it at once, on a key that no lock uses. A driver that passes may lie all the same,
 * but not in these ways, and not each time. */
#pragma once

/* The key that tests change. It stays. */
#define DRIVER_TRIAL_KEY "rlock-doctor"

struct driver_finding {
    const char *level; /* "fine", "note" or "unfit" */
    char text[300];
    const char *advice;
};

/* Does the test of that name. It takes some seconds at most, if no single answer takes longer. */
void driver_kit_try(const char *driver, const char *rest, const char *test,
                    struct driver_finding *finding);

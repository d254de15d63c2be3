/* An ancestor of this process, and a process that only has its number. */
#include "run/ancestor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

#define YEAR_NS (INT64_C(365) * 86400 * NS_PER_SEC)

static struct identity here(pid_t pid)
{
    char name[256] = "";
    struct identity who = {.pid = pid};

    if (gethostname(name, sizeof name - 1) < 0)
        abort();
    identity_set(who.host, name);
    return who;
}

/* The verdict of a grandchild of "root" about it. */
static bool seen_from_below(const struct identity *root)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(ancestor_is(root, 0));
        _exit(waitpid(grandchild, &status, 0) == grandchild ? WEXITSTATUS(status) : 2);
    }
    return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 1;
}

int main(void)
{
    struct identity parent = here(getppid()), self = here(getpid()), elsewhere = here(getppid());
    pid_t child = fork();

    if (child == 0) {
        pause();
        _exit(0);
    }
    struct identity below = here(child);
    tap_ok(ancestor_is(&parent, 0), "the parent");
    tap_ok(seen_from_below(&self), "the parent's parent");
    tap_ok(!ancestor_is(&parent, 100 * YEAR_NS), "what is younger has its number only");
    tap_ok(!ancestor_is(&self, 0), "this process is none");
    tap_ok(!ancestor_is(&below, 0), "nor is a child");
    identity_set(elsewhere.host, "elsewhere.invalid");
    tap_ok(!ancestor_is(&elsewhere, 0), "nor one of another host");
    tap_ok(!ancestor_is(&(struct identity){.pid = getppid()}, 0),
           "nor of a host that is not known");
    parent.pid = 0;
    tap_ok(!ancestor_is(&parent, 0), "nor one without a number");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return tap_done();
}

#include "run/ancestor.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "lock/own_identity.h"
#include "os/procfs.h"

/* Two clocks may differ by so much, with the kernel's ticks. */
#define SLACK_NS (2 * NS_PER_SEC)

/* Whether a pid of that process is one of this process's pid namespace on this host. */
static bool is_here(const struct identity *who)
{
    struct identity here = {0};

    own_identity_zone(&here);
    if (here.zone[0] && who->zone[0])
        return strcmp(here.zone, who->zone) == 0;
    /* An rlock before 1.1 tells nothing but the name of its host. */
    own_identity_host(&here);
    return here.host[0] && strcmp(here.host, who->host) == 0;
}

/* Finds the ancestor of this process with that pid, which *process becomes. False if it has none,
 * or not all of them could be read. */
static bool find_ancestor(const struct procfs *procfs, pid_t wanted, struct process *process)
{
    for (pid_t pid = getppid(); pid > 0; pid = process->parent) {
        if (procfs_read(procfs, pid, process) != PROCESS_FOUND)
            return false;
        if (pid == wanted)
            return true;
    }
    return false;
}

bool ancestor_is(const struct identity *who, int64_t age)
{
    struct procfs procfs;
    struct process process;

    if (who->pid <= 0 || !is_here(who) || procfs_open(&procfs) < 0)
        return false;
    bool found = procfs_is_usable(&procfs) && find_ancestor(&procfs, (pid_t)who->pid, &process);
    procfs_close(&procfs);
    if (!found)
        return false;
    long ticks = sysconf(_SC_CLK_TCK);
    int64_t born = (int64_t)(process.started / (unsigned long long)ticks) * NS_PER_SEC;
    /* The age is by the store's clock, which may be 1 % faster. */
    return moment_now().ns - born >= age - age / 100 - SLACK_NS;
}

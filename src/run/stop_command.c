#include "run/stop_command.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

bool stop_command_start(struct stop_command *stop, const struct inherited *inherited,
                        const struct cgroup *cgroup, struct moment kill_at)
{
    struct moment now = moment_now();
    int64_t left = moment_until(now, kill_at);

    if (!stop->plan || !stop->plan->stop)
        return false;
    stop->begun = true;
    if (left < NS_PER_MS) {
        run_tell_event(stop->plan->events, RUN_STOP_COMMAND_TOO_LATE);
        return false;
    }
    stop->term_at = moment_plus(now, left / 2);
    stop->kill_at = kill_at;
    char time_left[40];
    snprintf(time_left, sizeof time_left, "RLOCK_STOP_MS=%" PRId64, left / NS_PER_MS);
    char **environment =
        environment_beside(stop->plan->environment, (char *const[]){time_left, NULL});
    run_tell(stop->plan->events, &(struct run_news){.event = RUN_STOP_COMMAND, .duration = left});
    const struct child_plan plan = {.environment = environment,
                                    .start_before = stop->kill_at,
                                    .inherited = inherited,
                                    .cgroup = cgroup,
                                    .number = stop->shown,
                                    .note = stop->note};
    stop->pid = child_start_apart(stop->plan->stop, &plan);
    if (stop->pid < 0) {
        run_tell_errno(stop->plan->events, RUN_STOP_COMMAND_NOT_STARTED);
        stop->pid = 0;
    }
    free(environment);
    return stop->pid > 0;
}

bool stop_command_delays_term(const struct stop_command *stop, struct moment now)
{
    return stop->pid > 0 && !moment_reached(stop->term_at, now);
}

bool stop_command_note_end(struct stop_command *stop, pid_t pid, int status)
{
    if (pid <= 0 || pid != stop->pid)
        return false;
    stop->pid = 0;
    if (stop->shown)
        atomic_store(stop->shown, 0);
    if (status != 0)
        run_tell(stop->plan->events,
                 &(struct run_news){.event = RUN_STOP_COMMAND_FAILED, .number = status});
    return true;
}

void stop_command_kill(const struct stop_command *stop)
{
    if (stop->pid > 0)
        child_signal_group(stop->pid, SIGKILL);
}

bool stop_command_check(struct stop_command *stop, struct moment now)
{
    int status = 0;

    if (stop->pid <= 0)
        return false;
    if (moment_reached(stop->kill_at, now))
        stop_command_kill(stop);
    pid_t ended = child_reap(stop->pid, &status);
    return !stop_command_note_end(stop, ended, status);
}

/* rlock release: a script gives back what it acquired. */
#include "tenure.h"

static const struct option_spec options[] = {TENURE_OPTIONS, SETTINGS_OPTIONS, {0}};

static int release(struct tenure *tenure)
{
    struct answer answer;

    tenure->request.lease = tenure->settings.lease; /* for how long others wait, if it was forgotten */
    query_release(&tenure->query, &tenure->request, &answer);
    if (answer.verdict == VERDICT_GRANTED) {
        say_detail("%.100s: released", tenure->key);
        return STATUS_OK;
    }
    int status = tenure_refused(tenure, &answer);
    if (answer.maybe_done)
        say_warning("%.100s may have been released all the same", tenure->key);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct tenure tenure;
    int status;

    if (tenure_begin(&tenure, command, argc, argv, &status))
        status = release(&tenure);
    tenure_end(&tenure);
    return status;
}

const struct command command_release = {
    .name = "release",
    .summary = "give back a lock that rlock acquire took",
    .usage = {"release [OPTIONS] KEY"},
    .example = "Example:\n"
               "  token=$(rlock acquire --keep $$ deploy) || exit\n"
               "  ./deploy.sh production\n"
               "  rlock release --owner \"$token\" deploy\n",
    .options = options,
    .run = run,
};

/* What findings come to. */
#include "doctor/doctor.h"

void doctor_judge_trial(const struct trial *trial, struct diagnosis *diagnosis)
{
    char acquire[32], renew[32], release[32];

    if (trial->granted && !trial->released)
        diagnosis_add(diagnosis, "lock", LEVEL_UNFIT, "",
                      "acquired in %s, renewed in %s, but it could not be given back: %s",
                      diagnosis_print_ms(trial->acquire_ns, acquire),
                      diagnosis_print_ms(trial->renew_ns, renew), trial->fault);
    else if (trial->granted)
        diagnosis_add(diagnosis, "lock", LEVEL_FINE, "",
                      "acquired in %s, renewed in %s, released in %s",
                      diagnosis_print_ms(trial->acquire_ns, acquire),
                      diagnosis_print_ms(trial->renew_ns, renew),
                      diagnosis_print_ms(trial->release_ns, release));
    else if (trial->held_by_other)
        diagnosis_add(diagnosis, "lock", LEVEL_FINE, "", "held by another doctor: not tried");
    else
        diagnosis_add(diagnosis, "lock", LEVEL_UNFIT, "", "none could be had: %s", trial->fault);
}

bool doctor_may_try(const struct checkup *checkup)
{
    size_t reached = 0;

    for (size_t i = 0; i < checkup->count; i++)
        reached += checkup->servers[i].reached;
    return reached > checkup->count / 2;
}

enum level doctor_verdict(const struct checkup *checkup)
{
    enum level one = checkup->count == 1 ? checkup->servers[0].diagnosis.worst : LEVEL_FINE;

    return one > checkup->whole.worst ? one : checkup->whole.worst;
}

const struct finding *doctor_worst(const struct checkup *checkup)
{
    const struct diagnosis *worst = &checkup->whole;

    if (checkup->whole.worst < LEVEL_UNFIT)
        worst = &checkup->servers[0].diagnosis;
    for (size_t i = 0; i < worst->count; i++)
        if (worst->findings[i].level == LEVEL_UNFIT)
            return &worst->findings[i];
    return NULL;
}

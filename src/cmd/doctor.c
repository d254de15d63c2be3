/* rlock doctor: is this lock store fit to hold locks? */
#include "cmd/commands.h"

#include <string.h>

#include "base/text.h"
#include "cli/screen.h"
#include "cmd/render_doctor.h"
#include "lock/own_identity.h"

enum { OPTION_JSON = OPTION_OTHER };

static const struct option_spec options[] = {
    OPTION(OPTION_JSON, "json", NULL, "an object, see rlock-doctor(1)"),
    SETTING_AS(REPLICAS, "rlock run will be given --replicas N, majority or all"),
    SETTING_AS(GRACE, "rlock run will be given --grace"),
    SETTING_AS(LEASE, "rlock run will be given --lease DUR, at least 1s"),
    SETTINGS_OPTIONS,
    {0}};

/* Returns how fit the store is: several servers are worth what they are together. */
static enum level verdict_of(const struct checkup *checkup)
{
    enum level one = checkup->count == 1 ? checkup->servers[0].diagnosis.worst : LEVEL_FINE;

    return one > checkup->whole.worst ? one : checkup->whole.worst;
}

/* Returns the first finding that makes the store unfit, or NULL. */
static const struct finding *worst_of(const struct checkup *checkup)
{
    const struct diagnosis *worst = &checkup->whole;

    if (checkup->whole.worst < LEVEL_UNFIT) /* then a single server made it unfit (verdict_of()) */
        worst = &checkup->servers[0].diagnosis;
    for (size_t i = 0; i < worst->count; i++)
        if (worst->findings[i].level == LEVEL_UNFIT)
            return &worst->findings[i];
    return NULL;
}

struct doctor {
    struct call call;
    struct checkup checkup;
    bool lacks; /* the system refuses what the examination needs */
};

/* -- a lock, for trial ----------------------------------------------------------------------- */

/* How many ns have passed since then; then is now afterwards. */
static int64_t time_since(struct moment *since)
{
    struct moment now = moment_now();
    int64_t ns = moment_until(*since, now);

    *since = now;
    return ns;
}

static void say_words(const char *said)
{
    if (*said)
        say_detail("doctor: the server said: %s", said);
}

/* Acquires, renews and releases the lock, and adds what was found to the diagnosis. Returns the
 * cause why the lock was not granted, or CAUSE_NONE. */
static enum cause try_lock(struct query *query, const struct acquire_request *request,
                           struct diagnosis *diagnosis)
{
    struct moment since = moment_now();
    const struct renew_request renewal = {.lock = request};
    const struct release_request release = {.lock = request, .end.how = LOCK_UNUSED};
    struct answer answer, end = {.verdict = VERDICT_UNKNOWN};
    int64_t acquire_ns, renew_ns = 0;

    query_ask(query, (struct operation){.verb = VERB_ACQUIRE, .acquire = request}, &answer);
    acquire_ns = time_since(&since);
    enum cause cause = answer.cause;
    bool acquired = answer.verdict == VERDICT_GRANTED;
    if (acquired) {
        query_renew(query, &renewal, &answer);
        renew_ns = time_since(&since);
    }
    say_words(answer.said);
    bool renewed = answer.verdict == VERDICT_GRANTED;
    if (renewed || answer.maybe_done)
        query_release(query, &release, &end);
    if (renewed && end.verdict == VERDICT_GRANTED)
        diagnosis_add(diagnosis, "lock", LEVEL_FINE, "",
                      "acquired in %s, renewed in %s, released in %s", LATENCY_TEXT(acquire_ns),
                      LATENCY_TEXT(renew_ns), LATENCY_TEXT(time_since(&since)));
    else if (renewed)
        diagnosis_add(diagnosis, "lock", LEVEL_UNFIT, "",
                      "acquired in %s, renewed in %s, but it could not be released: %s",
                      LATENCY_TEXT(acquire_ns), LATENCY_TEXT(renew_ns), end.text);
    else if (acquired)
        diagnosis_add(diagnosis, "lock", LEVEL_UNFIT, "",
                      "acquired in %s, but it could not be renewed: %s", LATENCY_TEXT(acquire_ns),
                      answer.verdict == VERDICT_REFUSED ? "the store no longer has it"
                                                        : answer.text);
    else if (cause == CAUSE_HELD)
        diagnosis_add(diagnosis, "lock", LEVEL_FINE, "", "held by another doctor: not tried");
    else
        diagnosis_add(diagnosis, "lock", LEVEL_UNFIT, "", "not acquired: %s", answer.text);
    return cause;
}

/* Tries the lock of all doctors, without --replicas and --grace: the replicas have a finding of
 * their own, and a checkup must not make others wait. */
static void take_trial(struct doctor *doctor)
{
    const char *key = QUERY_TRIAL_KEY;
    struct store_address address = doctor->call.settings.address;
    char owner[OWNER_UUID_SIZE];
    struct diagnosis *diagnosis = &doctor->checkup.whole;
    struct query query ENDED_BY(query_close) = {0};
    char fault[256];

    address.replicas = REPLICAS_NONE;
    address.grace = false;
    own_identity_uuid(owner);
    if (query_open(&query, &address, NULL, fault, sizeof fault)) {
        struct acquire_request request = {.keys = &key,
                                          .key_count = 1,
                                          .owner = owner,
                                          .lease = doctor->call.settings.lease,
                                          .who = ""};
        doctor->lacks |= try_lock(&query, &request, diagnosis) == CAUSE_SYSTEM;
    } else {
        diagnosis_add(diagnosis, "lock", LEVEL_UNFIT, "", "not acquired: %s", fault);
    }
}

/* -- who uses it ------------------------------------------------------------------------------- */

#define VERSIONS_MAX 16

/* The number of holders and waiters with a version of rlock; 0: the row is free. */
struct version_users {
    char version[sizeof((struct identity *)NULL)->version];
    size_t count;
};

/* Adds these parties to the row of the version of their rlock. The last row takes all versions that
 * are too many, under the name of the latest. */
static void count_users(struct version_users users[VERSIONS_MAX], const struct lock_party *parties,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct version_users *one = users;
        while (one < users + VERSIONS_MAX - 1 && one->count &&
               strcmp(one->version, parties[i].who.version) != 0)
            one++;
        strcpy(one->version, parties[i].who.version);
        one->count++;
    }
}

/* Adds findings: which version the store asks for, and which versions hold locks or wait for them,
 * as hosts are upgraded one by one. */
static void tell_versions(struct doctor *doctor)
{
    struct version_users users[VERSIONS_MAX] = {{.count = 0}};
    struct lock_list *list = &doctor->call.list;
    struct answer answer;
    char text[256] = "";

    query_look(&doctor->call.settings.address, &(struct survey_request){0}, list, &answer);
    for (size_t i = 0; i < list->locks.count; i++) {
        const struct lock_view *lock = &list->locks.views[i];
        count_users(users, lock->holders, lock->holder_count);
        count_users(users, lock->waiters, lock->waiter_count);
    }
    if (list->minimum[0])
        diagnosis_add(&doctor->checkup.whole, "minimum", LEVEL_FINE, "",
                      "locks are acquired only by rlock %s or newer", list->minimum);
    for (size_t i = 0; i < VERSIONS_MAX && users[i].count; i++)
        text_append(text, sizeof text, "%s%s (%zu)", i ? ", " : "",
                    users[i].version[0] ? users[i].version : "unknown", users[i].count);
    if (*text)
        diagnosis_add(&doctor->checkup.whole, "rlock", LEVEL_FINE, "",
                      "versions of holders and waiters: %s", text);
}

/* -- the outcome ------------------------------------------------------------------------------- */

static int print_checkup(const struct doctor *doctor)
{
    bool drawn = screen_is_there();
    struct strbuf out = {0};
    struct render_style style = {.color = command_has_color(&doctor->call),
                                 .width = drawn ? screen_window().columns : 0};

    if (doctor->call.as_json)
        render_doctor_json(&out, &doctor->checkup, verdict_of(&doctor->checkup));
    else
        render_doctor(&out, &doctor->checkup, &style);
    return command_print(&out);
}

/* Examines every server of the store, tries a lock if enough of them answer, and prints the
 * findings. The status is that of the worst finding. */
static int examine_store(struct call *call)
{
    struct doctor *doctor = (struct doctor *)call;
    const struct checkup_plan plan = {&call->settings.address, call->settings.lease};
    char fault[256];

    if (!store_kind_of(plan.address)->check(&plan, &doctor->checkup, fault, sizeof fault)) {
        command_error(call, "%s", fault);
        return call->settings.address_status;
    }
    for (size_t i = 0; i < doctor->checkup.count; i++) {
        doctor->lacks |= doctor->checkup.servers[i].cause == CAUSE_SYSTEM;
        say_words(doctor->checkup.servers[i].said);
    }
    /* Enough servers must have been reached to try a lock: most, or of a database's hosts one. */
    size_t reached = 0;
    for (size_t i = 0; i < doctor->checkup.count; i++)
        reached += doctor->checkup.servers[i].reached;
    bool one_will_do = store_kind_of(plan.address)->program;
    if (reached > (one_will_do ? 0 : doctor->checkup.count / 2)) {
        take_trial(doctor);
        tell_versions(doctor);
    }
    enum level level = verdict_of(&doctor->checkup);
    int status = say_verbosity() == SAY_QUIET ? STATUS_OK : print_checkup(doctor);
    const struct finding *worst = level == LEVEL_UNFIT ? worst_of(&doctor->checkup) : NULL;
    if (worst) /* in one line, for users who do not read the table */
        command_error(&doctor->call, "not fit to hold locks: %s: %s", worst->check, worst->text);
    if (status != STATUS_OK)
        return status;
    return level < LEVEL_WARNING    ? STATUS_OK
           : level == LEVEL_WARNING ? STATUS_NO
           : doctor->lacks          ? STATUS_SYSTEM
                                    : STATUS_UNAVAILABLE;
}

static void end(struct call *call)
{
    checkup_free(&((struct doctor *)call)->checkup);
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "is this server fit to hold locks?",
    .usage = {"doctor [OPTIONS]"},
    .example = "Status: 0 if it is fit, 1 with warnings, 69 if it is unfit or cannot be reached,\n"
               "71 if the operating system refuses what the examination needs.\n"
               "\n"
               "Example, a look at the server before something relies on it:\n"
               "  rlock doctor -u redis://locks.example.com\n",
    .options = options,
    .words = WORDS_NONE,
    .size = sizeof(struct doctor),
    .json = OPTION_JSON,
    .act = examine_store,
    .end = end,
};

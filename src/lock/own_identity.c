#include "lock/own_identity.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/decimal.h"
#include "base/hash.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION ""
#endif

/* Returns the value of an environment variable; NULL: it is not set, or empty. */
static const char *variable_text(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Sets the user's name, or, where none is known, the number. The password database comes last: it
 * may be a slow directory service, and even a file takes a tenth of a millisecond. */
static void set_user(struct identity *who)
{
    const char *name = variable_text("USER");

    if (!name)
        name = variable_text("LOGNAME");
    if (!name && geteuid() == 0)
        name = "root";
    if (!name) {
        const struct passwd *entry = getpwuid(geteuid());
        name = entry ? entry->pw_name : NULL;
    }
    if (name)
        identity_set(who->user, name);
    else
        snprintf(who->user, sizeof who->user, "%lu", (unsigned long)geteuid());
}

void own_identity_host(struct identity *who)
{
    char host[256];

    if (gethostname(host, sizeof host) != 0)
        return;
    host[sizeof host - 1] = '\0';
    identity_set(who->host, host);
}

void own_identity_zone(struct identity *who)
{
    char boot[40], space[40] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, boot, sizeof boot - 1);
    const char *digits = space + strlen("pid:[");
    int64_t number;

    if (fd >= 0)
        close(fd);
    /* The link is "pid:[NUMBER]". Reading it costs less than stat(2), which gives the same number,
     * as st_ino. */
    if (got <= 0 || readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0 ||
        strncmp(space, "pid:[", strlen("pid:[")) != 0 || !decimal_take(&digits, INT64_MAX, &number))
        return;
    ino_t inode = (ino_t)number;
    uint64_t hash = hash_add(HASH_START, boot, (size_t)got);
    hash = hash_add(hash, (const char *)&inode, sizeof inode);
    snprintf(who->zone, sizeof who->zone, "%016" PRIx64, hash);
}

void own_identity_fill(struct identity *who, const char *program, pid_t pid)
{
    const char *slash = strrchr(program, '/');

    own_identity_host(who);
    own_identity_zone(who);
    set_user(who);
    snprintf(who->version, sizeof who->version, "%s", PACKAGE_VERSION);
    who->pid = pid;
    identity_set(who->command, slash && slash[1] ? slash + 1 : program);
}

char *own_identity_person(bool anonymous, const char *label)
{
    struct identity who = {0};

    if (!anonymous)
        own_identity_fill(&who, "", 0);
    identity_set(who.label, label);
    return identity_print(&who);
}

void own_identity_client(char *out, size_t size, bool anonymous)
{
    struct identity here = {0};

    own_identity_host(&here);
    for (char *at = here.host; *at; at++)
        if (*at <= ' ' || *at > '~')
            *at = '-';
    if (anonymous || !here.host[0])
        snprintf(out, size, "rlock");
    else
        snprintf(out, size, "rlock:%.64s:%ld", here.host, (long)getpid());
}

void own_identity_label(struct identity *who)
{
    const char *server = variable_text("GITHUB_SERVER_URL");
    const char *repository = variable_text("GITHUB_REPOSITORY");
    const char *run = variable_text("GITHUB_RUN_ID");
    const char *urls[] = {
        variable_text("CI_JOB_URL"), /* GitLab */
        variable_text("JENKINS_URL") ? variable_text("BUILD_URL") : NULL,
        variable_text("BUILDKITE_BUILD_URL"),
        variable_text("CIRCLE_BUILD_URL"),
    };
    char url[IDENTITY_WORD_MAX + 1];

    if (server && repository && run) {
        snprintf(url, sizeof url, "%s/%s/actions/runs/%s", server, repository, run);
        identity_set(who->label, url);
    }
    for (size_t i = 0; i < sizeof urls / sizeof *urls && !who->label[0]; i++)
        if (urls[i])
            identity_set(who->label, urls[i]);
}

void own_identity_uuid(char uuid[OWNER_UUID_SIZE])
{
    uuid_t bits;

    uuid_generate_random(bits);
    uuid_unparse_lower(bits, uuid);
}

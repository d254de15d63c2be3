/* noscall: a command whose kernel lacks some system calls, or whose sandbox refuses them. For the
 * tests.
 *
 *   noscall ERRNO CALL,... COMMAND [ARG...]
 *
 * A seccomp filter answers these calls with that errno, 38 for ENOSYS or 1 for EPERM. A call is a
 * name of the table below, or a number. The status is 71 where filters are not allowed. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 64

static const struct {
    const char *name;
    long number;
} calls[] = {
    {"clone3", SYS_clone3},         {"close_range", SYS_close_range},
    {"faccessat2", SYS_faccessat2}, {"openat2", SYS_openat2},
    {"pidfd_open", SYS_pidfd_open}, {"pidfd_send_signal", SYS_pidfd_send_signal},
    {"prctl", SYS_prctl},           {"rseq", SYS_rseq},
    {"statx", SYS_statx},
};

static long number_of(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(name, calls[i].name) == 0)
            return calls[i].number;
    char *end;
    long number = strtol(name, &end, 10);
    if (end == name || *end)
        fprintf(stderr, "noscall: %s: not a call of the table\n", name), exit(64);
    return number;
}

/* Each call has its comparison, which jumps to the refusal at the end. */
static void refuse(char *names, unsigned error)
{
    struct sock_filter filter[MOST + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned numbers[MOST];
    unsigned short count = 0, length = 1;

    for (char *name = strtok(names, ","); name && count < MOST; name = strtok(NULL, ","))
        numbers[count++] = (unsigned)number_of(name);
    for (unsigned short i = 0; i < count; i++)
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i],
                                                        (unsigned char)(count - i), 0);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    const struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        perror("noscall"), exit(71);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 64;
    refuse(argv[2], (unsigned)atoi(argv[1]));
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}

/* Processes. To simulate a further kind of death or stop, begin at process_end() or signal_send();
 * a further system call belongs into calls.c. */
#include "lives/kernel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "lives/cgroups.h"
#include "lives/disk.h"
#include "lives/files.h"
#include "lives/life.h"
#include "lives/states.h"
#include "lives/tty.h"

#define STACK          (512 * 1024)
#define STRANGERS_MOST 60

struct kernel kernel;

static void *scheduler;
static char *stacks[PROCESSES];
static int stacks_used;

/* switch.S */
void lives_switch(void **save, void *load);
void lives_switch_behind_vfork(void **save, struct registers *vfork, long result);
void lives_begin(void);
void lives_enter(void);
void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd,
                    off_t offset); /* NOLINT(bugprone-reserved-identifier) */

static const char *const kind_names[] = {
    [SUPERVISOR] = "supervisor", [AGENT] = "agent",           [CHILD] = "child",
    [COMMAND] = "command",       [DESCENDANT] = "descendant", [STOPPER] = "--stop",
    [NOTIFIER] = "notifier",     [NOTICE] = "--notify",       [ADMIN] = "admin",
    [SERVER] = "server",         [SHELL] = "shell",           [SCRIPT] = "script",
    [LATCH] = "latch",           [FENCE] = "fence",           [GUARD] = "guard",
    [STRANGER] = "stranger"};

static void print_actor(char *out, size_t size)
{
    const struct proc *process = kernel.current;

    if (!process)
        return;
    if (process->run)
        snprintf(out, size, "%s/%d %d", kind_names[process->kind], run_number(process->run),
                 process->pid);
    else
        snprintf(out, size, "%s %d", kind_names[process->kind], process->pid);
}

void kernel_begin(void)
{
    for (int i = 0; i < kernel.process_count; i++) {
        free(kernel.processes[i]->environment);
        free(kernel.processes[i]->image.bytes);
        free(kernel.processes[i]);
    }
    kernel = (struct kernel){.next_pid = 100};
    stacks_used = 0;
    tty_begin();
    cgroups_begin();
    disk_begin();
    world_actor = print_actor;
}

/* -- processes --------------------------------------------------------------------------------- */

bool process_exists(const struct proc *process)
{
    return process->life < ZOMBIE;
}

bool process_can_run(const struct proc *process)
{
    return process->life == ALIVE && !process->stopped && !process->frozen;
}

struct proc *process_find(int pid)
{
    for (int i = 0; i < kernel.process_count; i++)
        if (kernel.processes[i]->pid == pid && kernel.processes[i]->life != REAPED)
            return kernel.processes[i];
    return NULL;
}

#define TICK (10 * MS) /* of the times that /proc shows */

/* A number is not given to a process while it is that of a group or a session, nor twice in a tick:
 * "a pid with that time is unique" (os/procfs.h). */
static bool number_is_used(int number)
{
    for (int i = 0; i < kernel.process_count; i++) {
        const struct proc *process = kernel.processes[i];
        bool one_of_its =
            process->pid == number || process->group == number || process->session == number;
        if ((one_of_its && process->life != REAPED) ||
            (process->pid == number && process->started == (uint64_t)(world.now / TICK)))
            return true;
    }
    return false;
}

static int take_number(void)
{
    while (number_is_used(kernel.next_pid))
        kernel.next_pid++;
    return kernel.next_pid++;
}

struct proc *process_new(enum kind kind, int parent, struct run *run)
{
    struct proc *process = calloc(1, sizeof *process);

    if (kernel.process_count == PROCESSES) {
        fail("more than %d processes", PROCESSES);
        free(kernel.processes[--kernel.process_count]);
    }
    kernel.processes[kernel.process_count++] = process;
    *process = (struct proc){
        .pid = take_number(), .parent = parent, .kind = kind, .run = run, .name = "rlock"};
    process->group = process->session = process->pid;
    process->born = world.now;
    process->started = (uint64_t)(world.now / TICK);
    return process;
}

static char *take_stack(void)
{
    if (!stacks[stacks_used])
        stacks[stacks_used] = __real_mmap64(NULL, STACK, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return stacks[stacks_used++];
}

/* How late a process continues: by the load of its machine. */
static int64_t choose_latency(void)
{
    int64_t of_1000 = chance_below(1000);

    switch (kernel.load) {
    case 0: return chance_below(200 * US);
    case 1: return chance_below(of_1000 < 950 ? 300 * US : 10 * MS);
    case 2: return chance_below(of_1000 < 900 ? 500 * US : of_1000 < 990 ? 20 * MS : 60 * MS);
    default: return chance_below(of_1000 < 700 ? 2 * MS : of_1000 < 980 ? 30 * MS : 90 * MS);
    }
}

static void make_ready(struct proc *process)
{
    process->wait = WAIT_TURN;
    process->ready_since = world.now;
    process->turn = world.now + choose_latency();
}

void process_start(struct proc *process, int (*work)(const void *arg), const void *arg)
{
    void **stack = (void **)(void *)(take_stack() + STACK - 64);

    process->is_coroutine = true;
    process->stack_end = (char *)stack;
    process->work = work;
    process->arg = arg;
    /* lives_switch() takes six registers and an address to go to, with the stack aligned there. */
    *--stack = NULL;
    *--stack = NULL;
    *--stack = (void *)(uintptr_t)lives_begin;
    for (int i = 0; i < 6; i++)
        *--stack = NULL;
    process->stack_pointer = stack;
    make_ready(process);
}

static void keep_image(struct proc *process, const char *from)
{
    struct image *image = &process->image;

    image->size = (size_t)(process->stack_end - from);
    image->bytes = memcpy(malloc(image->size), from, image->size);
}

/* fork(2) copies the stack: the child, which runs now, uses the place of its parent's. */
void kernel_share_stack(struct proc *child)
{
    struct proc *parent = child->vfork_parent;

    keep_image(parent, (const char *)child->vfork.saved[6]);
    child->stack_end = parent->stack_end;
}

/* Gives the stack to a process that is to run, if another one has it. */
static void take_stack_back(struct proc *process)
{
    if (!process->image.bytes)
        return;
    for (int i = 0; i < kernel.process_count; i++) {
        struct proc *other = kernel.processes[i];
        if (other != process && other->is_coroutine && other->stack_end == process->stack_end &&
            !other->image.bytes && other->life < EXITING)
            keep_image(other, other->stack_pointer);
    }
    memcpy(process->stack_end - process->image.size, process->image.bytes, process->image.size);
    free(process->image.bytes);
    process->image.bytes = NULL;
}

/* The first function of a coroutine. */
void lives_enter(void)
{
    struct proc *process = kernel.current;

    process_end(process, W_EXITCODE(process->work(process->arg) & 255, 0));
}

/* The current process is gone, or has become an actor: it has no stack any more. */
__attribute__((noreturn)) static void leave(void)
{
    void *nowhere;

    lives_switch(&nowhere, scheduler);
    abort();
}

/* -- death ------------------------------------------------------------------------------------- */

static void notify_parent(const struct proc *child)
{
    struct proc *parent = process_find(child->parent);

    if (!parent || !process_exists(parent))
        return;
    if (parent->is_coroutine)
        parent->pending |= signal_bit(SIGCHLD);
    else if (parent->acts)
        world_at(world.now + choose_latency(), parent->acts, parent);
}

/* A parent continues when the child of its vfork() executes or ends; of its spawn_start(), then at
 * the latest. */
static void end_vfork(struct proc *child)
{
    struct proc *parent = child->vfork_parent;

    child->vfork_parent = NULL;
    if (child->shares) {
        *child->shares = 0;
        child->shares = NULL;
        if (process_exists(parent) && parent->wait == WAIT_SPAWN)
            make_ready(parent);
    } else if (parent && process_exists(parent)) {
        parent->vforked = child;
        make_ready(parent);
    }
}

/* The nearest ancestor that adopts orphans; NULL: process 1. */
static struct proc *find_reaper(const struct proc *process)
{
    struct proc *ancestor = process_find(process->parent);

    while (ancestor && !(ancestor->subreaper && process_exists(ancestor)))
        ancestor = process_find(ancestor->parent);
    return ancestor;
}

/* Process 1 reaps at once. */
static void note_end(struct proc *process)
{
    if (process_find(process->parent))
        notify_parent(process);
    else
        process_reap(process);
}

/* Whether the group, without that process, has no member whose parent is outside of it and in its
 * session, and could continue it (setpgid(2)). */
static bool is_orphaned(int group, const struct proc *without)
{
    for (int i = 0; i < kernel.process_count; i++) {
        const struct proc *member = kernel.processes[i], *parent;
        if (member->group != group || member == without || !process_exists(member))
            continue;
        parent = process_find(member->parent);
        if (parent && parent->group != group && parent->session == member->session)
            return false;
    }
    return true;
}

bool group_is_orphaned(int group)
{
    return is_orphaned(group, NULL);
}

static bool has_stopped(int group)
{
    for (int i = 0; i < kernel.process_count; i++)
        if (kernel.processes[i]->group == group && process_exists(kernel.processes[i]) &&
            kernel.processes[i]->stopped)
            return true;
    return false;
}

void group_signal(int group, int signo)
{
    for (int i = 0; i < kernel.process_count; i++)
        if (kernel.processes[i]->group == group && kernel.processes[i]->life != REAPED)
            signal_send(kernel.processes[i], signo);
}

void group_signal_by_kernel(int group, int signo)
{
    bool outside = kernel.from_outside;

    kernel.from_outside = true;
    group_signal(group, signo);
    kernel.from_outside = outside;
}

/* Because a process ends, or the parent of one does, a group may become an orphan: if so, and some
 * of it is stopped, it gets HUP and CONT. */
static void note_orphaned(const struct proc *member, const struct proc *parent,
                          const struct proc *without)
{
    if (!parent || parent->group == member->group || parent->session != member->session ||
        !is_orphaned(member->group, without) || !has_stopped(member->group))
        return;
    group_signal_by_kernel(member->group, SIGHUP);
    group_signal_by_kernel(member->group, SIGCONT);
}

static void leave_children(const struct proc *process)
{
    const struct proc *reaper = find_reaper(process);

    for (int i = 0; i < kernel.process_count; i++) {
        struct proc *child = kernel.processes[i];
        if (child->parent != process->pid || child->life == REAPED || child == process)
            continue;
        child->parent = reaper ? reaper->pid : 1;
        if (child->death_signal && child == kernel.current)
            child->doomed = true;
        else if (child->death_signal)
            signal_send(child, child->death_signal);
        if (child->life == ZOMBIE)
            note_end(child);
        note_orphaned(child, process, NULL);
    }
}

static void become_zombie(struct proc *process)
{
    process->life = ZOMBIE;
    process->stopped = false;
    end_vfork(process);
    leave_children(process);
    note_orphaned(process, process_find(process->parent), process);
    life_on_end(process);
    note_end(process);
}

static void become_zombie_late(void *process)
{
    become_zombie(process);
}

/* exit(2) closes the files first, and takes its time before the parent is told. */
void process_end(struct proc *process, int status)
{
    if (process->life >= EXITING)
        return;
    trace("%s %d ends with 0x%x", kind_names[process->kind], process->pid, (unsigned)status);
    process->status = status;
    process->timer++;
    files_close_all(process);
    process->life = EXITING;
    process->inside = NULL;
    tty_on_end(process);
    if (process->is_coroutine && one_in(2))
        world_at(world.now + chance_below(one_in(4) ? 5 * MS : 60 * US), become_zombie_late,
                 process);
    else
        become_zombie(process);
    if (process == kernel.current)
        leave();
}

/* -- actors ------------------------------------------------------------------------------------ */

struct timed {
    struct proc *process;
    unsigned timer;
};

static struct timed *timed_new(struct proc *process)
{
    struct timed *timed = malloc(sizeof *timed);
    *timed = (struct timed){process, ++process->timer};
    return timed;
}

static void end_if_possible(struct proc *process)
{
    if (process->stopped || process->frozen)
        process->is_due = true;
    else if (process->life == ALIVE)
        process_end(process, process->status);
}

static void on_actor_timer(void *arg)
{
    struct timed timed = *(struct timed *)arg;

    free(arg);
    if (timed.timer == timed.process->timer)
        end_if_possible(timed.process);
}

static void reuse_number(void *arg);

void process_reap(struct proc *process)
{
    process->life = REAPED;
    if (kernel.strangers < STRANGERS_MOST && chance_below(100) < kernel.reuses_of_100)
        world_at(world.now + TICK + chance_below(one_in(2) ? 100 * MS : 5 * SEC), reuse_number,
                 process);
}

/* Later calls replace earlier ones. */
static void end_actor_at(struct proc *process, int64_t when)
{
    process->is_due = false;
    world_at(when, on_actor_timer, timed_new(process));
}

/* The next process gets it, or a stranger at once. */
static void reuse_number(void *arg)
{
    const struct proc *former = arg;

    if (number_is_used(former->pid))
        return;
    kernel.next_pid = former->pid;
    if (one_in(3))
        return;
    struct proc *stranger = process_new(STRANGER, 1, NULL);
    strcpy(stranger->name, one_in(2) ? "stranger" : former->name);
    kernel.strangers++;
    trace("a stranger has the number %d", stranger->pid);
    end_actor_at(stranger, world.now + chance_below(one_in(2) ? 100 * MS : 20 * SEC));
}

void process_inherit_environment(struct proc *child, const struct proc *parent)
{
    if (!parent->environment)
        return;
    child->environment_size = parent->environment_size;
    child->environment =
        memcpy(malloc(parent->environment_size), parent->environment, parent->environment_size);
}

static void bear_child(void *arg)
{
    struct proc *process = arg;
    const struct program *program = &process->program;

    if (process->life != ALIVE)
        return;
    if (process->stopped || process->frozen) {
        world_at(world.now + 10 * MS, bear_child, process);
        return;
    }
    struct proc *child = process_new(DESCENDANT, process->pid, process->run);
    strcpy(child->name, "descendant");
    if (program->child == CHILD_IN_GROUP) {
        child->group = process->group;
        child->session = process->session;
    }
    child->errand = process->errand;
    child->hidden = kernel.proc == PROC_HIDES && one_in(2);
    child->cgroup = process->cgroup;
    process_inherit_environment(child, process);
    child->program =
        (struct program){.on_term = program->child_ignores_term ? IGNORES_TERM : DIES_OF_TERM};
    end_actor_at(child, world.now + program->child_runs);
    trace("command %d has a child %d", process->pid, child->pid);
}

/* The program reads what a user types: in the background it stops, or gets an error, and ends. */
static void read_terminal(void *arg)
{
    struct proc *process = arg;
    const struct tty *tty = tty_of(process);

    if (process->life != ALIVE || !tty)
        return;
    if (process->stopped || process->frozen) {
        world_at(world.now + 10 * MS, read_terminal, process);
        return;
    }
    switch (tty_use(process, tty, SIGTTIN)) {
    case 0: return;
    case EINTR: world_at(world.now + MS, read_terminal, process); return;
    default: process->status = W_EXITCODE(1, 0); end_actor_at(process, world.now);
    }
}

static void keep_environment(struct proc *process, char *const *environment)
{
    size_t size = 0;

    for (char *const *entry = environment; *entry; entry++)
        size += strlen(*entry) + 1;
    free(process->environment);
    process->environment = malloc(size + 1);
    process->environment_size = 0;
    for (char *const *entry = environment; *entry; entry++) {
        strcpy(process->environment + process->environment_size, *entry);
        process->environment_size += strlen(*entry) + 1;
    }
}

void process_execute(char *const *argv, char *const *environment)
{
    struct proc *process = kernel.current;

    snprintf(process->name, sizeof process->name, "%s", argv[0]);
    files_close_all(process);
    keep_environment(process, environment);
    life_on_execute(process, argv, environment);
    end_vfork(process);
    if (!life_begin_within(process, argv)) {
        process->is_coroutine = false;
        process->hidden = kernel.proc == PROC_HIDES && one_in(3);
        process->program = life_program(process, argv);
        process->status = W_EXITCODE(process->program.status, 0);
        process->finishes = world.now + process->program.runs;
        end_actor_at(process, process->finishes);
        if (process->program.reads_at && process->program.reads_at != NEVER)
            world_at(world.now + process->program.reads_at, read_terminal, process);
        if (process->program.child != NO_CHILD)
            world_at(world.now + process->program.child_at, bear_child, process);
    }
    leave();
}

void process_finish(int status)
{
    struct proc *process = kernel.current;

    process->is_coroutine = false;
    process->status = status;
    end_vfork(process);
    end_actor_at(process, process->finishes);
    leave();
}

/* -- signals ----------------------------------------------------------------------------------- */

#define STOPS (signal_bit(SIGTSTP) | signal_bit(SIGTTIN) | signal_bit(SIGTTOU))
#define HARMLESS                                                                                   \
    (signal_bit(SIGCONT) | signal_bit(SIGCHLD) | signal_bit(SIGWINCH) | signal_bit(SIGURG))

static void stop(struct proc *process, int signo)
{
    process->stopped = process->stop_untold = true;
    process->continue_untold = false;
    process->stop_signal = signo;
    notify_parent(process);
    if (process->vfork_parent && !process->shares)
        end_vfork(process);
}

/* Returns the next signal that the process has to act on, which is not pending any more; 0: none.
 */
static int next_signal(struct proc *process)
{
    uint64_t signals = process->pending & ~process->blocked;
    int signo = signals ? __builtin_ctzll(signals) : 0;

    process->pending &= ~signal_bit(signo);
    return signo;
}

static bool stops(const struct proc *process, int signo)
{
    return (STOPS & signal_bit(signo)) && !group_is_orphaned(process->group);
}

/* An actor has no handler but that of its program for TERM and INT. */
static void act(struct proc *process, int signo)
{
    const struct program *program = &process->program;
    bool asks = signo == SIGTERM || signo == SIGINT;

    if (process->acts) {
        process->caught |= signal_bit(signo);
        world_at(world.now + choose_latency(), process->acts, process);
    } else if (asks && program->on_term == CLEANS_UP) {
        process->status = W_EXITCODE(143, 0);
        end_actor_at(process, world.now + program->cleans);
    } else if (stops(process, signo)) {
        stop(process, signo);
    } else if (!((STOPS | HARMLESS) & signal_bit(signo)) &&
               !(asks && program->on_term == IGNORES_TERM)) {
        process->status = signo;
        process->timer++;
        process_end(process, process->status);
    }
}

static void act_on_all(void *arg)
{
    struct proc *process = arg;
    int signo;

    while (process_can_run(process) && (signo = next_signal(process)) != 0)
        act(process, signo);
}

void signal_act(void)
{
    struct proc *process = kernel.current;
    int signo;

    while ((signo = next_signal(process)) != 0)
        if (stops(process, signo))
            kernel_stop(signo);
        else if (!((STOPS | HARMLESS) & signal_bit(signo)))
            process_end(process, signo);
}

/* Acts on what has come while it could not run. */
static void catch_up(struct proc *process)
{
    if (process->is_coroutine)
        return;
    if (process->is_due)
        end_actor_at(process, world.now + chance_below(MS));
    world_at(world.now + chance_below(MS), act_on_all, process);
}

static void go_on(struct proc *process)
{
    process->stopped = process->stop_untold = false;
    process->calls_awake = 0;
    process->continue_untold = true;
    notify_parent(process);
    if (process->is_coroutine && process->turn < world.now)
        process->turn = world.now + choose_latency();
    if (process->wait == WAIT_SIGNAL || (process->wait == WAIT_POLL && kernel.interrupts_of_1000)) {
        process->interrupted = true;
        make_ready(process);
    }
    catch_up(process);
}

static void die_of_kill(void *process)
{
    process_end(process, SIGKILL);
}

/* A KILL may take its time: the process is in the kernel, or on a processor that others have. */
static void kill_process(struct proc *process)
{
    if (!kernel.kill_takes || one_in(4)) {
        process_end(process, SIGKILL);
        return;
    }
    process->life = DYING;
    world_at(world.now + chance_below(one_in(3) ? kernel.kill_takes : 2 * MS), die_of_kill,
             process);
    if (process == kernel.current)
        kernel_yield();
}

static bool is_rlock(const struct proc *process)
{
    return process && (process->kind == SUPERVISOR || process->kind == AGENT);
}

/* A coroutine that waits is woken by what it has to act on. */
static void wake(struct proc *process)
{
    bool waits =
        process->wait == WAIT_POLL || process->wait == WAIT_SLEEP || process->wait == WAIT_SIGNAL;

    if (waits && process != kernel.current && (process->pending & ~process->blocked & ~HARMLESS))
        make_ready(process);
}

void signal_send(struct proc *process, int signo)
{
    if (signo == 0 || process->life >= ZOMBIE)
        return;
    life_on_signal(process, signo);
    process->ended_by_rlock |= is_rlock(kernel.current) && process != kernel.current &&
                               !kernel.from_outside && !((STOPS | HARMLESS) & signal_bit(signo));
    if (process->life != ALIVE)
        return;
    if (signo == SIGKILL) {
        kill_process(process);
        return;
    }
    if (signo == SIGSTOP || (STOPS & signal_bit(signo)))
        process->pending &= ~signal_bit(SIGCONT);
    if (signo == SIGSTOP) {
        if (!process->stopped)
            stop(process, signo);
        return;
    }
    if (signo == SIGCONT) {
        process->pending &= ~STOPS;
        if (process->stopped)
            go_on(process);
    }
    process->pending |= signal_bit(signo);
    if (process->is_coroutine)
        wake(process);
    else
        act_on_all(process);
}

void process_freeze(struct proc *process, int64_t ns)
{
    process->frozen = true;
    process->frozen_for += ns;
}

void process_thaw(struct proc *process)
{
    process->frozen = false;
    process->calls_awake = 0;
    process->turn = world.now + chance_below(5 * MS);
    catch_up(process);
}

/* -- taking turns ------------------------------------------------------------------------------ */

void kernel_yield(void)
{
    struct proc *process = kernel.current;
    int saved = errno;

    kernel.switches++;
    lives_switch(&process->stack_pointer, scheduler);
    signal_act();
    errno = saved;
}

bool kernel_wait(enum wait wait, int64_t until)
{
    struct proc *process = kernel.current;

    process->interrupted = chance_below(1000) < kernel.interrupts_of_1000;
    process->wait = wait;
    process->until = until;
    if (process->interrupted)
        process->until =
            world.now + chance_below(until < world.now + SEC ? until - world.now : SEC);
    process->latency = choose_latency();
    process->ready_since = NEVER;
    kernel_yield();
    return !process->interrupted;
}

void kernel_stop(int signo)
{
    struct proc *process = kernel.current;

    trace("stops itself");
    stop(process, signo);
    make_ready(process);
    kernel_yield();
}

void kernel_call(void)
{
    struct proc *process = kernel.current;
    int saved = errno;

    if (!process || !process->is_coroutine)
        return;
    kernel.calls++;
    process->calls_awake++;
    process->called[process->calls++ % CALLS_KEPT] = world.now;
    world.now += 500 + chance_below(2500);
    life_on_call(process);
    if (process->doomed)
        signal_send(process, process->death_signal);
    if (!process_can_run(process) || one_in(40)) {
        make_ready(process);
        kernel_yield();
    }
    errno = saved;
}

/* Since when it need not wait any more; NEVER: not yet. */
static void note_ready(struct proc *process, int64_t since)
{
    if (process->ready_since == NEVER)
        process->ready_since = since < world.now ? since : world.now;
}

static int64_t when_polled(struct proc *process)
{
    int64_t due = process->until;
    bool ready = false;

    for (unsigned i = 0; i < process->polled_count && !ready; i++) {
        int64_t timer = file_due(process, process->polled[i].fd);
        due = timer < due ? timer : due;
        ready = file_events(process, &process->polled[i]) != 0;
    }
    if (!ready)
        return due;
    note_ready(process, due);
    return process->ready_since;
}

static int64_t when_signalled(struct proc *process)
{
    if (!(process->pending & process->awaited))
        return process->until;
    note_ready(process, world.now);
    return process->ready_since;
}

/* When the process continues; NEVER: not yet. */
static int64_t when_it_goes_on(struct proc *process)
{
    int64_t reason = NEVER;

    switch (process->wait) {
    case WAIT_TURN: return process->turn;
    case WAIT_VFORK: return NEVER;
    case WAIT_SPAWN:
    case WAIT_SLEEP: reason = process->until; break;
    case WAIT_SIGNAL: reason = when_signalled(process); break;
    case WAIT_POLL: reason = when_polled(process); break;
    }
    return reason == NEVER ? NEVER : reason + process->latency;
}

static void run_process(struct proc *process)
{
    struct proc *child = process->vforked;

    kernel.current = process;
    kernel.from_outside = false;
    process->vforked = NULL;
    take_stack_back(process);
    if (child)
        lives_switch_behind_vfork(&scheduler, &child->vfork, child->pid);
    else
        lives_switch(&scheduler, process->stack_pointer);
    kernel.current = NULL;
}

static struct proc *find_next(int64_t *when)
{
    struct proc *next = NULL;

    *when = NEVER;
    for (int i = 0; i < kernel.process_count; i++) {
        struct proc *process = kernel.processes[i];
        if (!process->is_coroutine || !process_can_run(process))
            continue;
        int64_t turn = when_it_goes_on(process);
        if (turn < *when) {
            *when = turn;
            next = process;
        }
    }
    return next;
}

void kernel_run(int64_t until)
{
    while (!world.over) {
        int64_t turn, event = world_next();
        struct proc *next = find_next(&turn);
        if ((event < turn ? event : turn) > until || (event == NEVER && turn == NEVER))
            return;
        if (event <= turn) {
            world_step();
        } else {
            world.now = turn > world.now ? turn : world.now;
            run_process(next);
            states_note(next);
        }
        life_check();
    }
}

#include "run/descendants.h"

/* The first look comes after so long, as a command that ends at once needs none; the pause between
 * looks doubles up to MOST_NS. */
#define FIRST_NS (50 * NS_PER_MS)
#define MOST_NS  (1 * NS_PER_SEC)
/* Looking may take 1/SHARE of a processor's time: where the kernel does not list the children of a
 * process, all processes have to be looked at. The time that this process waits for a processor, on
 * a busy machine, does not count: what is not noted when rlock is killed runs on. */
#define SHARE 500

/* Returns how many ns of a processor this process has used. */
static int64_t processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* Arms the timer for a look "pause" ns after the last one, or later where looks take long. */
static void arm_look(struct descendants *descendants, int64_t pause)
{
    int64_t least = descendants->least;

    loop_arm(descendants->loop, &descendants->timer,
             moment_plus(descendants->looked, pause > least ? pause : least));
}

/* The timer: notes the processes of the tree as they are now, and arms the next look. */
static void look_for_descendants(struct loop_timer *timer)
{
    struct descendants *descendants = timer->owner;
    struct tree *tree = descendants->tree;
    /* One look may miss a process, but hardly two in a row, so the one before this is kept. */
    size_t other = 1 - descendants->latest;
    struct process root;
    int64_t used = processor_time();

    descendants->looked = moment_now();
    if (procfs_is_usable(tree->procfs) && !cgroup_exists(tree->cgroup)) {
        /* A process that is older than the supervisor is not of the tree, whatever its environment
         * says. */
        if (tree->since == 0 && procfs_read(tree->procfs, tree->root, &root) == PROCESS_FOUND)
            tree->since = root.started;
        if (tree_list(tree, &descendants->noted[other])) /* if not, the next look replaces it */
            descendants->latest = other;
        descendants->least = SHARE * (processor_time() - used);
        arm_look(descendants, descendants->pause);
        descendants->pause = descendants->pause < MOST_NS / 2 ? 2 * descendants->pause : MOST_NS;
    }
}

void descendants_init(struct descendants *descendants, struct loop *loop, struct tree *tree)
{
    *descendants = (struct descendants){.loop = loop, .tree = tree};
    descendants->timer = (struct loop_timer){.fire = look_for_descendants, .owner = descendants};
    tree->noted = descendants->noted;
    tree->noted_count = sizeof descendants->noted / sizeof *descendants->noted;
}

void descendants_watch(struct descendants *descendants)
{
    descendants->looked = moment_now();
    descendants->pause = FIRST_NS;
    arm_look(descendants, descendants->pause);
}

void descendants_hurry(struct descendants *descendants)
{
    if (!descendants->timer.armed)
        return;
    descendants->pause = FIRST_NS;
    arm_look(descendants, descendants->pause);
}

void descendants_stop(struct descendants *descendants)
{
    loop_disarm(descendants->loop, &descendants->timer);
}

void descendants_free(struct descendants *descendants)
{
    for (size_t i = 0; i < sizeof descendants->noted / sizeof *descendants->noted; i++)
        process_list_free(&descendants->noted[i]);
}

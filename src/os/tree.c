/* Start reading at tree_signal(). belongs_to_tree() says which processes are of the tree. */
#include "os/tree.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/file.h"
#include "os/kernel.h"

/* A KILL is repeated until two passes find the same processes, as those that fork meanwhile are
 * faster than one pass; but not for ever. */
#define MOST_PASSES 10
/* Before the first pass, the root's children are killed until none is left, so often at most; and
 * so often the latest process. */
#define MOST_BURSTS 100
/* How many of the processes that are born during a look are looked at as well. */
#define MOST_BIRTHS 4096
/* How deep below one process the children of others are looked for. */
#define MOST_DEPTH 1000
/* A tree that grows while it is listed has an end all the same. */
#define MOST_DESCENDANTS 65536

/* The finding of a search about a process, which stands in its "note". */
enum membership { MEMBERSHIP_UNKNOWN, MEMBER, NO_MEMBER };

/* A search for the processes of a tree, and the marks by which they are known. */
struct search {
    const struct tree *tree;
    const struct process_list *all; /* the processes that there are; their notes are the search's */
    bool by_descent;                /* the root's descendants are the tree; false: by other marks */
    bool incomplete;                /* a process could not be looked at */
    pid_t group, session;           /* of the supervisor, and so of its caller */
    char mark[TREE_OWNER_SIZE + 16]; /* the owner's word in an environment */
};

/* -- what belongs to it ---------------------------------------------------------------------- */

/* Whether the process was started under the tree's owner, or under one that nests in it, as its
 * environment tells: RLOCK_OWNER=OWNER, or OWNER.…; "incomplete" if that cannot be read. */
static bool has_mark(struct search *search, pid_t pid)
{
    char text[4096];
    ssize_t got = 0;
    size_t matched = 0;   /* bytes of the mark that the present entry begins with */
    bool differs = false; /* the present entry does not begin with the mark */
    bool found = false;
    int fd = procfs_open_file(search->tree->procfs, pid, "environ");

    if (fd < 0) {
        search->incomplete |= process_look_of(errno) == PROCESS_UNSEEN;
        return false;
    }
    while (!found && (got = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < got && !found; i++) {
            found = !differs && !search->mark[matched] && (text[i] == '\0' || text[i] == '.');
            differs = differs || text[i] != search->mark[matched];
            matched = text[i] == '\0' ? 0 : matched + !differs;
            differs = differs && text[i] != '\0';
        }
    }
    search->incomplete |= got < 0 && process_look_of(errno) == PROCESS_UNSEEN;
    close(fd);
    return found;
}

/* Whether the process was noted as one of the tree before: it stays one even if it has left its
 * group since. */
static bool was_noted(const struct tree *tree, const struct process *process)
{
    for (size_t i = 0; i < tree->noted_count; i++)
        if (process_list_has(&tree->noted[i], process))
            return true;
    return false;
}

/* Whether the process is of the tree by its session. A process is in a session because it was born
 * in it, so all that are in a session of a noted process are of the tree, but for this process's
 * own session. The noted processes know each session (run/descendants.c): whoever was born in it
 * since has an ancestor there that they have seen. */
static bool is_in_noted_session(const struct search *search, const struct process *process)
{
    const struct tree *tree = search->tree;
    /* A session's number is used again only when the session is empty, and then for its leader: one
     * that was not noted leads a later session. */
    const struct process *leader = process->pid == process->session
                                       ? process /* which may have been born since */
                                       : process_list_find(search->all, process->session);

    if (process->session == search->session || (leader && !was_noted(tree, leader)))
        return false;
    for (size_t list = 0; list < tree->noted_count; list++)
        for (size_t i = 0; i < tree->noted[list].count; i++)
            if (tree->noted[list].all[i].session == process->session)
                return true;
    return false;
}

/* Whether the process is of the tree by itself, not through its ancestors. */
static bool is_topmost(struct search *search, const struct process *process)
{
    const struct tree *tree = search->tree;

    if (search->by_descent)
        return process->parent == tree->root;
    /* A group's number may have been given anew, but hardly to a group of this session. */
    return (tree->group > 0 && process->group == tree->group &&
            process->session == search->session) ||
           was_noted(tree, process) || is_in_noted_session(search, process) ||
           (process->started >= tree->since && has_mark(search, process->pid));
}

/* Whether a child of the root, an orphan that it has got, was left behind by processes that rlock's
 * caller had started before, as far as can be seen: it is in the process group or session of one of
 * them, or in the supervisor's group, while the command and its processes are in others. */
static bool was_left_by_callers(const struct search *search, const struct process *process)
{
    const struct process_list *callers = search->tree->callers;
    /* If a caller's process has ended, and this one has its number by now, the group and session of
     * that number are this one's own: the kernel does not give out a number that either still
     * has. */
    bool has_old_number = process->started && process_list_find(callers, process->pid);
    pid_t own = has_old_number ? process->pid : 0;

    for (size_t i = 0; i < callers->count; i++) {
        const struct process *one = &callers->all[i];
        if ((process->group == one->group && process->group != own) ||
            (process->session == one->session && one->session != search->session &&
             process->session != own))
            return true;
    }
    return process->group == search->group;
}

/* Whether the process is not the command's but of rlock's caller: one that this had started before,
 * or what such ones have left behind. */
static bool is_callers(const struct search *search, const struct process *process)
{
    const struct process_list *callers = search->tree->callers;

    if (!callers || callers->count == 0)
        return false;
    return process_list_has(callers, process) ||
           (search->by_descent && process->parent == search->tree->root &&
            was_left_by_callers(search, process));
}

/* Whether the process is the command of --stop, or the server of "local:", which are not ended with
 * the tree. Any process may have the server's name, but hardly a record lock on its standard input
 * as well. */
static bool is_spared(const struct search *search, const struct process *process)
{
    char text[1024] = "";

    if (process->pid == search->tree->spared)
        return true;
    if (strcmp(process->name, TREE_SPARED) != 0)
        return false;
    file_read_small(procfs_open_file(search->tree->procfs, process->pid, "fdinfo/0"), text,
                    sizeof text);
    const char *lock = strstr(text, "\nlock:\t");
    return lock && strstr(lock, " POSIX ") && strstr(lock, " WRITE ");
}

/* Whether the process may be of the tree: it is none of those that are left out, with all that
 * descends from them. */
static bool may_belong(const struct search *search, const struct process *process)
{
    return process->pid != search->tree->root && process->pid != search->tree->except &&
           !is_spared(search, process) && !is_callers(search, process);
}

/* Whether the process is of the tree, as far as it tells by itself; MEMBERSHIP_UNKNOWN: its
 * ancestors tell. */
static enum membership membership_of(struct search *search, const struct process *process)
{
    if (process->note != MEMBERSHIP_UNKNOWN)
        return (enum membership)process->note;
    if (!may_belong(search, process))
        return NO_MEMBER;
    return is_topmost(search, process) ? MEMBER : MEMBERSHIP_UNKNOWN;
}

/* Whether the process is of the tree, by itself or through an ancestor. Notes what it finds for the
 * process and all ancestors up to the one that tells ("top"): so no environment is read twice, and
 * thousands that descend from each other are walked along once. */
static bool belongs_to_tree(struct search *search, struct process *process)
{
    struct process *top = process;
    enum membership found = MEMBERSHIP_UNKNOWN;

    while (top && (found = membership_of(search, top)) == MEMBERSHIP_UNKNOWN) {
        top->note = NO_MEMBER; /* also ends a ring of parents that were read at different times */
        top = process_list_find(search->all, top->parent);
    }
    if (top)
        top->note = (int)found;
    /* Where the top is a member, so are all below it. */
    for (; found == MEMBER && process != top;
         process = process_list_find(search->all, process->parent))
        process->note = MEMBER;
    return found == MEMBER;
}

/* Whether this process can tell the descendants of the root from others: only the root itself, and
 * its child, see it as an ancestor. */
static bool knows_descendants(const struct tree *tree)
{
    return tree->root > 0 && (getpid() == tree->root || getppid() == tree->root);
}

/* Begins a search among "all", which were read before. */
static void search_init(struct search *search, const struct tree *tree,
                        const struct process_list *all)
{
    const struct process *root = process_list_find(all, tree->root);

    *search = (struct search){.tree = tree, .all = all, .group = root ? root->group : 0};
    /* After the reading: a root that has died meanwhile has left its descendants to others. */
    search->by_descent = knows_descendants(tree);
    search->session = getsid(0);
    snprintf(search->mark, sizeof search->mark, "RLOCK_OWNER=%s", tree->owner ? tree->owner : "");
    for (size_t i = 0; i < all->count; i++)
        all->all[i].note = MEMBERSHIP_UNKNOWN; /* an earlier search may have known another */
}

/* Begins a search that goes from the root to its descendants. root: a list, which gets the root as
 * its only process. False: the root could not be read. */
static bool search_from_root(struct search *search, const struct tree *tree,
                             struct process_list *root)
{
    struct process process;

    if (procfs_read(tree->procfs, tree->root, &process) != PROCESS_FOUND ||
        !process_list_append(root, &process))
        return false;
    search_init(search, tree, root);
    return true;
}

/* -- looking and signalling ------------------------------------------------------------------ */

/* Whether the process must not get this signal yet: an agent or a renewer, which KILL spares for a
 * while ("lenient"), as it must first release its lock. */
static bool is_let_off(const struct tree *tree, const struct process *process, int signo)
{
    return signo == SIGKILL && tree->lenient &&
           (strcmp(process->name, TREE_AGENT) == 0 || strcmp(process->name, TREE_RENEWER) == 0);
}

/* Reads a process once more, into *now. PROCESS_GONE also where its number is another's by now, as
 * far as can be told: by its start; or without that, for the command by its pidfd, for others by
 * the parent, which becomes the root when the parent dies. */
static enum process_look read_again(const struct tree *tree, const struct process *process,
                                    struct process *now)
{
    bool known = process->started;
    bool is_command = process->pid == tree->group && tree->leader >= 0;
    enum process_look look = known ? procfs_read(tree->procfs, process->pid, now)
                                   : procfs_read_status(tree->procfs, process->pid, now);

    if (look != PROCESS_FOUND)
        return look;
    bool same = known        ? now->started == process->started
                : is_command ? !kernel_has_gone(tree->leader)
                             : now->parent == process->parent || now->parent == tree->root;
    return same ? PROCESS_FOUND : PROCESS_GONE;
}

/* Returns the signal, but 0 for a CONT once KILL is due: a command that is stopped must not run
 * without its lock. The callers ask last, as this process may have been stopped before. */
static int unless_overdue(const struct tree *tree, int signo)
{
    bool late = tree->kill_at.ns && moment_reached(tree->kill_at, moment_now());
    return signo == SIGCONT && late ? 0 : signo;
}

/* Whether the command's process group still exists, and is not a later one of that number. Such a
 * group can begin when the command was reaped and its group is empty, even before the next call,
 * and begins with a process of that number. */
static bool group_is_ours(const struct tree *tree)
{
    bool known = tree->leader >= 0;

    if (known && kernel_signal_group(tree->leader, 0)) /* from Linux 6.9 on */
        return true;
    if ((known && errno == ESRCH) || (kill(-tree->group, 0) != 0 && errno == ESRCH))
        return false;
    if (tree->reaped || (known && kernel_has_gone(tree->leader))) /* no process has that number */
        return kill(tree->group, 0) != 0 && errno == ESRCH;
    /* Where no pidfd tells, as on an old kernel, in a sandbox, or for want of descriptors: a later
     * group is hardly one of this session. */
    pid_t session = getsid(tree->group);
    return session < 0 || session == getsid(0);
}

/* Signals the command's group. False: no process of it got the signal; EPERM if there are some. */
static bool deliver_to_group(const struct tree *tree, int signo)
{
    if (tree->leader >= 0 && kernel_signal_group(tree->leader, unless_overdue(tree, signo)))
        return true;
    if (group_is_ours(tree))
        return kill(-tree->group, unless_overdue(tree, signo)) == 0;
    errno = ESRCH;
    return false;
}

enum tree_state tree_signal_group(const struct tree *tree, int signo)
{
    if (tree->group <= 0)
        return TREE_GONE;
    return deliver_to_group(tree, signo) || errno == EPERM ? TREE_LIVE : TREE_GONE;
}

/* Signals a process that was read before, unless it has ended or is let off. False if it could not
 * be looked at once more; of these, the command gets the signal with its group. */
static bool deliver_signal(const struct tree *tree, const struct process *process, int signo)
{
    struct process now;
    int fd = kernel_pidfd(process->pid); /* before the look: the pid may be another's by now */
    enum process_look look = read_again(tree, process, &now);

    if (look == PROCESS_FOUND && !is_let_off(tree, &now, signo))
        kernel_signal(process->pid, fd, unless_overdue(tree, signo));
    file_close(fd);
    if (look == PROCESS_UNSEEN && process->pid == tree->group)
        tree_signal_group(tree, signo);
    return look != PROCESS_UNSEEN;
}

/* Signals those of "all" that are of the tree. *print becomes a hash of them, which tells whether a
 * second pass has found the same; 0: none. *complete becomes false if not everything could be
 * looked at. */
static enum tree_state signal_found(const struct tree *tree, const struct process_list *all,
                                    int signo, uint64_t *print, bool *complete)
{
    enum tree_state state = TREE_GONE;
    struct search search;

    *print = 0;
    search_init(&search, tree, all);
    for (size_t i = 0; i < all->count; i++) {
        struct process *process = &all->all[i];
        if (!process->live || !belongs_to_tree(&search, process))
            continue;
        if (signo != 0 && !deliver_signal(tree, process, signo))
            *complete = false;
        if (signo == SIGTERM && tree->asked && process->started)
            process_list_append(tree->asked, process);
        *print = (*print + (uint64_t)process->pid) * 0x9e3779b97f4a7c15U + process->started;
        state = TREE_LIVE;
    }
    *complete = *complete && !search.incomplete;
    return state;
}

/* Whether that is the number of a child of the tree's root. *complete becomes false if not all of
 * them could be listed. */
static bool is_child(const struct tree *tree, pid_t pid, bool *complete)
{
    struct process root = {.pid = tree->root, .threads = 1}; /* only its main thread forks */
    struct process_list children ENDED_BY(process_list_free) = {0};

    if (!procfs_add_children(tree->procfs, &root, &children))
        *complete = false;
    for (size_t i = 0; i < children.count; i++)
        if (children.all[i].pid == pid)
            return true;
    return false;
}

/* Signals a child of the root if /proc does not show it, as with its option hidepid processes of
 * other users and those that must not be traced, such as ssh-agent(1). The kernel still lists it as
 * a child, until it is reaped. TREE_GONE: it is shown, or no child. *complete as in is_child(). */
static enum tree_state signal_hidden(const struct tree *tree, pid_t pid, int signo, bool *complete)
{
    struct process process;

    if (procfs_read_status(tree->procfs, pid, &process) != PROCESS_GONE)
        return TREE_GONE; /* it was looked at with the others */
    int fd = kernel_pidfd(pid);
    bool ours = is_child(tree, pid, complete); /* yet: the descriptor is of that child */
    if (ours && signo != 0)
        kernel_signal(pid, fd, unless_overdue(tree, signo));
    file_close(fd);
    return ours ? TREE_LIVE : TREE_GONE;
}

/* Signals those children of the root that /proc does not show (signal_hidden()). *complete becomes
 * false if not all of its children could be listed. */
static enum tree_state signal_hidden_children(const struct tree *tree, int signo, bool *complete)
{
    struct process root = {.pid = tree->root, .threads = 1}; /* only its main thread forks */
    struct process_list children ENDED_BY(process_list_free) = {0};
    enum tree_state state = TREE_GONE;

    if (!knows_descendants(tree))
        return state;
    if (!procfs_add_children(tree->procfs, &root, &children))
        *complete = false;
    for (size_t i = 0; i < children.count; i++) {
        pid_t pid = children.all[i].pid;
        bool others = pid == tree->except || pid == tree->spared ||
                      (tree->callers && process_list_find(tree->callers, pid));
        if (!others && signal_hidden(tree, pid, signo, complete) == TREE_LIVE)
            state = TREE_LIVE;
    }
    return state;
}

/* Whether the group of that number is the command's for certain, as far as a pidfd tells. Where
 * those do not tell of groups, the group of a leader that has gone may be a later one. */
static bool knows_group(const struct tree *tree)
{
    return tree->leader < 0 || kernel_signal_group(tree->leader, 0) ||
           !kernel_has_gone(tree->leader);
}

/* Signals the command's group, where not everything can be looked at. A look that has found it
 * gives TREE_UNSEEN, to be repeated, as it cannot be certain that the group is the command's. */
static enum tree_state signal_unseen(const struct tree *tree, int signo)
{
    enum tree_state state = tree_signal_group(tree, signo);
    return signo == 0 && state == TREE_LIVE ? TREE_UNSEEN : state;
}

/* Whether "now", read since "child" was listed by its number, is that child and not a later process
 * of the number: its parent is the same, or, if that has died, the root. */
static bool is_child_still(const struct tree *tree, const struct process *child,
                           const struct process *now)
{
    return now->parent == child->parent || now->parent == tree->root;
}

/* Adds the children of a process of the tree to a list. Returns whether all could be read. */
static bool add_children(const struct tree *tree, const struct process *process,
                         struct process_list *list)
{
    size_t first = list->count;
    struct process now;
    bool complete = procfs_add_children(tree->procfs, process, list);

    /* If the process has gone meanwhile, its own children are the root's by now; those of a later
     * process with its number may be in the list, and are left out by is_child_still() then. */
    if (first < list->count && read_again(tree, process, &now) == PROCESS_GONE)
        for (size_t i = first; i < list->count; i++)
            list->all[i].parent = tree->root;
    return complete;
}

/* Kills a process, and before it its descendants, which cannot be found any more when it is dead.
 * Reads only what procfs_read_status() does, which never waits. depth: of this call. */
static void kill_with_descendants(const struct search *search, const struct process *process,
                                  int depth)
{
    const struct procfs *procfs = search->tree->procfs;
    struct process_list children ENDED_BY(process_list_free) = {0};
    struct process child;

    add_children(search->tree, process, &children);
    for (size_t i = 0; i < children.count && depth < MOST_DEPTH; i++) {
        if (procfs_read_status(procfs, children.all[i].pid, &child) == PROCESS_FOUND &&
            is_child_still(search->tree, &children.all[i], &child) && may_belong(search, &child))
            kill_with_descendants(search, &child, depth + 1);
    }
    deliver_signal(search->tree, process, SIGKILL);
}

/* Kills a process that was just read, with its descendants; with a signal of 0 only looks. False if
 * it does not live, or is left out. */
static bool signal_one(const struct search *search, const struct process *process, int signo)
{
    if (!process->live || !may_belong(search, process))
        return false;
    if (signo != 0)
        kill_with_descendants(search, process, 0);
    return true;
}

/* Kills the processes of a list that are still there; a signal of 0 looks for one of them. Returns
 * whether there was one. */
static bool signal_noted(const struct search *search, const struct process_list *noted, int signo)
{
    struct process process;
    bool found = false;

    for (size_t i = 0; i < noted->count && !(found && signo == 0); i++) {
        if (procfs_read(search->tree->procfs, noted->all[i].pid, &process) == PROCESS_FOUND &&
            process.started == noted->all[i].started)
            found = signal_one(search, &process, signo) || found;
    }
    return found;
}

/* Kills the command itself with its descendants, and then its group; a signal of 0 only looks.
 * Returns whether the command was there. */
static bool signal_leader(const struct search *search, int signo)
{
    const struct tree *tree = search->tree;
    struct process leader;

    if (tree->leader < 0) /* the number may be that of another process */
        return false;
    bool found = procfs_read_status(tree->procfs, tree->group, &leader) == PROCESS_FOUND &&
                 leader.group == tree->group && group_is_ours(tree) &&
                 signal_one(search, &leader, signo);
    if (signo != 0 && knows_group(tree))
        tree_signal_group(tree, signo);
    return found;
}

/* Kills the processes that are known without reading all of /proc, which takes long where there are
 * many: the command, and those that were noted. A signal of 0 only looks for one. Returns whether
 * there was one. */
static bool signal_known(const struct tree *tree, int signo)
{
    const struct process_list nothing = {0};
    struct search search;

    search_init(&search, tree, &nothing);
    bool found = signal_leader(&search, signo);
    for (size_t i = 0; i < tree->noted_count && !(found && signo == 0); i++)
        found = signal_noted(&search, &tree->noted[i], signo) || found;
    return found;
}

/* Kills the live children of this process, the tree's root, and returns whether there were any. The
 * number of a child stays its own until this process reaps it. */
static bool kill_children(const struct search *search)
{
    const struct procfs *procfs = search->tree->procfs;
    struct process_list children ENDED_BY(process_list_free) = {0};
    struct process process;
    bool found = false;

    procfs_add_children(procfs, &search->all->all[0], &children);
    for (size_t i = children.count; i-- > 0;) { /* the newest have had the least time to fork */
        if (procfs_read(procfs, children.all[i].pid, &process) == PROCESS_FOUND && process.live &&
            may_belong(search, &process) && !is_let_off(search->tree, &process, SIGKILL))
            found = kill(process.pid, SIGKILL) == 0 || found;
    }
    return found;
}

/* Signals the process of that number, which was given after the reading of search->all had begun.
 * False: it is not of the tree, or has ended. *complete becomes false if it could not be looked
 * at. */
static bool signal_newborn(struct search *search, pid_t pid, int signo, bool *complete)
{
    const struct tree *tree = search->tree;
    struct process process = {0};
    enum process_look look = procfs_read(tree->procfs, pid, &process);

    *complete = *complete && look != PROCESS_UNSEEN;
    if (look != PROCESS_FOUND || !process.live || is_let_off(tree, &process, signo) ||
        !belongs_to_tree(search, &process) || !procfs_is_process(tree->procfs, pid))
        return false;
    if (signo != 0 && !deliver_signal(tree, &process, signo))
        *complete = false;
    return true;
}

/* Signals the processes that were born since "last" was the latest number, before "all" was listed,
 * twice. A list lacks a process that is born while it is read, if its parent ends before its turn
 * and this process does not inherit orphans. So the later numbers are looked at in turn, until none
 * is left. *complete becomes false if that was not possible. */
static enum tree_state signal_births(const struct tree *tree, const struct process_list *all,
                                     pid_t last, int signo, bool *complete)
{
    enum tree_state state = TREE_GONE;
    struct search search;
    int bursts = signo == SIGKILL ? MOST_BURSTS : 0;
    pid_t pid = last, latest;

    search_init(&search, tree, all);
    /* A process that forks and ends at once is most often the latest one. */
    while (bursts-- > 0 &&
           signal_newborn(&search, procfs_last_pid(tree->procfs), SIGKILL, complete))
        state = TREE_LIVE;
    while ((latest = procfs_last_pid(tree->procfs)) > pid && latest - last <= MOST_BIRTHS) {
        while (pid < latest)
            if (signal_newborn(&search, ++pid, signo, complete))
                state = TREE_LIVE;
    }
    *complete = *complete && !search.incomplete && latest >= 0 && latest == pid;
    return state;
}

/* How a process is read: procfs_read() or procfs_read_status(). */
typedef enum process_look reader(const struct procfs *procfs, pid_t pid, struct process *process);

/* Sets *list to the processes of the tree, sorted by their pids: found from parents to children,
 * beginning at the root. look_at: how each is read. False: it may lack some, as they could not be
 * read, were too many, or "until" came before. */
static bool list_by_descent(const struct tree *tree, reader *look_at, struct moment until,
                            struct process_list *list)
{
    struct process_list root ENDED_BY(process_list_free) = {0};
    struct search search;
    struct process process;
    size_t found = 0, i = 0;

    if (!search_from_root(&search, tree, &root))
        return false;
    bool complete = procfs_add_children(tree->procfs, &root.all[0], list);
    /* Meanwhile, those that are of the tree come first in the list, those to be looked at last. */
    for (; i < list->count && i < MOST_DESCENDANTS && !moment_reached(until, moment_now()); i++) {
        pid_t pid = list->all[i].pid;
        /* Only its start, which not each reader reads, tells it from a caller's of that number. */
        bool needs_start = tree->callers && process_list_find(tree->callers, pid);
        enum process_look look = needs_start ? procfs_read(tree->procfs, pid, &process)
                                             : look_at(tree->procfs, pid, &process);
        complete = complete && look != PROCESS_UNSEEN;
        if (look != PROCESS_FOUND || !is_child_still(tree, &list->all[i], &process) ||
            !may_belong(&search, &process))
            continue;
        complete = add_children(tree, &process, list) && complete;
        list->all[found++] = process;
    }
    complete = complete && i == list->count;
    list->count = found;
    process_list_sort(list);
    return complete;
}

/* Whether one of the processes is of that group. */
static bool shows_group(const struct process_list *all, pid_t group)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->all[i].group == group)
            return true;
    return false;
}

/* Signals the command's process group, if processes of it may be hidden: none of it is among "all",
 * or the command is there and not among them. TREE_GONE: no others than those that are shown. */
static enum tree_state signal_hidden_group(const struct tree *tree, const struct process_list *all,
                                           int signo)
{
    if (shows_group(all, tree->group) &&
        (process_list_find(all, tree->group) || (kill(tree->group, 0) != 0 && errno == ESRCH)))
        return TREE_GONE;
    return tree->group > 0 && deliver_to_group(tree, signo) ? TREE_LIVE : TREE_GONE;
}

/* Returns until when a look may take: one that is not for KILL must not hold KILL up. */
static struct moment until_kill(const struct tree *tree, int signo)
{
    return tree->kill_at.ns && signo != SIGKILL ? tree->kill_at : MOMENT_NEVER;
}

/* Signals what can be found by descent, which is quick: no process of another tree is read, and
 * only what procfs_read_status() reads, which never waits. Returns whether something was found;
 * where not, the caller has to search all processes. */
static bool signal_descendants(const struct tree *tree, int signo)
{
    struct process_list all ENDED_BY(process_list_free) = {0};
    bool complete = true;
    uint64_t print;

    if (!knows_descendants(tree) || !procfs_lists_children(tree->procfs, tree->root))
        return false;
    list_by_descent(tree, procfs_read_status, until_kill(tree, signo), &all);
    enum tree_state state = signal_found(tree, &all, signo, &print, &complete);
    enum tree_state hidden = signal_hidden_children(tree, signo, &complete);
    /* A group of which none descends from the root may be a later one of that number, whose first
     * process has ended: all processes are listed, to see its members. */
    if (tree->group > 0 && !shows_group(&all, tree->group) && group_is_ours(tree))
        procfs_list(tree->procfs, until_kill(tree, signo), &all);
    enum tree_state group = signal_hidden_group(tree, &all, signo);
    return state == TREE_LIVE || hidden == TREE_LIVE || group == TREE_LIVE;
}

/* Signals all of the tree that /proc lists, in at most MOST_PASSES passes, each of which lists all
 * processes anew. The last one is that which finds the same as the pass before it, even if that is
 * nothing; for another signal than KILL also the first one that finds something. Returns what the
 * last pass has found; *all becomes its list. *complete becomes false if not everything could be
 * looked at. */
static enum tree_state signal_listed(const struct tree *tree, struct process_list *all, int signo,
                                     bool *complete)
{
    enum tree_state state = TREE_GONE;
    uint64_t print = 1, last;
    int pass = 0;

    do {
        last = print;
        *complete = procfs_list(tree->procfs, until_kill(tree, signo), all) && *complete;
        state = signal_found(tree, all, signo, &print, complete);
    } while (++pass < MOST_PASSES && print != last && (state == TREE_GONE || signo == SIGKILL));
    return state;
}

/* Signals the tree by a search of all processes. *complete becomes false if not everything could be
 * looked at. */
static enum tree_state signal_by_search(const struct tree *tree, int signo, bool *complete)
{
    struct process_list all ENDED_BY(process_list_free) = {0};
    struct process_list root ENDED_BY(process_list_free) = {0};
    struct search search;

    /* A process that forks and ends at once is faster than a look at all processes. But its child
     * becomes a child of the root each time, and the children of one process are soon looked at. */
    if (signo == SIGKILL && getpid() == tree->root && search_from_root(&search, tree, &root))
        for (int burst = 0; burst < MOST_BURSTS && kill_children(&search); burst++)
            ;
    pid_t last = procfs_last_pid(tree->procfs);
    enum tree_state state = signal_listed(tree, &all, signo, complete);
    if (getpid() != tree->root && (state == TREE_GONE || signo == SIGKILL) &&
        signal_births(tree, &all, last, signo, complete) == TREE_LIVE)
        state = TREE_LIVE;
    if (signal_hidden_children(tree, signo, complete) == TREE_LIVE ||
        signal_hidden_group(tree, &all, signo) == TREE_LIVE)
        state = TREE_LIVE;
    return state;
}

/* Signals the processes of the tree that can be found, in its cgroup or not, and returns what was
 * there: first by quick ways, and by a search of all processes for KILL, or if those find none. */
static enum tree_state signal_processes(const struct tree *tree, int signo)
{
    enum tree_state state = TREE_LIVE; /* without a search, something was found */
    bool complete = true;

    if (!procfs_is_usable(tree->procfs))
        return signal_unseen(tree, signo);
    procfs_begin(tree->procfs);
    bool found = signal_descendants(tree, signo);
    /* The processes that are known are killed at once, if their children can be found all the same:
     * they become the root's, or they are listed, and killed before their parent. */
    if (signo == SIGKILL &&
        (knows_descendants(tree) || procfs_lists_children(tree->procfs, getpid())))
        signal_known(tree, signo);
    if (signo == SIGKILL || !(found || (signo == 0 && signal_known(tree, signo))))
        state = signal_by_search(tree, signo, &complete);
    procfs_end(tree->procfs);
    /* Where processes are continued one by one, a Ctrl-Z in between leaves some stopped. */
    if (signo == SIGCONT && knows_group(tree))
        tree_signal_group(tree, signo);
    if (complete || state == TREE_LIVE)
        return state;
    return signal_unseen(tree, signo) == TREE_LIVE ? TREE_LIVE : TREE_UNSEEN;
}

enum tree_state tree_signal(const struct tree *tree, int signo)
{
    /* The cgroup tells or kills all that is in it; other signals go to processes that are found. */
    bool whole = signo == 0 || (signo == SIGKILL && !tree->lenient);

    if (!cgroup_exists(tree->cgroup))
        return signal_processes(tree, signo);
    bool lives = (!whole || tree->strays) && signal_processes(tree, signo) == TREE_LIVE;
    if (lives && !whole)
        return TREE_LIVE;
    /* Where no process could be found, none is let off: a KILL is for the whole cgroup then. Its
     * files take one of the descriptors that are kept for /proc; where they fail nevertheless, the
     * processes are killed one by one. The caller repeats that as long as anything is left. */
    bool kept = procfs_is_usable(tree->procfs);
    if (kept)
        procfs_begin(tree->procfs);
    bool fails = signo == SIGKILL && cgroup_kill(tree->cgroup) < 0;
    int populated = cgroup_is_populated(tree->cgroup);
    if (kept)
        procfs_end(tree->procfs);
    if (fails && populated != 0)
        signal_processes(tree, signo);
    if (lives)
        return TREE_LIVE;
    return populated == 0 ? TREE_GONE : populated == 1 ? TREE_LIVE : TREE_UNSEEN;
}

enum tree_state tree_signal_child(struct procfs *procfs, pid_t parent, pid_t pid, int signo)
{
    struct process process;

    if (!procfs_is_usable(procfs))
        return TREE_UNSEEN;
    procfs_begin(procfs);
    int fd = kernel_pidfd(pid);
    enum process_look look = procfs_read_status(procfs, pid, &process);
    bool lives = look == PROCESS_FOUND && process.live && process.parent == parent;
    if (lives && signo != 0 && !kernel_signal_group(fd, signo)) /* before Linux 6.9 */
        kernel_signal(pid, fd, signo);
    file_close(fd);
    procfs_end(procfs);
    return lives ? TREE_LIVE : look == PROCESS_UNSEEN ? TREE_UNSEEN : TREE_GONE;
}

bool tree_is_visible(const struct tree *tree)
{
    return cgroup_exists(tree->cgroup) || procfs_is_usable(tree->procfs);
}

bool tree_leader_ended(const struct tree *tree)
{
    struct process leader;
    enum process_look look = PROCESS_UNSEEN;

    if (!procfs_is_usable(tree->procfs) || tree->group <= 0)
        return false;
    procfs_begin(tree->procfs);
    look = procfs_read_status(tree->procfs, tree->group, &leader);
    procfs_end(tree->procfs);
    /* While the root has not reaped it, no other process has its number. */
    return look == PROCESS_FOUND && leader.parent == tree->root && !leader.live;
}

bool tree_list(const struct tree *tree, struct process_list *list)
{
    struct process_list all ENDED_BY(process_list_free) = {0};
    struct search search;
    bool complete;

    list->count = 0;
    procfs_begin(tree->procfs);
    if (procfs_lists_children(tree->procfs, tree->root)) {
        complete = list_by_descent(tree, procfs_read, MOMENT_NEVER, list);
        complete = complete && knows_descendants(tree); /* it has not died meanwhile */
    } else {
        complete = procfs_list(tree->procfs, MOMENT_NEVER, &all);
        search_init(&search, tree, &all);
        for (size_t i = 0; i < all.count; i++)
            if (belongs_to_tree(&search, &all.all[i]) && !process_list_append(list, &all.all[i]))
                complete = false;
        complete &= !search.incomplete;
    }
    procfs_end(tree->procfs);
    return complete;
}

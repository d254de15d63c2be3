#include "lives/sentences.h"

const struct sentence_quote sentences[] = {
    [ONE_AT_A_TIME] = {"rlock.7", "at most one command runs at a time"},
    [NEVER_WITHOUT_LOCK] = {"rlock.7", "a command never continues without its lock"},
    [READERS_OR_WRITER] = {"rlock.7", "but never beside a writer"},
    [AT_MOST_N] = {"rlock.7", "at most N commands run at a time"},
    [FENCES_RISE] = {"rlock.7", "strictly greater than every number given out before for that KEY"},
    [DIES_WITH_RLOCK] = {"rlock.7", "the command itself still dies"},
    [ONE_LEASE_AT_MOST] = {"rlock.7", "a dead holder blocks the lock for one lease at most"},
    [ENDS_AS_COMMAND] = {"rlock.1", "The command ran to its end under the lock."},
    [ENDS_LOST] = {"rlock.1", "The lock was lost while the command ran."},
    [ENDS_IN_TIME] = {"rlock.1",
                      "The limit of --at-most, or the lease of --no-renew, was reached."},
    [ENDS_REFUSED] = {"rlock.1", "Not acquired: held by others."},
    [ANOTHER_AGENT] = {"rlock.7", "If the agent dies, the supervisor reports it and starts another "
                                  "one"},
    [RENEWS_ON] = {"rlock.7", "starts another one, which renews the lock for the same owner"},
    [STOPPED_WAITS] = {"rlock.7", "acquires nothing until it is continued"},
    [WAITS_AT_MOST] = {"rlock-run.1", "Wait at most that long, then end with 75."},
    [STOP_COMMAND] = {"rlock-run.1", "when rlock stops the command"},
    [STOP_LEFT] = {"rlock-run.1", "says how many milliseconds are left until KILL"},
    [STOP_TOO_LATE] = {"rlock-run.1", "is not run, since it might hit another holder's work"},
    [STOP_HAS_TIME] = {"rlock-run.1",
                       "TERM follows when CMD has ended, or when half of that time is over."},
    [STOP_KEEPS_LOCK] = {"rlock-run.1", "The lock is kept until CMD has ended."},
    [STOP_BY_AGENT] = {"rlock-run.1", "When rlock itself is killed, its agent runs CMD"},
    [STOP_OF_STOPPED] = {"rlock-run.1", "its agent runs CMD before the lease ends"},
    [STOP_KILLED] = {"rlock-run.1", "CMD never delays KILL, and is killed with it."},
    [RELEASE_TOLD] = {"rlock-run.1",
                      "If the lock cannot be released after the command has ended, rlock prints a "
                      "warning"},
    [HISTORY_TELLS] = {"rlock-history.1", "the last 20 runs"},
    [AT_LEAST] = {"rlock-run.1", "Keep the lock for that long, counted from when it was acquired"},
    [RELEASED_AT_END] = {"rlock.7",
                         "the agent releases the lock as soon as the command's processes are dead"},
    [FIRST_COME] = {"rlock.7", "A waiter is never passed by a later one, even if there would be "
                               "room."},
    [BY_PRIORITY] = {"rlock-run.1", "a waiter is served before those with a lower priority; equals "
                                    "are served first come, first served"},
    [LATEST] = {"rlock-run.1", "So at most one waits"},
    [ALL_OR_NONE] = {"rlock-run.1", "rlock holds none of them while it waits for one"},
    [UNLESS_DONE] = {"rlock-run.1", "Run nothing if a run of KEY that began less than DURATION ago "
                                    "has succeeded"},
    [SIGNAL_ONCE] = {"rlock-run.1", "send the command's process group that signal once"},
    [TERM_FIRST] = {"rlock-run.1", "The time between TERM and KILL when rlock stops the command."},
    [STOPPED_ENDS] = {"rlock.7", "If the supervisor was killed or stopped, the agent ends the "
                                 "command and its descendants before the lease ends."},
    [ONLY_SHOWN] = {"rlock-force-release.1", "Only the holders that were shown lose the lock."},
    [KEYS_TOLD] = {"rlock-run.1", "with several, all of them in the order given"},
    [NESTS] = {"rlock-run.1",
               "it gets the lock at once, ahead of all waiters, with the same fencing "
               "token and slot"},
    [NESTED_FIRST] = {"rlock.7", "Owners that nest in a holder have a queue of their own, and come "
                                 "first."},
    [NESTED_KEEPS] = {"rlock-reserve.1", "A nested command keeps the lock until it ends, even if "
                                         "the reservation ends before."},
    [NOTIFIES] = {"rlock-run.1", "at these events, at most once a run for each"},
    [NOTICE_ENDS] = {"rlock-run.1", "it gets TERM, and KILL a second later, with all that it has "
                                    "started"},
    [PAUSED] = {"rlock-pause.1", "No new owner is let in, in any mode, but those that nest in a "
                                 "holder."},
    [MAY_SHARE] = {"rlock.7", "If the first waiter can share the lock with those behind it, as "
                              "readers can, each hands it over to the next."},
    [LEARNS_OF_LOSS] = {"rlock-stores.7",
                        "The old holder learns of it when it next contacts the server, after a "
                        "third of its lease at the latest, and stops its command."},
    [OUTLIVES_OUTAGE] = {"rlock.7",
                         "how long the server may be silent, at the worst moment, without an "
                         "effect on the command"},
    [KEEPS_ADDRESSES] = {"rlock-stores.7",
                         "While the name service fails, or does not know the name any more, the "
                         "addresses that were known are kept."},
    [SURVIVES_FAILOVER] = {"rlock-stores.7", "a granted lock survives a failover to one of the N"},
    [CLAIMS] = {"rlock-stores.7", "A holder whose lock was forgotten claims it with its next "
                                  "renewal"},
    [NO_GAP] = {"rlock-stores.7", "the two options together leave no gap in a failover"},
    [LEAVES_MASTER] = {"rlock-stores.7",
                       "When more than half of them name another master, it leaves the old one at "
                       "once, even if that one still answers and believes that it is the master."},
    [WAITS_FOR_STORE] = {"rlock.7",
                         "A store that answers but refuses to work is retried for one lease"},
    [CTRL_C_ONCE] = {"rlock-run.1", "Ctrl-C at the terminal reaches the command once."},
    [STOPS_WITH_COMMAND] = {"rlock-run.1", "Ctrl-Z stops the command, then rlock."},
    [CONTINUES_AT_ONCE] = {"rlock-run.1", "rlock has the command continue at once"},
    [GETS_HUP] = {"rlock-run.1", "A command that needs the terminal where neither it nor a shell "
                                 "can give it gets HUP."},
    [KEPT_WHILE_STOPPED] = {"rlock-run.1",
                            "The lock is kept: it is renewed for as long as they are stopped"},
    [TOKEN_PRINTED] = {"rlock-acquire.1",
                       "takes it, prints the owner token on standard output and ends."},
    [HELD_FOR_A_LEASE] = {"rlock-acquire.1", "The lock is held for one lease from then on."},
    [NOTHING_PRINTED] = {"rlock-acquire.1", "If the lock was not acquired, the command prints "
                                            "nothing on standard output and ends with 75."},
    [RENEWED] = {"rlock-acquire.1", "It renews the lock until the lock is released"},
    [GIVEN_BACK] = {"rlock-acquire.1", "has ended; in that case it gives the lock back itself."},
    [KILLED_BEFORE] = {"rlock-acquire.1",
                       "is killed before it has ended, the renewer releases the lock."},
    [NOT_HOLDER] = {"rlock-acquire.1", "they change nothing and end with 1"},
    [LATCH_STAYS] = {"rlock-latch.1", "If the latch exists already, it stays as it is and the "
                                      "status is 1."},
    [LATCH_COUNTS] = {"rlock-latch.1", "from the latch and prints what is left."},
    [LATCH_COUNTS_ONCE] = {"rlock-latch.1", "so a step that is retried does not count twice"},
    [LATCH_NOT_CLOSED] = {"rlock-latch.1", "An open latch is never closed again."},
    [LATCH_ABSENT] = {"rlock-latch.1", "a latch that does not exist never counts as open"},
    [LATCH_OPENS] = {"rlock-latch.1", "Then its waiters continue"},
    [LATCH_VANISHES] = {"rlock-latch.1", "Those who wait for it end with 1."},
    [LATCH_DELETED] = {"rlock-latch.1", "There is no such latch, or it was deleted meanwhile."},
    [LATCH_WAITS] = {"rlock-latch.1", "the latch was not open when the time was up"},
    [LATCH_NOT_RUN] = {"rlock-latch.1", "If there is no such latch, COMMAND is not run."},
    [LATCH_RUN_ENDS] = {"rlock-latch.1", "run ends as its command does."},
    [LATCH_RUN_RETRIES] = {"rlock-latch.1", "A store that is away by then is retried for 30 s"},
    [FENCE_WRITES] = {"rlock-fence.1",
                      "If the token is not lower, it is written there, and the status is 0."},
    [FENCE_REFUSES] = {"rlock-fence.1", "If it is lower, a later holder has been here: the file "
                                        "stays as it is"},
    [FENCE_LOCKED] = {"rlock-fence.1", "the file stays locked while command runs, so that no other "
                                       "token gets in between."},
    [FENCE_KILLS] = {"rlock-fence.1",
                     "command and its process group are killed before the file is unlocked."},
    [FENCE_WHOLE] = {"rlock-fence.1", "rlock-fence that is killed at any moment, a disk that is "
                                      "full and a power failure leave the old number or the new "
                                      "one."},
    [FENCE_TELLS] = {"rlock-fence.1", "RLOCK_FENCE of command is the token."},
    [FENCE_ENDS] = {"rlock-fence.1", "rlock-fence ends as command did."},
    [FENCE_WAITS] = {"rlock-fence.1", "Wait at most DUR."},
};

void sentences_print(void)
{
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        printf("%s\t%s\n", sentences[i].page, sentences[i].text);
}

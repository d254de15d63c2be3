/* A server's replies as answers: errors, the scripts' words, and nonsense. */
#include "rules/answer.h"
#include "rules/arguments.h"
#include "rules/error.h"

#include "replies.h"
#include "tap.h"

/* 400 of them. */
#define DIGITS_50 "99999999999999999999999999999999999999999999999999"
#define DIGITS                                                                                     \
    "'" DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50 DIGITS_50 "'"

#define NONE "unknown/unfit maybe the server's answer makes no sense"

/* Errors of 6.2 and before come from within a script, with its place. */
static const struct {
    enum redis_error class;
    const char *plain;
    const char *const *texts;
} errors[] = {
    {REDIS_ERROR_NOSCRIPT, "it does not keep the scripts it is sent",
     INPUTS("NOSCRIPT No matching script. Please use EVAL.")},
    {REDIS_ERROR_PASSING, "busy with a script that takes long",
     INPUTS(
         "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")},
    {REDIS_ERROR_PASSING, "still loading its data",
     INPUTS("LOADING Redis is loading the dataset in memory")},
    {REDIS_ERROR_PASSING, "it cannot save its data to disk, and takes no writes",
     INPUTS("MISCONF Redis is configured to save RDB snapshots, but is currently unable to persist "
            "on disk.",
            "ERR Error running script (call to f_6d1): @user_script:1: -MISCONF Redis is "
            "configured to save")},
    {REDIS_ERROR_PASSING, "its disk is full (No space left on device), and it takes no writes",
     INPUTS("MISCONF Errors writing to the AOF file: No space left on device")},
    {REDIS_ERROR_PASSING,
     "it cannot save its data to disk (Input/output error), and takes no writes",
     INPUTS("MISCONF Errors writing to the AOF file: Input/output error")},
    {REDIS_ERROR_READONLY, "a replica that cannot reach its master",
     INPUTS("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")},
    {REDIS_ERROR_PASSING, "it has too few replicas to take writes",
     INPUTS("NOREPLICAS Not enough good replicas to write.",
            "ERR Error running script (call to f_6d1): @user_script:1: @user_script: 1: "
            "-NOREPLICAS Not enough good replicas to write.")},
    {REDIS_ERROR_PASSING, "the Cluster is moving the key's slot",
     INPUTS("TRYAGAIN Multiple keys request during rehashing of slot")},
    {REDIS_ERROR_PASSING, "the Cluster is down", INPUTS("CLUSTERDOWN The cluster is down")},
    {REDIS_ERROR_READONLY, "it has become a replica meanwhile",
     INPUTS("UNBLOCKED force unblock from blocking operation")},
    {REDIS_ERROR_PASSING, "too many clients: its max number of clients is reached",
     INPUTS("ERR max number of clients reached")},
    {REDIS_ERROR_READONLY, "a read-only replica; locks live on the master",
     INPUTS("READONLY You can't write against a read only replica.",
            "ERR Error running script (call to f_6d1): @user_script:1: @user_script: 1: -READONLY "
            "You can't write against a read only replica.")},
    {REDIS_ERROR_UNFIT, "out of memory: it has used up its maxmemory",
     INPUTS("OOM command not allowed when used memory > 'maxmemory'. script: a886, on "
            "@user_script:399.",
            "ERR Error running script (call to f_6d1): @user_script:1: @user_script: 1: -OOM "
            "command not allowed when used memory > 'maxmemory'.")},
    {REDIS_ERROR_LOGIN, "it asks for a password", INPUTS("NOAUTH Authentication required.")},
    {REDIS_ERROR_LOGIN, "wrong password, or no such user",
     INPUTS("WRONGPASS invalid username-password pair or user is disabled.")},
    {REDIS_ERROR_DENIED, "no right to run 'evalsha'",
     INPUTS("NOPERM this user has no permissions to run the 'evalsha' command or its subcommand")},
    {REDIS_ERROR_DENIED, "no right to run 'eval'",
     INPUTS("NOPERM User default has no permissions to run the 'eval' command")},
    {REDIS_ERROR_DENIED, "no right to run 'cluster|slots'",
     INPUTS("NOPERM User LOADING has no permissions to run the 'cluster|slots' command")},
    {REDIS_ERROR_DENIED, "no right to the keys it needs",
     INPUTS("NOPERM this user has no permissions to access one of the keys used as arguments",
            "NOPERM No permissions to access a key",
            "ERR ACL failure in script: No permissions to access a key",
            "ERR Error running script (call to f_6d1): @user_script:1: The user executing the "
            "script can't access at least one of the keys mentioned in the command arguments")},
    {REDIS_ERROR_DENIED, "no right to the channels it needs",
     INPUTS("NOPERM No permissions to access a channel")},
    {REDIS_ERROR_LOGIN, "wrong password", INPUTS("ERR invalid password")},
    {REDIS_ERROR_LOGIN, "it has no password, but was given one",
     INPUTS("ERR AUTH <password> called without any password configured for the default user.")},
    {REDIS_ERROR_DENIED, "no right to run 'hset'",
     INPUTS("ERR ACL failure in script: User ci has no permissions to run the 'hset' command "
            "script: 2f, on @user_script:57.")},
    {REDIS_ERROR_MISFIT, "the store's key of that name holds other data",
     INPUTS("WRONGTYPE Operation against a key holding the wrong kind of value",
            "ERR Error running script (call to f_6d1): @user_script:30: WRONGTYPE Operation "
            "against a key holding the wrong kind of value")},
    {REDIS_ERROR_DENIED, "no right to run a command that it needs",
     INPUTS("ERR Error running script (call to f_6d1): @user_script:1: The user executing the "
            "script can't run this command or subcommand")},
    {REDIS_ERROR_DENIED, "it is in protected mode: without a password it serves only its own host",
     INPUTS("DENIED Redis is running in protected mode because protected mode is enabled and no "
            "password is set for the default user.")},
    {REDIS_ERROR_CLUSTER, "this is a node of a Redis Cluster",
     INPUTS("MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381",
            "CROSSSLOT Keys in request don't hash to the same slot")},
    {REDIS_ERROR_CLUSTER, "this server is not in cluster mode",
     INPUTS("ERR This instance has cluster support disabled")},
    {REDIS_ERROR_OTHER, "the server answered with an error, and did not say which", INPUTS("")},
    /* The server's own words: NULL. */
    {REDIS_ERROR_OTHER, NULL,
     INPUTS(
         " ", "ERR MOVED 1 is what it said", "ASKING", "ERR unknown command 'EVALSHA'",
         "ERR Error running script (call to f_6d1): @user_script:9: attempt to index a nil value",
         "BUSYKEY Target key name already exists.", "ERR NOTBUSY", "ERR OOMPH ROOM")},
};

/* Replies as words (replies.h). */
static const struct {
    const char *reply, *wanted;
} replies[] = {
    {"*4 'GRANTED' :1000 *1 '7' *1 :0", "granted fence 7"},
    {"*4 'GRANTED' :1000 *1 '1781000000000000' *1 :0", "granted fence 1781000000000000"},
    {"*4 'GRANTED' :1000 *2 '7' '8' *2 :3 :100000", "granted fence 7 slot 3 fence 8 slot 100000"},
    /* A member of a quorum answers. */
    {"*5 'MEMBER' :5 :60000 *4 'GRANTED' :1000 *1 '7' *1 :0 *1 :1",
     "granted fence 7 nested remembers 5 of 60000"},
    {"*5 'MEMBER' :9223372036854775807 :-1 *4 'GRANTED' :1000 *1 '7' *1 :0 *0",
     "granted fence 7 remembers 4611686018427 of 0"},
    {"*5 'RENEWED' :1000 *1 '7' *1 :2 :1", "granted fence 7 slot 2"},
    {"*5 'RENEWED' :1000 *1 '7' *1 :0 :2", "granted fence 7 forgotten"},
    {"*6 'GRACE' :1000 :23001 'q:3' :2 :1",
     "refused/grace position 2 places q:3 grace 23001 requeued the server may have lost locks; it "
     "grants nothing "
     "new for another 24s"},
    {"*6 'GRACE' :1000 :1 '' :0 :0", "refused/grace places  grace 1 the server may have lost "
                                     "locks; it grants nothing new for another 1s"},
    {"*9 'QUEUED' :1000 'q:3' :2 :0 :1 :1 :4000 '5000_3000_7_own_400_x_0_h_u_9_c_l'",
     "refused/held position 2 places q:3 holders 1 till 4000 by own of u@h 9 c l x fence 7 age 600 "
     "left 4000"},
    {"*9 'QUEUED' :1000 'q:3_q:9' :2 :0 :2 :3 :50 '5000_3000_7_a.b_400_l_2_h_u_9_c_l'",
     "refused/held position 2 places q:3 q:9 key 1 holders 3 till 50 by a.b of u@h 9 c l l 2 fence "
     "7 age 600 left 4000"},
    /* A far waiter is told how long its place is kept. */
    {"*11 'QUEUED' :1000 'q:3' :30 :0 :1 :0 :0 '' ~ :12345",
     "refused/held position 30 places q:3 kept 12345"},
    {"*11 'QUEUED' :1000 'q:3' :30 :0 :1 :0 :0 '' :4 :-12345",
     "refused/held position 30 places q:3"},
    {"*9 'QUEUED' :1000 'q:3' :1 :1 :1 :0 :0 ''", "refused/held position 1 places q:3 requeued"},
    {"*7 'HELD' :1000 :0 :1 :1 :4000 '5000_3000_7_own_400_s_0_-_-_-_-_-'",
     "refused/held holders 1 till 4000 by own of @ 0   s fence 7 age 600 left 4000"},
    /* Without a holder: the first waiter. */
    {"*7 'HELD' :1000 :4 :1 :0 :0 '5000_w1_900_s_h_u_8_c_l'",
     "refused/held position 4 first w1 of u@h 8 c l s age 100"},
    {"*9 'QUEUED' :1000 'q:3' :2 :0 :2 :0 :0 '5000_w1_900_s_h_u_8_c_l'",
     "refused/held position 2 places q:3 key 1 first w1 of u@h 8 c l s age 100"},
    {"*7 'HELD' :1000 :4 :1 :1 :0 '5000_w1_900_s_h_u_8_c_l'", "refused/held position 4 holders 1"},
    {"*2 'STALE' :1000", "unknown/unreachable stale the request took too long"},
    {"*2 'BARRED' :1000", "unknown/unreachable the request was withdrawn"},
    {"*6 'LOST' :1000 :3 :1 :0 '900_3000_7_own_400_x_0_h_u_9_c_l'",
     "refused/not-holder key 2 holders 1 by own of u@h 9 c l x fence 7 age 600 left -100"},
    {"*6 'CHANGED' :1000 :1 :0 :0 ''", "refused/changed"},
    {"*3 'MISFIT' :1000 'damaged'",
     "refused/misfit the store's key of that name holds other data, or is damaged"},
    {"*4 'MISFIT' :1000 'latch/1' :2",
     "refused/misfit key 1 the key is a latch; rlock latch status shows it"},
    {"*4 'MISFIT' :1000 'limit_3' :1",
     "refused/misfit it is held as a semaphore with a limit of 3"},
    {"*3 'MISFIT' :1000 'barrier/1'", "refused/misfit not a lock: the key holds 'barrier/1'"},
    {"*3 'MISFIT' :1000 'lock/2'",
     "refused/misfit layout lock/2 needs a newer rlock (this one reads lock/1)"},
    {"*3 'MISFIT' :1000 'lock/10_1.4.2'",
     "refused/misfit layout lock/10 needs rlock 1.4.2 or newer"},
    {"*3 'MISFIT' :1000 'minimum_99.10.0'",
     "refused/misfit the store asks for rlock 99.10.0 or newer; this is rlock " PACKAGE_VERSION},
    {"*3 'MISFIT' :1000 'lock/0'", "refused/misfit not a lock: the key holds 'lock/0'"},
    {"*3 'MISFIT' :1000 'lock/_2'", "refused/misfit not a lock: the key holds 'lock/ 2'"},
    {"*2 'MISFIT' :1000", "refused/misfit not a lock: the key holds '?'"},
    {"-WRONGTYPE_Operation", "unknown/misfit maybe the store's key of that name holds other data"},
    {"-NOPERM_no", "unknown/denied no right to run a command that it needs"},
    {"-LOADING_it", "unknown/not-ready still loading its data"},
    {"-NOSCRIPT_none", "unknown/not-ready it does not keep the scripts it is sent"},
    {"-READONLY_yes", "unknown/not-ready a read-only replica; locks live on the master"},
    {"-ERR_what", "unknown/unfit maybe it answers with an error: ERR what"},

    {"*5 'MEMBER' :1 :1 'GRANTED' *0", NONE " remembers 1 of 1"},
    {"*5 'MEMBER' :1 :1 *5 'MEMBER' :1 :1 *2 'RELEASED' :1000 *0 *0", NONE " remembers 1 of 1"},

    /* H130: numbers that are too large to reckon with, in each place. */
    {"*4 'GRANTED' :9223372036854775807 *1 '9007199254740991' *1 :100000",
     "granted fence 9007199254740991 slot 100000"},
    {"*5 'MEMBER' :9007199254740992 :9007199254740992 *6 'LOST' :1000 :1 :0 :0 '' *0",
     "refused/not-holder remembers 4611686018427 of 4611686018427"},
    {"*6 'GRACE' :1000 :9223372036854775807 '' :9223372036854775807 :9223372036854775807",
     "refused/grace position 9007199254740991 places  grace 4611686018427 the server may have lost "
     "locks; it grants nothing new for another 53376d00h"},
    {"*6 'GRACE' :1000 :-9223372036854775808 '' :-9223372036854775808 :-1",
     "refused/grace places  the server may have lost locks; it grants nothing new for another 1s"},
    {"*6 'GRACE' :1000 :9007199254740992 '' :-1 :1",
     "refused/grace places  grace 4611686018427 requeued the server may have lost locks; it grants "
     "nothing new for another 53376d00h"},
    {"*9 'QUEUED' :1000 '' :9223372036854775807 :9223372036854775807 :9223372036854775807 "
     ":9223372036854775807 :9223372036854775807 ''",
     "refused/held position 9007199254740991 places  holders 9007199254740991 till 4611686018427"},
    {"*9 'QUEUED' :1000 '' :-1 :-1 :-9223372036854775808 :-9223372036854775808 :-1 ''",
     "refused/held places "},
    {"*9 'QUEUED' :1000 '' :1 :0 :32 :0 :0 ''", "refused/held position 1 places  key 31"},
    {"*9 'QUEUED' :1000 '' :1 :0 :33 :0 :0 ''", "refused/held position 1 places "},
    {"*7 'HELD' :1000 :-5 :0 :-5 :9223372036854775807 ''", "refused/held till 4611686018427"},
    {"*4 'MISFIT' :1000 'limit_99999999999999999999999' :1",
     "refused/misfit it is held as a semaphore with a limit of 99999999999999999999"},
    {"*6 'LOST' :1000 :1 :0 :0 '5000_3000_7_own_400_x_0_'",
     "refused/not-holder by own of @ 0   x fence 7 age 600 left 4000"},
    {"*6 'LOST' :-9223372036854775808 :1 :0 :0 '9007199254740991_1_7_own_0_x_0_h_u_9_c_l'",
     "refused/not-holder by own of u@h 9 c l x fence 7 age 0 left 4611686018427"},
    {"*6 'LOST' :9223372036854775807 :1 :0 :0 '5_1_7_own_0_x_0_h_u_9_c_l'",
     "refused/not-holder by own of u@h 9 c l x fence 7 age 0 left 5"},
    {"*6 'LOST' :9007199254740992 :1 :0 :0 '0_1_7_own_0_x_0_h_u_9_c_l'",
     "refused/not-holder by own of u@h 9 c l x fence 7 age 4611686018427 left -4611686018427"},
};

/* Replies with one outcome: some that are sound; grants that are none; H130, numbers that are too
 * large to reckon with; and replies that are damaged, but understood: what is missing is not made
 * up. */
static const struct {
    const char *wanted;
    const char *const *replies;
} alike[] = {
    {"granted", INPUTS("*2 'RELEASED' :1000", "*2 'MARKED' :1000")},
    {"granted fence 7",
     INPUTS("*5 'RENEWED' :1000 *1 '7' *1 :0 :0", "*5 'RENEWED' :1000 *1 '7' *1 :0 :-1",
            "*5 'RENEWED' :1000 *1 '7' *1 :0 :9223372036854775807",
            "*5 'MEMBER' :-9223372036854775808 :9223372036854775807 *4 'GRANTED' :1000 *1 '7' *1 "
            ":0 *1 :9223372036854775807")},
    {"refused/held position 1 places q:3",
     INPUTS("*9 'QUEUED' :1000 'q:3' :1 :0 :1 :0 :0 'garbage'",
            "*9 'QUEUED' :1000 'q:3' :1 :0 :1 :0 :0 ~")},
    {"refused/held position 4",
     INPUTS("*7 'HELD' :1000 :4 :1 :0 :0 ''",
            "*7 'HELD' :1000 :4 :1 :0 :0 '5000_3000_7_own_400_x_0_h_u_9_c_l'")},
    {"refused/misfit it is held as a plain lock, not as a semaphore",
     INPUTS("*4 'MISFIT' :1000 'lock' :1", "*4 'MISFIT' :1000 'lock' :9223372036854775807",
            "*4 'MISFIT' :1000 'lock' :-9223372036854775808")},
    {NONE,
     INPUTS("'GRANTED'", "*1 'MEMBER'", "*4 'MEMBER' :1 :1 'GRANTED'", "+GRANTED", ":1", "+OK", "~",
            "''", "*0", "*1 'GRANTED'", "*2 'GRANTED' :1000", "*3 'GRANTED' :1000 '7'",
            "*3 'GRANTED' :1000 *1 '7'", "*4 'GRANTED' :1000 '7' :0", "*4 'GRANTED' :1000 ~ *1 :0",
            "*4 'GRANTED' :1000 *0 *0", "*4 'GRANTED' :1000 *1 '7' *0",
            "*4 'GRANTED' :1000 *1 '7' *2 :0 :0", "*4 'GRANTED' :1000 *1 '7' *1 :-1",
            "*4 'GRANTED' :1000 *1 '7' *1 :4294967296", "*4 'GRANTED' :1000 *1 ~ *1 :0",
            "*4 'GRANTED' :1000 *1 :7 *1 :0", "*4 'GRANTED' :1000 *1 '' *1 :0",
            "*4 'GRANTED' :1000 *1 '0' *1 :0", "*4 'GRANTED' :1000 *1 '-7' *1 :0",
            "*4 'GRANTED' :1000 *1 '+7' *1 :0", "*4 'GRANTED' :1000 *1 '7.5' *1 :0",
            "*4 'GRANTED' :1000 *1 'nan' *1 :0", "*4 'GRANTED' :1000 *1 '1e15' *1 :0",
            "*4 'GRANTED' :1000 *1 '99999999999999999999' *1 :0",
            "*4 'GRANTED' :1000 *2 '7' 'x' *2 :0 :0", "*4 'GRANTED' :1000 *1 *1 '7' *1 :0",
            "*5 'RENEWED' :1000 ~ *1 :0 :0", "*4 'granted' :1000 *1 '7' *1 :0",
            "*4 'GRANTEDx' :1000 *1 '7' *1 :0", "*4 '' :1000 *1 '7' *1 :0",
            "*4 +GRANTED :1000 *1 '7' *1 :0", "*4 -GRANTED :1000 *1 '7' *1 :0",
            "*4 ~ :1000 *1 '7' *1 :0", "*4 :7 :1000 *1 '7' *1 :0",
            "*1 *4 'GRANTED' :1000 *1 '7' *1 :0", "*7 'LOCK' :1000 '7' '' :0 *0 *0",
            "*4 'GRANTED' :-9223372036854775808 *1 '9007199254740992' *1 :0",
            "*4 'GRANTED' :1000 *1 '9223372036854775807' *1 :0",
            "*4 'GRANTED' :1000 *1 " DIGITS " *1 :0", "*4 'GRANTED' :1000 *1 '7' *1 :100001",
            "*4 'GRANTED' :1000 *1 '7' *1 :9223372036854775807",
            "*4 'GRANTED' :1000 *1 '7' *1 :-9223372036854775808")},
    {"refused/not-holder",
     INPUTS("*6 'LOST' :1000 :1 :0 :0 ''", "*6 'ABSENT' :1000 :1 :0 :0 ''", "*1 'LOST'",
            "*6 'LOST' :1000 :1 :0 :0 '5000_3000_7'",
            "*6 'LOST' :1000 :1 :0 :0 '5000_3000_7_own_400'",
            "*6 'LOST' :1000 :1 :0 :0 '5000_3000_7_own_400_x'",
            "*6 'LOST' :1000 :1 :0 :0 '5000_3000_7_own_400_y_0_h_u_9_c_l'",
            "*6 'LOST' :1000 :1 :0 :0 '5000_3000_7_own_400_xx_0_h_u_9_c_l'",
            "*6 'LOST' :1000 :1 :0 :0 '5000_3000_7_own_400_x_4294967296_h_u_9_c_l'",
            "*6 'LOST' :1000 :1 :0 :0 '-5000_3000_7_own_400_x_0_h_u_9_c_l'",
            "*6 'LOST' :1000 :1 :0 :0 '5000_3000_7__400_x_0_h_u_9_c_l'",
            "*6 'LOST' :1000 :1 :0 :0 '99999999999999999999_3000_7_own_400_x_0_h_u_9_c_l'")},
    {"refused/held", INPUTS("*1 'QUEUED'", "*9 'QUEUED' 'x' :1 'x' 'x' 'x' 'x' 'x' :5",
                            "*7 'HELD' :1000 ~ :-3 'x' ~ *1 '5000_3000_7_own_400_h'",
                            "*7 'HELD' :1000 :0 :33 :0 :0 ''")},
};

static const struct {
    const char *reply;
    struct redis_rest wanted;
} rests[] = {
    {"*7 'LOCK' :1000 '7' '' :0 *0 *0", {0, 0}},
    {"*11 'LOCK' :1000 '7' '' :0 *0 *0 *0 *0 :201 :1000", {201, 1000}},
    {"*11 'LOCK' :1000 '7' '' :0 *0 *0 *0 *0 :1000 :1000", {1000, 1000}},
    {"*11 'LOCK' :1000 '7' '' :0 *0 *0 *0 *0 :1001 :1000", {0, 0}},
    {"*11 'LOCK' :1000 '7' '' :0 *0 *0 *0 *0 :0 :1000", {0, 0}},
    {"*11 'LOCK' :1000 '7' '' :0 *0 *0 *0 *0 :-1 :1000", {0, 0}},
    {"*11 'LOCK' :1000 '7' '' :0 *0 *0 *0 *0 '201' '1000'", {0, 0}},
    {"*10 'LOCK' :1000 '7' '' :0 *0 *0 *0 *0 :201", {0, 0}},
    {"'LOCK'", {0, 0}},
};

static const struct {
    const char *reply, *wanted;
} inspections[] = {
    {"*7 'LOCK' :1000 '7' '' :0 *0 *0", "fence 7; granted"},
    {"*7 'LOCK' :1000 '0' '' :0 *0 *0", "fence 0; granted"},
    {"*7 'LOCK' :1000 '7' 'x' :0 *1 '5000_3000_7_own_400_x_0_h_u_9_c_l' *2 "
     "'5000_w1_900_x_h_u_8_c_-' '6000_w2_950_s_h_u_8_c_-'",
     "fence 7; holder own x 1 600 4000; waiter w1 x 100; waiter w2 s 50; granted"},
    {"*7 'LOCK' :1000 '7' 'x' :0 *2 '5000_3000_7_own_400_x_0_h_u_9_c_l_waited=250' "
     "'5000_3000_8_more_400_x_0_h_u_9_c_l_waited=9223372036854775807' *0",
     "fence 7; holder own x 1 600 4000 waited 250; holder more x 1 600 4000 waited 4611686018427; "
     "granted"},
    {"*7 'LOCK' :1000 '7' 's' :0 *1 '5000_3000_7_own_400_s_0_h' *0",
     "fence 7 shared; holder own s 1 600 4000; granted"},
    {"*7 'LOCK' :1000 '7' 'l' :3 *3 '5000_3000_7_a_400_l_2_h' '5000_3000_7_a.b_400_l_2_h' "
     "'5000_3000_7_ab_400_l_1_h' *0",
     "fence 7 limit 3; holder a l 2 600 4000; holder a.b l 1 600 4000; holder ab l 1 600 4000; "
     "granted"},
    {"*7 'LOCK' :1000 '7' 'x' :0 *3 '' ~ :5 *3 'x' *1 'x' '5000_w2_950_x_'",
     "fence 7; waiter w2 x 50; granted"},
    {"*7 'LOCK' :-5 ~ 'x' :-9 *1 '9007199254740991_1_7_own_9007199254740991_x_0_h' *0",
     "fence 0; holder own x 1 -4611686018427 4611686018427; granted"},
    /* H130 */
    {"*7 'LOCK' :1000 '9007199254740991' 'l' :100000 *0 *0", "fence 9007199254740991 limit 100000; "
                                                             "granted"},
    {"*7 'LOCK' :1000 '9007199254740992' 'l' :100001 *0 *0", "fence 0 limit 0; granted"},
    {"*7 'LOCK' :1000 '-7' 'l' :9223372036854775807 *0 *0", "fence 0 limit 0; granted"},
    {"*7 'LOCK' :1000 '' 'l' :-9223372036854775808 *0 *0", "fence 0 limit 0; granted"},
    {"*7 'LOCK' :1000 " DIGITS " '' :0 *0 *0", "fence 0; granted"},
    {"*7 'LOCK' :1000 '7' 'x' :0 *5 '9007199254740992_1_7_a_0_x_0_h' "
     "'5000_9007199254740992_7_a_0_x_0_h' '5000_1_9007199254740992_a_0_x_0_h' "
     "'5000_1_7_a_9007199254740992_x_0_h' '5000_1_7_a_0_x_100001_h' *2 '9007199254740992_a_0_x_h' "
     "'5000_a_9007199254740992_x_h'",
     "fence 7; granted"},
    {"*8 'LOCK' :1000 '7' '' :0 *0 *0 'more'", "fence 7; granted"},
    {"*3 'MISFIT' :1000 'x'", "refused/misfit not a lock: the key holds 'x'"},
    {"-NOPERM_no", "unknown/denied no right to run a command that it needs"},
};

/* Notes behind a holder, and what they say. Kept by --at-least; nonsense is not known. */
static const struct {
    const char *notes, *wanted;
} holders[] = {
    {"kept=1", " kept"},
    {"kept=1_ran=4213_exit=0", " kept after 4213 with 0 signal 0"},
    {"waited=250_kept=1_ran=4213_exit=255", " waited 250 kept after 4213 with 255 signal 0"},
    {"kept=1_ran=1_signal=9", " kept after 1 with 0 signal 9"},
    {"kept=1_ran=1_exit=256", " kept"},
    {"kept=1_ran=1_signal=4294967305", " kept"},
    {"kept=1_ran=9223372036854775807_exit=3", " kept after 4611686018427 with 3 signal 0"},
    {"kept=0_ran=x_exit=3", ""},
    {"kept", ""},
};

static const char *const *const inspections_not =
    INPUTS("*6 'LOCK' :1000 '7' '' :0 *0", "*7 'LOCK' :1000 '7' '' :0 *0 ~",
           "*7 'LOCK' :1000 '7' '' :0 'x' *0", "*7 'LOCKED' :1000 '7' '' :0 *0 *0",
           "*4 'GRANTED' :1000 *1 '7' *1 :0", "*2 'RELEASED' :1000",
           "*7 'HELD' :1000 :4 :1 :0 :0 ''", "*6 'LOST' :1000 :1 :0 :0 ''", "~", "*0");

/* H156: errors that come before a script does anything, and those of one that may have. */
static const char *const *const refusals = INPUTS(
    "NOSCRIPT No matching script. Please use EVAL.", "BUSY Redis is busy running a script.",
    "LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down",
    "TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN Hash slot not served",
    "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381",
    "CROSSSLOT Keys in request don't hash to the same slot", "NOAUTH Authentication required.",
    "NOPERM User ci has no permissions to run the 'evalsha' command",
    "EXECABORT Transaction discarded because of previous errors.",
    "READONLY You can't write against a read only replica. script: 2f, on @user_script:57.",
    "ERR Error running script (call to f_6d1): @user_script:9: -READONLY You can't write",
    "OOM command not allowed when used memory > 'maxmemory'. script: 2f, on @user_script:57.",
    "MISCONF Errors writing to the AOF file: No space left on device",
    "NOREPLICAS Not enough good replicas to write.", "ERR max number of clients reached",
    "ERR unknown command 'EVALSHA', with args beginning with: '2f'");
static const char *const *const failures = INPUTS(
    "", "ERR", "ERR what", "ERR Connection timed out", "ERR the proxy is LOADING what it knows",
    "ERR ACL failure in script: User ci has no permissions to run the 'hdel' command script: 2f",
    "ERR Error running script (call to f_6d1): @user_script:1: The user executing the script can't "
    "run this command or subcommand",
    "ERR Error running script (call to f_6d1): @user_script:9: attempt to index a nil value",
    "ERR Script attempted to access a non local key in a cluster node script: 2f",
    "WRONGTYPE Operation against a key holding the wrong kind of value script: 2f",
    "UNBLOCKED force unblock from blocking state, instance state changed (master -> replica?)");

/* An error of the server leaves open whether the request was done, or says that it was not. */
static void test_doubt(const char *text, bool maybe_done)
{
    struct answer answer;

    redis_error_of_script(text, &answer);
    tap_ok(answer.verdict == VERDICT_UNKNOWN && answer.maybe_done == maybe_done, "H156 %s done: %s",
           maybe_done ? "may be" : "not", text);
}

static void print_party(const struct lock_party *party, char *out)
{
    char slot[16] = "";

    if (party->slot)
        sprintf(slot, " %u", party->slot);
    if (party->owner[0])
        sprintf(out,
                " by %s of %s@%s %ld %s %s %c%s fence %" PRIu64 " age %" PRId64 " left %" PRId64,
                party->owner, party->who.user, party->who.host, party->who.pid, party->who.command,
                party->who.label, "xsl"[party->mode], slot, party -> fence, party -> age_ms,
                party -> left_ms);
}

static void summarise(const struct answer *answer, const struct redis_extra *extra, char *out)
{
    static const char *const verdicts[] = {"granted", "refused", "unknown"};
    static const char *const causes[] = {[CAUSE_NONE] = "",
                                         [CAUSE_HELD] = "/held",
                                         [CAUSE_NOT_HOLDER] = "/not-holder",
                                         [CAUSE_CHANGED] = "/changed",
                                         [CAUSE_MISFIT] = "/misfit",
                                         [CAUSE_GRACE] = "/grace",
                                         [CAUSE_DENIED] = "/denied",
                                         [CAUSE_UNFIT] = "/unfit",
                                         [CAUSE_NOT_READY] = "/not-ready",
                                         [CAUSE_UNREACHABLE] = "/unreachable"};

    out += sprintf(out, "%s%s", verdicts[answer->verdict], causes[answer->cause]);
    for (size_t i = 0;
         answer->granted.grants && i < LOCK_KEYS_MAX && answer->granted.grants[i].fence; i++) {
        out += sprintf(out, " fence %" PRIu64, answer->granted.grants[i].fence);
        if (answer->granted.grants[i].slot)
            out += sprintf(out, " slot %u", answer->granted.grants[i].slot);
        if (answer->granted.grants[i].nested)
            out += sprintf(out, " nested");
    }
    if (answer->refused.position)
        out += sprintf(out, " position %" PRId64, answer->refused.position);
    if (extra->places)
        out += sprintf(out, " places %s", extra->places);
    if (answer->refused.key)
        out += sprintf(out, " key %zu", answer->refused.key);
    if (answer->refused.holders)
        out += sprintf(out, " holders %" PRId64, answer->refused.holders);
    if (answer->refused.left_ms)
        out += sprintf(out, " till %" PRId64, answer->refused.left_ms);
    if (answer->refused.next_call_ms)
        out += sprintf(out, " kept %" PRId64, answer->refused.next_call_ms);
    if (answer->grace_ms)
        out += sprintf(out, " grace %" PRId64, answer->grace_ms);
    out += sprintf(out, "%s%s%s%s", answer->granted.forgotten ? " forgotten" : "",
                   answer->refused.requeued ? " requeued" : "", answer->maybe_done ? " maybe" : "",
                   extra->word && strcmp(extra->word, "STALE") == 0 ? " stale" : "");
    if (answer->text[0])
        out += sprintf(out, " %s", answer->text);
    if (extra->seniority.memory_ms)
        out += sprintf(out, " remembers %" PRId64 " of %" PRId64, extra->seniority.memory_ms,
                       extra->seniority.service_ms);
    if (answer->refused.holder)
        print_party(answer->refused.holder, out);
    const struct lock_party *first = answer->refused.first;
    if (first)
        sprintf(out + strlen(out), " first %s of %s@%s %ld %s %s %c age %" PRId64, first->owner,
                first->who.user, first->who.host, first->who.pid, first->who.command,
                first->who.label, "xsl"[first->mode], first -> age_ms);
}

static void take_view(void *arg, const struct lock_view *view)
{
    char *out = arg;

    out += strlen(out);
    out += sprintf(out, "fence %" PRIu64 "%s", view->fence,
                   view->mode == LOCK_SHARED ? " shared" : "");
    out += view->mode == LOCK_LIMIT ? sprintf(out, " limit %u; ", view->limit) : sprintf(out, "; ");
    for (size_t i = 0; i < view->holder_count; i++) {
        const struct lock_party *holder = &view->holders[i];
        out += sprintf(out, "holder %s %c %u %" PRId64 " %" PRId64, holder->owner,
                       "xsl"[holder->mode], holder -> count, holder -> age_ms, holder -> left_ms);
        if (holder->waited_ms)
            out += sprintf(out, " waited %" PRId64, holder->waited_ms);
        if (holder->kept)
            out += sprintf(out, " kept");
        if (holder->end.known)
            out += sprintf(out, " after %" PRId64 " with %d signal %d", holder->end.ran_ms,
                           holder->end.status, holder->end.signal);
        out += sprintf(out, "; ");
    }
    for (size_t i = 0; i < view->waiter_count; i++)
        out += sprintf(out, "waiter %s %c %" PRId64 "; ", view->waiters[i].owner,
                       "xsl"[view->waiters[i].mode], view -> waiters[i].age_ms);
}

/* In plain words; the server's own are kept beside them. */
static void test_error(const char *text, enum redis_error class, const char *plain)
{
    struct answer answer = {0};
    enum redis_error got = redis_error_class(text);
    char words[300];

    redis_error_answer(text, &answer);
    if (!tap_ok(got == class, "class %d: %s", (int)class, tap_show(text)))
        tap_note("got %d", (int)got);
    snprintf(words, sizeof words, "it answers with an error: %s", text);
    tap_is(answer.text, plain ? plain : words, "in words", text);
    tap_is(answer.said, text, "its own words", text);
    tap_ok(answer.login_refused == (class == REDIS_ERROR_LOGIN), "login: %s", tap_show(text));
}

/* The error of a host tells whether a login was refused; "R": by one of several servers. */
static void test_host_login(void)
{
    static const char of_login[] = "ajUR";

    for (const char *letter = "uenrWRajUkdK"; *letter; letter++) {
        struct answer answer = {0};
        char text[] = "RLOCKSTORE ?- 0  words";

        *strchr(text, '?') = *letter;
        redis_error_answer(text, &answer);
        tap_ok(answer.login_refused == (strchr(of_login, *letter) != NULL), "login: %s", text);
    }
}

/* An error that is too long ends with "...", once, whatever is put in front. */
static void test_long_error(void)
{
    static const char front[] = "redis://host: it answers with an error: xxx";
    char text[SAID_SIZE + 100];
    struct answer answer = {0};

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    redis_error_answer(text, &answer);
    answer_prepend(&answer, "redis://%s: ", "host");
    tap_ok(strncmp(answer.text, front, strlen(front)) == 0, "a long error: in words");
    tap_ok(strlen(answer.said) == SAID_SIZE - 1, "a long error: as much as there is room for");
    const char *end = answer.text + strlen(answer.text);
    tap_ok(strstr(answer.text, "...") == end - 3, "a long error: its end is marked");
}

/* A reply of a script, written as words, becomes that answer; no member keeps an old value. */
static void test_script(const char *brief, const char *wanted)
{
    char got[4000];
    redisReply *reply = reply_of_words(brief);
    struct answer answer;
    struct redis_extra extra;

    memset(&answer, 'x', sizeof answer);
    redis_answer_script(reply, &answer, &extra);
    summarise(&answer, &extra, got);
    tap_is(got, wanted, "script:", brief);
    freeReplyObject(reply);
}

/* A reply of the script "inspect", written as words, becomes that view of a lock. */
static void test_inspection(const char *brief, const char *wanted)
{
    char got[4000] = "";
    redisReply *reply = reply_of_words(brief);
    struct answer answer;
    struct redis_extra extra = {0};

    memset(&answer, 'x', sizeof answer);
    redis_answer_inspect(reply, "k", take_view, got, &answer);
    summarise(&answer, &extra, got + strlen(got));
    tap_is(got, wanted, "inspect:", brief);
    freeReplyObject(reply);
}

/* Each reply of a script is the answer that is beside it in a table, and a reply that no script
 * gives is none. */
static void test_replies(void)
{
    for (size_t i = 0; i < COUNT(replies); i++)
        test_script(replies[i].reply, replies[i].wanted);
    for (size_t i = 0; i < COUNT(alike); i++)
        EACH(reply, alike[i].replies)
            test_script(*reply, alike[i].wanted);
    for (size_t i = 0; i < COUNT(inspections); i++)
        test_inspection(inspections[i].reply, inspections[i].wanted);
    for (size_t i = 0; i < COUNT(holders); i++) {
        char words[200], wanted[200];
        snprintf(words, sizeof words,
                 "*7 'LOCK' :1000 '7' 'x' :0 *1 '5000_3000_7_own_400_x_0_h_u_9_c_l_%s' *0",
                 holders[i].notes);
        snprintf(wanted, sizeof wanted, "fence 7; holder own x 1 600 4000%s; granted",
                 holders[i].wanted);
        test_inspection(words, wanted);
    }
    EACH(text, refusals)
        test_doubt(*text, false);
    EACH(text, failures)
        test_doubt(*text, true);
    EACH(reply, inspections_not)
        test_inspection(*reply, NONE);
    for (size_t i = 0; i < COUNT(rests); i++) {
        redisReply *reply = reply_of_words(rests[i].reply);
        struct redis_rest rest = redis_answer_rest(reply), wanted = rests[i].wanted;
        tap_ok(rest.from == wanted.from && rest.to == wanted.to, "rest: %s", rests[i].reply);
        freeReplyObject(reply);
    }
}

/* The words that belong to each script; those of a grant are first. */
static const struct {
    const struct script *script;
    const char *words;
} belonging[] = {
    {&script_acquire, "GRANTED QUEUED HELD GRACE CLOSED ASKED STALE BARRED MISFIT SUPERSEDED DONE"},
    {&script_renew, "RENEWED LOST ASKED STALE MISFIT MIRROR"},
    {&script_release, "RELEASED ABSENT STALE MISFIT MIRROR"},
    {&script_force, "RELEASED CHANGED ASKED STALE MISFIT MIRROR"},
    {&script_init, "MARKED GRACE STALE"},
    {&script_adjust, "ADJUSTED NONE STALE MISFIT"},
    {&script_unmirror, "RELEASED ABSENT HELD STALE MISFIT"},
    {&script_latch, "STALE"},
    {&script_inspect, ""},
};

/* A grant belongs to a request for as many keys; it leaves some of them out only where it may, and
 * only a member tells how long it remembers. */
static const struct {
    size_t keys, take, granted, absent;
    bool of_member, by_member, wanted;
} grants[] = {
    {1, 0, 1, 0, false, false, true},  {3, 0, 3, 0, false, false, true},
    {2, 0, 1, 0, false, false, false}, {1, 0, 2, 0, false, false, false},
    {3, 1, 3, 2, false, false, true},  {3, 2, 3, 1, false, false, true},
    {3, 1, 3, 1, false, false, false}, {3, 2, 3, 2, false, false, false},
    {3, 1, 3, 0, false, false, false}, {3, 1, 3, 3, false, false, false},
    {3, 0, 3, 1, false, false, false}, {3, 1, 2, 1, false, false, false},
    {1, 0, 1, 0, true, true, true},    {1, 0, 1, 0, true, false, false},
    {1, 0, 1, 0, false, true, false},
};

static bool belongs(size_t script, const char *word, size_t grant)
{
    bool tells = strcmp(word, "GRANTED") == 0 || strcmp(word, "RENEWED") == 0;
    const struct redis_call call = {.script = belonging[script].script,
                                    .key_count = grants[grant].keys,
                                    .take = grants[grant].take,
                                    .names_server = grants[grant].of_member};
    struct redis_extra extra = {.word = word};

    if (tells) {
        extra.granted = grants[grant].granted;
        extra.absent = grants[grant].absent;
        extra.member = grants[grant].by_member;
    }
    return redis_answer_belongs(&call, &extra);
}

/* A reply counts only for the script that gives it, and a grant only for as many keys as were
 * asked for. */
static void test_belonging(void)
{
    for (size_t i = 0; i < COUNT(belonging); i++)
        for (size_t j = 0; j < COUNT(belonging); j++) {
            char words[100], wanted[100];
            snprintf(words, sizeof words, "%s", belonging[j].words);
            snprintf(wanted, sizeof wanted, " %s ", belonging[i].words);
            for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
                char spaced[20];
                snprintf(spaced, sizeof spaced, " %s ", word);
                tap_ok(belongs(i, word, 0) == (strstr(wanted, spaced) != NULL), "%s: %s",
                       belonging[i].script->name, word);
            }
        }
    for (size_t i = 0; i < COUNT(grants); i++)
        tap_ok(belongs(0, "GRANTED", i) == grants[i].wanted &&
                   belongs(1, "RENEWED", i) == grants[i].wanted && belongs(2, "RELEASED", i),
               "%zu granted, %zu of them absent, for %zu of %zu%s%s", grants[i].granted,
               grants[i].absent, grants[i].take, grants[i].keys,
               grants[i].of_member ? ", of a member" : "", grants[i].by_member ? ", by one" : "");
}

/* A NUL within a word does not end it. */
static void test_nul(void)
{
    static const char text[] = "*4\r\n$9\r\nGRANTED\0x\r\n:1000\r\n*1\r\n$1\r\n7\r\n*1\r\n:0\r\n";
    static const char fence[] = "*4\r\n$7\r\nGRANTED\r\n:1000\r\n*1\r\n$3\r\n7\0x\r\n*1\r\n:0\r\n";
    redisReply *word = reply_of(text, sizeof text - 1), *number = reply_of(fence, sizeof fence - 1);
    struct answer answer;
    struct redis_extra extra;

    redis_answer_script(word, &answer, &extra);
    tap_ok(answer.verdict == VERDICT_UNKNOWN, "a NUL within a word");
    redis_answer_script(number, &answer, &extra);
    tap_ok(answer.verdict == VERDICT_UNKNOWN, "a NUL within a fence");
    freeReplyObject(word);
    freeReplyObject(number);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(errors); i++)
        EACH(text, errors[i].texts)
            test_error(*text, errors[i].class, errors[i].plain);
    test_host_login();
    test_long_error();
    test_replies();
    test_belonging();
    test_nul();
    return tap_done();
}

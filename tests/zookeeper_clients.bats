# zookeeper:// beside the locks of other programs on the same server: Curator's in Java
# (CuratorLock.java) and kazoo's in Python (kazoo_lock.py). java_holds, java_waits NAME KIND KEY: a
# program with Curator; has_its_turn NAME: it comes to hold the lock, and ends undisturbed;
# waits_behind NAME KEY N: it is one of N in the queue.

load helper
load zookeepers

JAVA_CLASSES=$BATS_FILE_TMPDIR/classes
JAVA_PATH=$JAVA_CLASSES
for jar in curator-recipes curator-framework curator-client zookeeper zookeeper-jute guava \
    slf4j-api slf4j-nop; do
    JAVA_PATH+=:/usr/share/java/$jar.jar
done
# Debian's packages are for Debian's own Python, whatever else there is.
PYTHON=/usr/bin/python3

setup_file() {
    clean_environment
    has_zookeeper && has_clients || return 0
    ensemble_start 1
    javac -cp "$JAVA_PATH" -d "$JAVA_CLASSES" "$BATS_TEST_DIRNAME/CuratorLock.java"
}

setup() {
    has_clients || skip "these are missing: libcurator-recipes-java default-jdk-headless python3-kazoo"
    zookeeper_setup
}

has_clients() {
    [[ -e /usr/share/java/curator-recipes.jar ]] && command -v javac >/dev/null &&
        "$PYTHON" -c 'import kazoo' 2>/dev/null
}

# java_lock NAME mutex|read|write|N KEY: a Java program that wants the lock, or one of N leases, and
# holds it until it is told to "go".
java_lock() {
    rm -f "$T/$1.up" "$T/$1.go"
    bg "$1" java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$JAVA_PATH" CuratorLock \
        "$(ensemble_hosts)" "$2" "/test/$BATS_TEST_NUMBER/$3" "$1" "$T"
}

# python_lock NAME KEY: a Python program that wants the lock, and holds it until it is told to "go".
python_lock() {
    rm -f "$T/$1.up" "$T/$1.go"
    bg "$1" "$PYTHON" "$BATS_TEST_DIRNAME/kazoo_lock.py" "$(ensemble_hosts)" \
        "/test/$BATS_TEST_NUMBER/$2" "$1" "$T"
}

# has_lock NAME: it comes to hold the lock.
has_lock() {
    poll_until 60 test -e "$T/$1.up"
}

# waits_behind NAME KEY NUMBER: it is one of so many in KEY's queue, and does not hold the lock.
waits_behind() {
    poll_until 60 has_waiters "$2" "$3"
    [[ ! -e $T/$1.up ]]
}

# java_holds NAME mutex|read|write|N KEY; java_waits NAME mutex|read|write|N KEY NUMBER.
java_holds() {
    java_lock "$@"
    has_lock "$1"
}

java_waits() {
    java_lock "$@"
    waits_behind "$1" "$3" "$4"
}

# has_its_turn NAME: a Java or Python program comes to hold the lock, releases it, and was not
# disturbed.
has_its_turn() {
    has_lock "$1"
    : >"$T/$1.go"
    ends_with "$1" 0 60
}

# Four owners take the lock in the order in which they came, whichever program they use: rlock a,
# Curator b, rlock c, Curator d.
@test "Curator's mutex waits for rlock, rlock for the mutex, and all are served in their order" {
    stay a k
    java_waits b mutex k 1
    queue c k
    java_waits d mutex k 3
    ends_well a
    has_lock b
    run -75 rlock run -n k -- true
    has_waiters k 2
    has_its_turn b
    finish c 60
    has_its_turn d
    [[ $(xargs <"$LOG") == "b c d" ]]
    run -0 rlock run -n k -- true
}

# A writer keeps readers and writers of the other program out, in both directions.
@test "Curator's writer keeps rlock's readers and writers out, and they keep it out" {
    java_holds a write k
    run -75 rlock run -n k -- true
    run -75 rlock run -n --read k -- true
    queue b k --read
    has_its_turn a
    ends_with b 0 60
    stay c k
    java_waits d write k 1
    ends_well c
    has_its_turn d
    [[ $(xargs <"$LOG") == "a b d" ]]
}

# A reader of Curator and one of rlock hold the lock together. A writer of either waits until the
# readers of the other have left.
@test "Curator's readers share the lock with rlock's, and writers of either wait for both" {
    java_holds a read k
    stay b k --read
    queue c k
    has_its_turn a
    [[ $(xargs <"$LOG") == a ]]
    ends_well b
    finish c 60
    stay d k --read
    java_holds e read k
    java_waits f write k 1
    ends_well d
    [[ ! -e $T/f.up ]]
    has_its_turn e
    has_its_turn f
    [[ $(xargs <"$LOG") == "a c e f" ]]
}

@test "Curator's reader waits for rlock, and gets the lock from it" {
    stay a k
    java_waits b read k 1
    ends_well a
    has_lock b
    run -75 rlock run -n k -- true
    run -0 rlock run -n --read k -- true
    has_its_turn b
}

# Owners of both programs take the two places of one semaphore. A third one of either waits, and
# each has its turn in the order of arrival.
@test "Curator's semaphore and rlock's --limit count together, and call each other in their order" {
    java_holds a 2 k
    stay b k --limit 2
    status_json k '.[0].mode == "limit" and (.[0].holders | length) == 2'
    run -75 rlock run -n --limit 2 k -- true
    queue c k --limit 2
    java_waits d 2 k 2
    queue e k --limit 2
    has_its_turn a
    finish c 60
    has_lock d
    run -75 rlock run -n --limit 2 k -- true
    has_its_turn d
    finish e 60
    ends_well b
    [[ $(xargs <"$LOG") == "a c d e" ]]
    prints 0 1 run -n --limit 2 k -- sh -c 'echo $RLOCK_SLOT'
}

# For a mutex and a semaphore: a holder of one program is killed, and a waiter of the other one has
# its turn when the session has expired.
@test "a Java program is killed: rlock has its lock or lease when the session ends; the reverse" {
    for kind in mutex 1; do
        [[ $kind == mutex ]] && set -- || set -- --limit 1
        java_holds a $kind k-$kind
        queue b k-$kind "$@"
        kill -KILL "${pid[a]}"
        ends_with b 0 60
        hold c k-$kind --lease 9s "$@"
        java_waits d $kind k-$kind 1
        kill_both c
        has_its_turn d
    done
}

# A run ends while one that nests in it still works: a Java program has to wait for both.
@test "a lock that is nested in rlock's keeps Java out until both have gone" {
    bg a rlock run k -- sh -c "rlock run k -- sh -c ': >\"$T/inner\"
        await \"$T/go\"' & until test -e '$T/inner'; do sleep 0.1; done"
    poll_until 20 test -e "$T/inner"
    finish a
    java_waits b mutex k 1
    : >"$T/go"
    has_its_turn b
}

@test "kazoo's lock that is told of lock- waits for rlock, and rlock for it" {
    stay a k
    python_lock b k
    waits_behind b k 1
    queue c k
    ends_well a
    has_lock b
    run -75 rlock run -n k -- true
    has_its_turn b
    finish c
    [[ $(xargs <"$LOG") == "b c" ]]
}

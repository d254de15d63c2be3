# A server that loses, restores, moves or evicts what it was told. lost_soon COMMAND: worker a
# learns by its next renewal, 7 s away at most, that its lock is gone after COMMAND.

load helper

setup_file() { start_file --databases 16; }

# lost_soon COMMAND...: worker a learns by its next renewal, 7 s away at most, that the lock is gone
# after COMMAND. An rlock that missed that would stop it 15 s after the last renewal.
lost_soon() {
    at_work a k forever --lease 21s -- tree
    "$@"
    timed 0 14000 ends_with a 79
    contains "$T/a.err" "rlock: "
}

@test "H42 a restart without data: noticed at once by the broken connection" {
    at_work a k forever --lease 90s -- tree
    redis_restart
    ends_with a 79
}

# The waiter w asks once the log shows that worker a, which lost_soon starts, has the lock.
@test "H44 FLUSHALL: noticed at the next renewal, and the waiter continues" {
    bg w bash -c 'until grep -qs "^a " "$1"; do sleep 0.02; done; exec "$RLOCK" run k -- true' \
        bash "$LOG"
    flush_with_waiter() {
        poll_until 10 has_waiters k 1
        redis flushall
    }
    lost_soon flush_with_waiter
    ends_with w 0
}

@test "H45 H46 H48 DEL, RENAME, SWAPDB or eviction of a lock: noticed at the next renewal" {
    evict() {
        redis config set maxmemory-policy volatile-lru
        redis config set maxmemory 1
    }
    for way in 'redis del rlock:{k}' 'redis rename rlock:{k} elsewhere' 'redis swapdb 0 1' evict; do
        echo "--- $way"
        rm -f "$LOG"
        lost_soon $way
        redis flushall
    done
}

@test "H43 a lock that a snapshot brings back is over when its lease is" {
    stay a k --lease 15s
    redis save
    ends_well a
    redis_restart
    run -75 rlock run -n k -- true
    run -0 rlock run -w 60s k -- true
    rm -f "$REDIS_DIR/dump.rdb"
    : >"$T/redis.dirty"
}

@test "H47 the fence grows also when the server forgot the last one" {
    local i last=0
    for i in 1 2 3 4 5 6; do
        run -0 rlock run k -- sh -c 'echo "$RLOCK_FENCE"'
        ((output > last))
        last=$output
        case $i in
        1 | 3) redis del 'rlock:{k}' ;;
        2) redis flushall ;;
        4) redis_restart ;;
        esac
    done
}

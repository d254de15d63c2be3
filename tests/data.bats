# A server that loses, restores, moves or evicts what it was told.

load helper

setup_file() { start_file --databases 16; }

# lost_soon LIMIT COMMAND...: worker a, with a lease of 15 s, learns within LIMIT ms that the lock
# is gone after COMMAND.
lost_soon() {
    local limit=$1 start
    shift
    at_work a k 100 --lease 15s -- tree
    "$@"
    start=$(now_ms)
    ends_with a 79
    took 0 "$limit" "$start"
    contains "$T/a.err" "rlock: "
}

restart_empty() {
    redis_stop
    redis_start
}

@test "H42 a restart without data: noticed at once by the broken connection" {
    lost_soon 3500 restart_empty
}

@test "H44 FLUSHALL: noticed at the next renewal, and the waiter continues" {
    bg w bash -c 'until grep -qs "^a " "$1"; do sleep 0.02; done; exec "$RLOCK" run k -- true' \
        bash "$LOG"
    flush_with_waiter() {
        poll_until 10 has_waiters k 1
        redis flushall
    }
    lost_soon 9000 flush_with_waiter
    ends_with w 0
}

@test "H45 DEL by an administrator: noticed at the next renewal" {
    lost_soon 9000 redis del 'rlock:{k}'
}

@test "H45 force-release: the holder's command is stopped, the next waiter is woken" {
    export T
    bg w bash -c 'until grep -qs "^a " "$1"; do sleep 0.02; done
        exec "$RLOCK" run k -- sh -c "date +%s%3N >$T/start"' bash "$LOG"
    take() {
        poll_until 10 has_waiters k 1
        forced=$(date +%s%3N)
        rlock force-release --now --yes k
    }
    lost_soon 9000 take
    finish w
    took 0 2000 "$forced" "$(<"$T/start")"
}

@test "H46 eviction of the lock: noticed at the next renewal" {
    evict() {
        redis config set maxmemory-policy volatile-lru
        redis config set maxmemory 1
    }
    lost_soon 9000 evict
}

@test "H48 SWAPDB: noticed at the next renewal" {
    lost_soon 9000 redis swapdb 0 1
}

@test "H48 RENAME: noticed at the next renewal; renamed back, the lock ends with its lease" {
    lost_soon 9000 redis rename 'rlock:{k}' elsewhere
    redis rename elsewhere 'rlock:{k}'
    run -0 rlock run -w 25s k -- true
}

@test "H43 a lock that a snapshot brings back is over when its lease is" {
    stay a k --lease 15s
    redis save
    ends_well a
    redis_stop
    redis_start
    run -75 rlock run -n k -- true
    run -0 rlock run -w 25s k -- true
    rm -f "$REDIS_DIR/dump.rdb"
    : >"$T/redis.dirty"
}

@test "H47 the fence grows also when the server forgot the last one" {
    local i last=0
    for i in 1 2 3 4 5 6; do
        # shellcheck disable=SC2016
        run -0 rlock run k -- sh -c 'echo "$RLOCK_FENCE"'
        ((output > last))
        last=$output
        case $i in
        1 | 3) redis del 'rlock:{k}' ;;
        2) redis flushall ;;
        4) restart_empty ;;
        esac
    done
}

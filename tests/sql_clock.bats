# A database server whose clock is set. each_database: what follows is done with each server that is
# here.

load helper
load databases

setup_file() {
    server_clock_file
    export DATABASE_PRELOAD=$RLOCK_TEST_TOOLS/shim_clock.so
    databases_start
}

teardown() {
    server_clock 0
    databases_reset
}

# The server's seconds since 1970.
server_now() {
    case $DATABASE in
    postgresql) database_sql postgresql 'SELECT floor(extract(epoch FROM clock_timestamp()))' ;;
    mysql) database_sql mysql 'SELECT floor(UNIX_TIMESTAMP(NOW(6)))' ;;
    esac
}

@test "the tests can move the clock of each database server" {
    each_database
    server_clock 0
    before=$(server_now)
    server_clock -3600000
    # An hour back, less what these lines take, which may be up to ten minutes.
    (($(server_now) <= before - 3000))
}

@test "H138 a clock is set back by an hour: dead holders block a lock and a slot for their lease" {
    each_database
    server_clock 0
    hold dead k --lease 9s
    hold slot s --lease 9s --limit 2
    kill_both dead
    kill_both slot
    server_clock -3600000
    queue b k
    run -75 rlock run -n k -- true
    run -78 rlock run -n s -- true
    in_turn 30 b
    poll_until 30 has_status 0 run -n s -- true
}

@test "H138 a clock set back by an hour: a live holder keeps its lock; a dead waiter is passed" {
    each_database
    server_clock 0
    stay a k --lease 9s
    queue gone k
    queue b k
    kill_both gone
    server_clock -3600000
    renewed k
    run -75 rlock run -n k -- true
    ends_well a
    in_turn 20 b
}

# A server that is there, but busy, loading, paused or slow. two_holders: "short" has a lease of 2
# s, "long" one of 18 s. trouble_is_felt: short has lost its lock by now; long_goes_on: long is
# renewed, and keeps it.

load helper

setup_file() { start_file --enable-debug-command yes; }

@test "H13 a busy script: waited for, not killed by rlock; a short lease ends its command" {
    redis config set busy-reply-threshold 100
    two_holders
    bg loop redis-cli -s "$REDIS_SOCK" eval 'while true do end' 0
    poll_until 10 eval '[[ $(redis ping 2>&1) == *BUSY* ]]'
    run -69 --separate-stderr rlock run --connect-timeout 3s k -- touch "$T/run"
    stderr_line "^rlock: k: unix://$REDIS_SOCK: busy with a script that takes long(, for [0-9]+s)?\$"
    trouble_is_felt
    [[ $(redis ping 2>&1) == *BUSY* && ! -e $T/run ]]
    redis script kill
    long_goes_on
}

@test "H14 a loading server: waited for; a short lease ends its command" {
    redis eval 'for i = 1, 3300 do redis.call("set", "fill" .. i, string.rep("x", 1024)) end' 0
    two_holders
    redis config set loading-process-events-interval-bytes 1024
    redis config set key-load-delay 10000 # microseconds a key
    bg reload redis-cli -s "$REDIS_SOCK" debug reload
    poll_until 10 eval '[[ $(redis ping 2>&1) == *LOADING* ]]'
    says 69 '[Ll][Oo][Aa][Dd][Ii][Nn][Gg]' run --connect-timeout 3s k -- touch "$T/run"
    trouble_is_felt
    redis config set key-load-delay 0
    long_goes_on
}

@test "H23 paused writes: the command is stopped in time, and a late request takes nothing" {
    two_holders
    redis client pause 600000 write
    bg late rlock run -w 1s --connect-timeout 3s k -- touch "$T/run"
    finish late
    [[ $status == 69 || $status == 75 ]]
    trouble_is_felt
    redis client unpause
    long_goes_on
    run -0 rlock status -q k
    [[ ! -e $T/run ]]
}

@test "H24 a server that sleeps: the lease counts from the request" {
    two_holders
    renewed long
    redis debug sleep 11 >/dev/null # the long one's renewal is due, and is given up, within it
    trouble_is_felt
    long_goes_on
}

@test "H24 a grant that comes late counts from its request" {
    start_proxy
    fault on down any delay down 5400
    work a k 1 -u "redis://${proxy[proxy]}" --lease 6s
    work b k 0.5 --lease 6s
    ends_with a 0
    ends_with b 0
    no_overlap
}

# An answer that is lost on the way by a Sentinel, of the Sentinel or of the master.

load helper
load sentinels
load flights

by_sentinels() { sentinel_url "127.0.0.1:$1" "127.0.0.1:$2" "127.0.0.1:$3"; }

@test "H141 an answer of a Sentinel or of its master that is lost: it runs once, the lock is free" {
    each_flight "${port[1]},${port[2]},${port[3]},${port[a]},${port[b]}" by_sentinels
}

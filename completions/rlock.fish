# Completion of rlock(1) for fish.

# The words before the cursor, up to "--" where it begins the wrapped command.
function __fish_rlock_words
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    and string match -qr -- '^(run|read|write|fence|latch run)\\b' "$words[2..3]"
    and set words $words[1..(math $at - 1)]
    string join \n -- $words
end

# The wrapped command's words, one a line; false if the cursor is not behind "--".
function __fish_rlock_wrapped
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    and string match -qr -- '^(run|read|write|latch run)\\b' "$words[2..3]"
    or return 1
    set -e words[1..$at]
    string join \n -- $words (commandline -ct)
    return 0
end

function __fish_rlock_complete_wrapped
    __fish_complete_subcommand --commandline (__fish_rlock_wrapped)
end

# Command and keys, without options and their values.
function __fish_rlock_operands
    set -l words (__fish_rlock_words)
    set -e words[1]
    set -l valued url prefix config password-file tls-ca tls-cert tls-key tls-server-name replicas \
        connect-timeout server-wait color wait timeout \
        conflict-exit-code lease at-least at-most kill-after on-lost notify stop \
        notify-after label report-fd owner command keep ttl id message held waiting \
        waiters not-done paused output listen allow-host auth-file mirror token
    set -l skip 0
    for word in $words
        if test $skip = number
            set skip 0
            string match -qr '^[0-9]+$' -- $word
            and continue
        end
        if test $skip = 1
            set skip 0
        else if string match -qr -- '^--' $word
            contains -- (string sub -s 3 -- $word) $valued
            and set skip 1
            test $word = --limit
            and set skip number
        else if string match -qr -- '^-[^uwEcm]*[uwEcm]$' $word
            set skip 1
        else if not string match -q -- '-*' $word
            echo $word
        end
    end
end

function __fish_rlock_needs_command
    __fish_rlock_wrapped >/dev/null
    and return 1
    set -l operands (__fish_rlock_operands)
    test (count $operands) = 0
end

# __fish_rlock_in COMMAND...: one of these is being typed, and the wrapped command is not.
function __fish_rlock_in
    __fish_rlock_wrapped >/dev/null
    and return 1
    set -l operands (__fish_rlock_operands)
    contains -- "$operands[1]" $argv
end

function __fish_rlock_needs_key
    __fish_rlock_in run read write status history events top serve check metrics force-release
    and return 0
    __fish_rlock_in acquire renew release reserve extend pause resume limit
    and test (count (__fish_rlock_operands)) = 1
end

function __fish_rlock_needs_dashes
    __fish_rlock_in run read write
    and test (count (__fish_rlock_operands)) -gt 1
    and return 0
    __fish_rlock_latch run
    and test (count (__fish_rlock_operands)) -gt 2
end

# __fish_rlock_latch ACTION...: one of these is being typed.
function __fish_rlock_latch
    __fish_rlock_in latch
    and contains -- (__fish_rlock_operands)[2] $argv
end

# Of a new one there is no name to offer.
function __fish_rlock_needs_latch
    __fish_rlock_latch count-down run wait status list delete
    and test (count (__fish_rlock_operands)) = 2
end

function __fish_rlock_needs_action
    __fish_rlock_in latch
    and test (count (__fish_rlock_operands)) = 1
end

# __fish_rlock_keys COMMAND: the keys that "status" or "latch list" shows, on the server that the line names: the first
# column of the table. A key shown escaped is left out.
function __fish_rlock_keys
    set -l words (__fish_rlock_words)
    set -l typed (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l where
    set -e words[1]
    set -l take 0
    for word in $words
        if test $take = 1
            set -a where $word
            set take 0
        else if contains -- $word -u --url --prefix --config --password-file \
                --tls-ca --tls-cert --tls-key --tls-server-name
            set -a where $word
            set take 1
        else if string match -qr -- '^--(local$|(url|prefix|config|password-file|tls-[a-z-]*)=)' $word
            set -a where $word
        end
    end
    command $typed $argv $where --color never --connect-timeout 1s --server-wait 0 </dev/null 2>/dev/null |
        sed -e 1d -e 's/ .*//' -e '/\\\\x/d' -e 's/\\\\\\\\/\\\\/g'
end

complete -c rlock -f
complete -c rlock -n __fish_rlock_wrapped -xa '(__fish_rlock_complete_wrapped)'

complete -c rlock -n __fish_rlock_needs_command -xa run -d 'Run a command while holding a lock'
complete -c rlock -n __fish_rlock_needs_command -xa read -d 'The same beside other readers'
complete -c rlock -n __fish_rlock_needs_command -xa write -d 'The same alone'
complete -c rlock -n __fish_rlock_needs_command -xa acquire -d 'Take a lock in a script'
complete -c rlock -n __fish_rlock_needs_command -xa renew -d 'Extend its lease'
complete -c rlock -n __fish_rlock_needs_command -xa release -d 'Release it'
complete -c rlock -n __fish_rlock_needs_command -xa status -d 'Show who holds what, who waits'
complete -c rlock -n __fish_rlock_needs_command -xa history -d 'Show who had a lock, when, how it ended'
complete -c rlock -n __fish_rlock_needs_command -xa events -d 'Show what happens to locks, as it happens'
complete -c rlock -n __fish_rlock_needs_command -xa top -d 'Locks on a full screen, live'
complete -c rlock -n __fish_rlock_needs_command -xa serve -d 'Metrics, JSON and a page over HTTP'
complete -c rlock -n __fish_rlock_needs_command -xa check -d 'One line and a status for monitors'
complete -c rlock -n __fish_rlock_needs_command -xa metrics -d 'Print metrics for Prometheus'
complete -c rlock -n __fish_rlock_needs_command -xa force-release -d 'Take a lock away from its holder, which is asked first'
complete -c rlock -n __fish_rlock_needs_command -xa reserve -d 'Take a lock for a person'
complete -c rlock -n __fish_rlock_needs_command -xa extend -d 'Keep what was reserved for longer'
complete -c rlock -n __fish_rlock_needs_command -xa pause -d 'Let no new owner take a lock for a while'
complete -c rlock -n __fish_rlock_needs_command -xa resume -d 'End a pause'
complete -c rlock -n __fish_rlock_needs_command -xa limit -d 'How many may hold a semaphore'
complete -c rlock -n __fish_rlock_needs_command -xa latch -d 'Count down to what others wait for'
complete -c rlock -n __fish_rlock_needs_command -xa fence -d 'Refuse a client with an older token'
complete -c rlock -n __fish_rlock_needs_command -xa init -d 'Prepare a new server: mark it, or make tables'
complete -c rlock -n __fish_rlock_needs_command -xa doctor -d 'Is this server fit to hold locks?'
complete -c rlock -n __fish_rlock_needs_command -xa local -d 'The private server of --local'
complete -c rlock -n __fish_rlock_needs_command -xa help -d 'Show help'
complete -c rlock -n __fish_rlock_needs_command -l version -d 'Show the version'
complete -c rlock -n '__fish_rlock_in help' -xa 'run read write acquire renew release status history events top serve check metrics force-release reserve extend pause resume limit latch fence init doctor local'

complete -c rlock -n __fish_rlock_needs_key -xa '(__fish_rlock_keys status)' -d Key
complete -c rlock -n __fish_rlock_needs_latch -xa '(__fish_rlock_keys latch list)' -d Latch
complete -c rlock -n __fish_rlock_needs_action -xa 'set count-down run wait status list delete'
complete -c rlock -n __fish_rlock_needs_dashes -xa -- -d 'The command follows'

set -l any '__fish_rlock_in run read write acquire renew release status history events top serve check metrics force-release reserve extend pause resume limit latch fence init doctor local'
complete -c rlock -n $any -s u -l url -xa 'redis:// rediss:// unix:/// sentinel:// sentinels:// cluster:// clusters:// zookeeper:// zookeepers:// postgresql:// postgres:// postgresqls:// mysql:// mysqls:// mariadb:// mariadbs:// local:' -d 'Lock store'
complete -c rlock -n $any -l local -d 'A server for this host alone'
complete -c rlock -n $any -l prefix -x -d 'Name space of the keys'
complete -c rlock -n $any -l config -rF -d 'Configuration file'
complete -c rlock -n $any -l password-file -rF -d 'File with the password'
complete -c rlock -n $any -l tls-ca -rF -d 'Certificates to trust'
complete -c rlock -n $any -l tls-cert -rF -d 'Certificate to show'
complete -c rlock -n $any -l tls-key -rF -d 'Its private key'
complete -c rlock -n $any -l tls-server-name -xa '(__fish_print_hostnames)' -d 'Whose certificate it has to be'
complete -c rlock -n $any -l connect-timeout -xa '1s 2s 5s 10s' -d 'Limit for reaching the server'
complete -c rlock -n $any -l server-wait -xa '0 5s 1m 10m' -d 'How long a server that is away at the start is tried again'
complete -c rlock -n $any -l color -xa 'auto always never' -d 'Use colours'
complete -c rlock -n $any -s q -l quiet -d 'Errors only'
complete -c rlock -n $any -s v -l verbose -d 'Say what happens, with times'
complete -c rlock -n $any -s h -l help -d 'Show help'

set -l mode '__fish_rlock_in run acquire'
complete -c rlock -n $mode -s x -l exclusive -l write -d 'One holder at a time (default)'
complete -c rlock -n $mode -s s -l shared -l read -d 'Many readers, or one writer'
complete -c rlock -n $mode -l limit -xa '2 3 4 5 6 7 8 9' -d 'At most so many holders, or as many as are stored'

set -l ask '__fish_rlock_in run read write acquire'
complete -c rlock -n $ask -s n -l no-wait -l nonblock -d 'Do not wait'
complete -c rlock -n $ask -s w -l wait -l timeout -xa '10s 30s 1m 5m 10m 1h' -d 'Wait at most this long'
complete -c rlock -n $ask -s E -l conflict-exit-code -xa '0 75' -d 'Status when not acquired'
complete -c rlock -n $ask -l priority -xa '-9 -5 -1 0 1 5 9' -d 'Served before those with a lower one'
complete -c rlock -n $ask -l latest -d 'Send away those that wait already with --latest'
complete -c rlock -n $ask -l group -x -d 'The group that --latest is about'
complete -c rlock -n $ask -l replace -d 'Ask the holder to give the lock back'
complete -c rlock -n $ask -l lease -xa '10s 30s 1m 5m' -d 'Time a dead holder keeps the lock'
complete -c rlock -n $ask -l mirror -xa 'string: redisson: shedlock:' -d "Hold another library's lock besides"
complete -c rlock -n $ask -l no-reentrant -d "Do not take an ancestor's lock for one's own"
complete -c rlock -n $ask -l replicas -xa '1 2 majority all' -d 'The lock counts only once so many have it'
complete -c rlock -n $ask -l grace -d 'Wait one lease if the store may have forgotten locks'
complete -c rlock -n $ask -l label -x -d 'Text shown to others'
complete -c rlock -n $ask -l no-identity -d 'Store no host, user, pid and command'

set -l run '__fish_rlock_in run read write'
complete -c rlock -n $run -l any -d 'Hold one of the keys, the first that is free'
complete -c rlock -n $run -l take -xa '1 2 3 4 5 6 7 8 9' -d 'With --any: so many of the keys'
complete -c rlock -n $run -l unless-done -xa '1h 20h 1d 7d' -d 'Run nothing if a run has succeeded within'
complete -c rlock -n $run -l no-renew -d 'Stop the command before its only lease ends'
complete -c rlock -n $run -l at-least -xa '30s 1m 5m 10m' -d 'Keep the lock this long'
complete -c rlock -n $run -l at-most -xa '1m 5m 10m 1h' -d 'Stop the command after this long'
complete -c rlock -n $run -l kill-after -xa '1s 2s 5s 10s' -d 'Time between TERM and KILL'
complete -c rlock -n $run -l on-lost -xa 'stop continue signal:HUP signal:INT signal:TERM signal:USR1 signal:USR2' -d 'When the lock is lost'
complete -c rlock -n $run -l wait-descendants -d 'Keep it until background processes have ended'
complete -c rlock -n $run -l cgroup -d 'The command has a cgroup of its own'
complete -c rlock -n $run -l stop -x -d 'Run a line of shell before the command is stopped'
complete -c rlock -n $run -l notify -x -d 'Run a line of shell when something happens'
complete -c rlock -n $run -l notify-after -xa '1m 5m 10m 1h' -d 'A wait or a hold that is long'
complete -c rlock -n $run -l report-fd -x -d 'Write a line of JSON at the end'
complete -c rlock -n $run -s c -l command -x -d 'Run a line of shell'
complete -c rlock -n $run -l keep-credentials -d 'Leave the passwords in the environment'

complete -c rlock -n '__fish_rlock_in acquire' -l export -d 'Print lines for the shell'
complete -c rlock -n '__fish_rlock_in acquire' -l keep -xa '(__fish_complete_pids)' -d 'Renew while this process runs'
complete -c rlock -n '__fish_rlock_in renew release' -l owner -x -d 'The holder'
complete -c rlock -n '__fish_rlock_in renew release' -l replicas -xa '1 2 majority all' -d 'As it was acquired'
complete -c rlock -n '__fish_rlock_in renew release' -l grace -d 'As it was acquired'
complete -c rlock -n '__fish_rlock_in renew' -l lease -xa '10s 30s 1m 5m' -d 'The new lease'

complete -c rlock -n '__fish_rlock_latch set' -l ttl -xa '1h 1d 7d' -d 'Time until it is forgotten'
complete -c rlock -n '__fish_rlock_latch count-down run' -l id -x -d 'Count once for this'
complete -c rlock -n '__fish_rlock_latch run' -l keep-credentials -d 'Leave the passwords in the environment'
complete -c rlock -n '__fish_rlock_latch status list' -l json -d 'Print JSON'
complete -c rlock -n '__fish_rlock_latch wait' -s n -l no-wait -l nonblock -d 'Look once'
complete -c rlock -n '__fish_rlock_latch wait' -s w -l wait -l timeout -xa '10s 30s 1m 5m 10m 1h' -d 'Wait at most this long'

complete -c rlock -n '__fish_rlock_in events' -l json -d 'Print JSON'
complete -c rlock -n '__fish_rlock_in history' -l json -d 'Print JSON'
complete -c rlock -n '__fish_rlock_in history' -l since -xa '1h 1d 7d' -d 'That ended since then'
complete -c rlock -n '__fish_rlock_in history' -l failed -d 'That did not end with 0'
complete -c rlock -n '__fish_rlock_in history' -l plot -d 'Draw the runs of one KEY on a line of time'

complete -c rlock -n '__fish_rlock_in init' -l force -d 'Even if it may have forgotten locks'
complete -c rlock -n '__fish_rlock_in init' -l print -d 'Print the SQL or the ACL, and do nothing'
complete -c rlock -n '__fish_rlock_in init' -l grant -x -d 'Give USER what rlock needs'
complete -c rlock -n '__fish_rlock_in doctor' -l json -d 'Print JSON'
complete -c rlock -n '__fish_rlock_in doctor' -l replicas -xa '1 2 majority all' -d 'As asked for by run'
complete -c rlock -n '__fish_rlock_in doctor' -l grace -d 'As asked for by run'
complete -c rlock -n '__fish_rlock_in doctor' -l lease -xa '10s 30s 1m 5m' -d 'As asked for by run'
complete -c rlock -n '__fish_rlock_in local; and test (count (__fish_rlock_operands)) = 1' -xa 'status stop'
complete -c rlock -n '__fish_rlock_in local' -l force -d 'Stop it although locks are held'

complete -c rlock -n '__fish_rlock_in status' -l json -d 'Print JSON'
complete -c rlock -n '__fish_rlock_in status' -l all -d 'Free locks as well'
complete -c rlock -n '__fish_rlock_in status' -l long -d 'Show holders and queue in full'
complete -c rlock -n '__fish_rlock_in status' -l watch -d 'Redraw until interrupted'

complete -c rlock -n '__fish_rlock_in check' -l held -xa '30m 1h 30m:1h' -d 'Held for longer'
complete -c rlock -n '__fish_rlock_in check' -l waiting -xa '30m 1h 30m:1h' -d 'Somebody waits for longer'
complete -c rlock -n '__fish_rlock_in check' -l waiters -xa '5 10 5:10' -d 'More wait for one lock'
complete -c rlock -n '__fish_rlock_in serve' -l listen -xa '127.0.0.1: unix:/' -d 'Where to listen'
complete -c rlock -n '__fish_rlock_in serve' -l allow-host -x -d 'Browsers may ask by this name, too'
complete -c rlock -n '__fish_rlock_in serve' -l auth-file -rF -d 'Ask for a user and a password of this file'
complete -c rlock -n '__fish_rlock_in check' -l paused -xa '2h 1h:2h 1d' -d 'Paused for longer'
complete -c rlock -n '__fish_rlock_in check' -l not-done -xa '26h 25h:26h 8d' -d 'No success for longer'
complete -c rlock -n '__fish_rlock_in metrics' -l output -rF -d 'Replace this file at once'

complete -c rlock -n '__fish_rlock_in force-release' -l owner -x -d 'Only from this holder'
complete -c rlock -n '__fish_rlock_in force-release' -l purge -d 'Empty the queue, too'
complete -c rlock -n '__fish_rlock_in reserve pause' -s m -l message -x -d 'The reason'
complete -c rlock -n '__fish_rlock_in reserve' -s n -l no-wait -l nonblock -d 'Do not wait'
complete -c rlock -n '__fish_rlock_in reserve' -s w -l wait -l timeout -xa '10s 30s 1m 5m 10m 1h' -d 'Wait at most this long'
complete -c rlock -n '__fish_rlock_in fence' -F
complete -c rlock -n '__fish_rlock_in fence' -l token -x -d 'The fencing token to compare'
complete -c rlock -n '__fish_rlock_in fence' -s n -l no-wait -l nonblock -d 'Do not wait'
complete -c rlock -n '__fish_rlock_in fence' -s w -l wait -l timeout -xa '10s 30s 1m 5m 10m 1h' -d 'Wait at most this long'
complete -c rlock -n '__fish_rlock_in limit' -l delete -d 'Forget the number'
complete -c rlock -n '__fish_rlock_in force-release' -l mirror -xa 'string: redisson: shedlock:' -d "Another program's lock alone"
complete -c rlock -n '__fish_rlock_in force-release' -l reason -x -d 'Why, for who loses it'
complete -c rlock -n '__fish_rlock_in force-release' -l now -d 'Without asking the holder first'
complete -c rlock -n '__fish_rlock_in force-release' -l yes -d 'Do not ask on the terminal'

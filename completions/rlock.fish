# Completion of rlock(1) for fish.

# The words before the cursor, up to "--" where it begins the wrapped command.
function __fish_rlock_words
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    and string match -qr -- '^(run|read|write|latch run)\\b' "$words[2..3]"
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
        connect-timeout color wait timeout \
        conflict-exit-code lease at-least at-most kill-after on-lost label report-fd owner command \
        limit keep ttl id
    set -l skip 0
    for word in $words
        if test $skip = 1
            set skip 0
        else if string match -qr -- '^--' $word
            contains -- (string sub -s 3 -- $word) $valued
            and set skip 1
        else if string match -qr -- '^-[^uwEc]*[uwEc]$' $word
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
    __fish_rlock_in run read write status force-release
    and return 0
    __fish_rlock_in acquire renew release
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

function __fish_rlock_needs_action
    __fish_rlock_in latch
    and test (count (__fish_rlock_operands)) = 1
end

# The keys that are held or waited for, on the server that the line names: the first column of the
# table. A key shown escaped is left out.
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
    command $typed status $where --color never --connect-timeout 1s </dev/null 2>/dev/null |
        sed -e 1d -e 's/ .*//' -e '/\\\\x/d' -e 's/\\\\\\\\/\\\\/g'
end

complete -c rlock -f
complete -c rlock -n __fish_rlock_wrapped -xa '(__fish_rlock_complete_wrapped)'

complete -c rlock -n __fish_rlock_needs_command -xa run -d 'Run a command while holding a lock'
complete -c rlock -n __fish_rlock_needs_command -xa read -d 'The same beside other readers'
complete -c rlock -n __fish_rlock_needs_command -xa write -d 'The same alone'
complete -c rlock -n __fish_rlock_needs_command -xa acquire -d 'Take a lock in a script'
complete -c rlock -n __fish_rlock_needs_command -xa renew -d 'Extend its lease'
complete -c rlock -n __fish_rlock_needs_command -xa release -d 'Give it back'
complete -c rlock -n __fish_rlock_needs_command -xa status -d 'Show who holds what, who waits'
complete -c rlock -n __fish_rlock_needs_command -xa force-release -d 'Take a lock away from its holder'
complete -c rlock -n __fish_rlock_needs_command -xa latch -d 'Count down to what others wait for'
complete -c rlock -n __fish_rlock_needs_command -xa init -d 'Mark a new server, for --grace'
complete -c rlock -n __fish_rlock_needs_command -xa doctor -d 'Is this server fit to hold locks?'
complete -c rlock -n __fish_rlock_needs_command -xa local -d 'The private server of --local'
complete -c rlock -n __fish_rlock_needs_command -xa help -d 'Show help'
complete -c rlock -n __fish_rlock_needs_command -l version -d 'Show the version'
complete -c rlock -n '__fish_rlock_in help' -xa 'run read write acquire renew release status force-release latch init doctor local'

complete -c rlock -n __fish_rlock_needs_key -xa '(__fish_rlock_keys)' -d Key
complete -c rlock -n __fish_rlock_needs_action -xa 'set count-down run wait status delete'
complete -c rlock -n __fish_rlock_needs_dashes -xa -- -d 'The command follows'

set -l any '__fish_rlock_in run read write acquire renew release status force-release latch init doctor local'
complete -c rlock -n $any -s u -l url -xa 'redis:// rediss:// unix:/// sentinel:// cluster://' -d 'Lock store'
complete -c rlock -n $any -l local -d 'A server for this host alone'
complete -c rlock -n $any -l prefix -x -d 'Name space of the keys'
complete -c rlock -n $any -l config -rF -d 'Configuration file'
complete -c rlock -n $any -l password-file -rF -d 'File with the password'
complete -c rlock -n $any -l tls-ca -rF -d 'Certificates to trust'
complete -c rlock -n $any -l tls-cert -rF -d 'Certificate to show'
complete -c rlock -n $any -l tls-key -rF -d 'Its private key'
complete -c rlock -n $any -l tls-server-name -xa '(__fish_print_hostnames)' -d 'Whose certificate it has to be'
complete -c rlock -n $any -l connect-timeout -xa '1s 2s 5s 10s' -d 'Limit for reaching the server'
complete -c rlock -n $any -l color -xa 'auto always never' -d 'Use colours'
complete -c rlock -n $any -s q -l quiet -d 'Errors only'
complete -c rlock -n $any -s v -l verbose -d 'Say what happens, with times'
complete -c rlock -n $any -s h -l help -d 'Show help'

set -l mode '__fish_rlock_in run acquire'
complete -c rlock -n $mode -s x -l exclusive -l write -d 'One holder at a time (default)'
complete -c rlock -n $mode -s s -l shared -l read -d 'Many readers, or one writer'
complete -c rlock -n $mode -l limit -xa '2 3 4 5 6 7 8 9' -d 'At most so many holders'

set -l ask '__fish_rlock_in run read write acquire'
complete -c rlock -n $ask -s n -l no-wait -l nonblock -d 'Do not wait'
complete -c rlock -n $ask -s w -l wait -l timeout -xa '10s 30s 1m 5m 10m 1h' -d 'Wait at most this long'
complete -c rlock -n $ask -s E -l conflict-exit-code -xa '0 75' -d 'Status when not acquired'
complete -c rlock -n $ask -l lease -xa '10s 30s 1m 5m' -d 'Time a dead holder keeps the lock'
complete -c rlock -n $ask -l no-reentrant -d "Do not take an ancestor's lock for one's own"
complete -c rlock -n $ask -l replicas -xa '1 2 majority all' -d 'It counts only once so many have it'
complete -c rlock -n $ask -l grace -d 'Wait where the store may have forgotten'
complete -c rlock -n $ask -l label -x -d 'Text shown to others'
complete -c rlock -n $ask -l no-identity -d 'Store no host, user, pid and command'

set -l run '__fish_rlock_in run read write'
complete -c rlock -n $run -l no-renew -d 'Stop the command before its only lease ends'
complete -c rlock -n $run -l at-least -xa '30s 1m 5m 10m' -d 'Keep the lock this long'
complete -c rlock -n $run -l at-most -xa '1m 5m 10m 1h' -d 'Stop the command after this long'
complete -c rlock -n $run -l kill-after -xa '1s 2s 5s 10s' -d 'Time between TERM and KILL'
complete -c rlock -n $run -l on-lost -xa 'stop continue signal:HUP signal:INT signal:TERM signal:USR1 signal:USR2' -d 'When the lock is lost'
complete -c rlock -n $run -l wait-descendants -d 'Keep it until background processes have ended'
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
complete -c rlock -n '__fish_rlock_latch status' -l json -d 'Print JSON'
complete -c rlock -n '__fish_rlock_latch wait' -s n -l no-wait -l nonblock -d 'Look once'
complete -c rlock -n '__fish_rlock_latch wait' -s w -l wait -l timeout -xa '10s 30s 1m 5m 10m 1h' -d 'Wait at most this long'

complete -c rlock -n '__fish_rlock_in init' -l force -d 'Also where it may have forgotten locks'
complete -c rlock -n '__fish_rlock_in doctor' -l json -d 'Print JSON'
complete -c rlock -n '__fish_rlock_in doctor' -l replicas -xa '1 2 majority all' -d 'As asked for by run'
complete -c rlock -n '__fish_rlock_in doctor' -l grace -d 'As asked for by run'
complete -c rlock -n '__fish_rlock_in doctor' -l lease -xa '10s 30s 1m 5m' -d 'As asked for by run'
complete -c rlock -n '__fish_rlock_in local; and test (count (__fish_rlock_operands)) = 1' -xa 'status stop'
complete -c rlock -n '__fish_rlock_in local' -l force -d 'Stop it although locks are held'

complete -c rlock -n '__fish_rlock_in status' -l json -d 'Print JSON'
complete -c rlock -n '__fish_rlock_in status' -l long -d 'Show holders and queue in full'
complete -c rlock -n '__fish_rlock_in status' -l watch -d 'Redraw until interrupted'

complete -c rlock -n '__fish_rlock_in force-release' -l owner -x -d 'Only from this holder'
complete -c rlock -n '__fish_rlock_in force-release' -l purge -d 'Empty the queue, too'
complete -c rlock -n '__fish_rlock_in force-release' -l yes -d 'Do not ask'

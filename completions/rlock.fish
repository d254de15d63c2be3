# Completion of rlock(1) for fish. "rlock help --complete" says what fits.

function __fish_rlock
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l typed (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l found ($typed help --complete $words[2..-1] "$current" </dev/null 2>/dev/null)
    switch "$found[1]"
        case :files
            __fish_complete_path (string replace -r '^--[^=]*=' '' -- $current)
        case :command
            set -e words[1..(contains -i -- -- $words)]
            __fish_complete_subcommand --commandline $words "$current"
        case '*'
            string join \n -- $found
    end
end

complete -c rlock -f -a '(__fish_rlock)'

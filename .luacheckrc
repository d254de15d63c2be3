-- The scripts run inside Redis. One file alone neither knows all that it uses nor uses all that it
-- defines, and a part's parameters may be called like a script's variables; tests/lint.sh checks each
-- script whole.
std = 'lua51'
read_globals = { 'redis', 'KEYS', 'ARGV' }
ignore = { '111', '112', '113', '211', '431' }
max_line_length = false

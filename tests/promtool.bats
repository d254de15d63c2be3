# Prometheus's own promtool reads rlock's metrics, and the alert rules and the dashboard of
# examples/. Debian's package prometheus has it: 19 MB to fetch, which is why this is among the long
# tests.

load helper

EXAMPLES=$TESTS/../examples

setup() {
    command -v promtool >/dev/null || skip "no promtool here"
    start_test
}

@test "promtool accepts the metrics" {
    hold a 'a\b"c'
    hold b semaphore --limit 1
    queued semaphore bg w rlock run --limit 1 semaphore -- true
    rlock run succeeded -- true
    run -1 rlock run failed -- false
    rlock metrics >"$T/metrics"
    grep -q '_total{' "$T/metrics"
    run -0 promtool check metrics <"$T/metrics"
    [[ ! $output ]]
    run -69 --separate-stderr rlock metrics -u "unix://$T/none" --server-wait 0
    run -0 promtool check metrics <<<"$output"
    [[ ! $output ]]
}

# raised TIME ALERT[:KEY]...: these are, then, and no others.
raised() {
    local alert key
    echo "      - eval_time: $1"
    echo '        expr: max by (alertname, key) (ALERTS{alertstate="firing"})'
    echo '        exp_samples:'
    for alert in "${@:2}"; do
        [[ $alert == *:* ]] && key=", key=\"${alert#*:}\"" || key=
        echo "          - { labels: '{alertname=\"${alert%%:*}\"$key}', value: 1 }"
    done
}

@test "each alert is raised by what it is about, and by nothing else" {
    cat >"$T/test.yml" <<END
rule_files: [ $(realpath "$EXAMPLES/prometheus-rules.yml") ]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - { series: 'rlock_up', values: 1x600 }
      - { series: 'rlock_held_seconds{key="long"}', values: 0+60x600 }
      - { series: 'rlock_held_seconds{key="short"}', values: 7199x600 }
      - { series: 'rlock_wait_seconds{key="long"}', values: 1801x600 }
      - { series: 'rlock_waiters{key="many"}', values: 11x600 }
      - { series: 'rlock_waiters{key="few"}', values: 10x600 }
      - { series: 'rlock_lost_total{key="now"}', values: 0x590 1x10 }
      - { series: 'rlock_lost_total{key="once"}', values: 0x100 1x500 }
      - { series: 'rlock_expired_total{key="now"}', values: 3x590 5x10 }
      - { series: 'rlock_paused{key="shut"}', values: 1x600 }
      - { series: 'rlock_paused{key="open"}', values: 0x600 }
      - { series: 'rlock_paused{glob="ci/*"}', values: 1x600 }
      - { series: 'node_textfile_mtime_seconds{file="/d/rlock.prom"}', values: 0+60x600 }
      - { series: 'rlock_last_end_timestamp_seconds{key="backup-better",outcome="failure"}', values: 1x600 }
      - { series: 'rlock_last_end_timestamp_seconds{key="backup-better",outcome="success"}', values: 2x600 }
      - { series: 'rlock_last_end_timestamp_seconds{key="backup-worse",outcome="success"}', values: 1x600 }
      - { series: 'rlock_last_end_timestamp_seconds{key="backup-worse",outcome="lost"}', values: 2x600 }
      - { series: 'rlock_last_end_timestamp_seconds{key="backup",outcome="timed_out"}', values: 2x600 }
      - { series: 'rlock_last_end_timestamp_seconds{key="nightly",outcome="success"}', values: 1x600 }
      - { series: 'rlock_last_end_timestamp_seconds{key="a-person",outcome="failure"}', values: 2x600 }
    promql_expr_test:
$(raised 10h LockHeldTooLong:long LockWaitTooLong:long LockQueueLong:many LockLost:now \
        LockHolderDied:now LastRunFailed:backup-worse LastRunFailed:backup LockPaused:shut LockPaused)
  - interval: 1m
    input_series:
      - { series: 'rlock_up', values: 1x10 0x20 }
      - { series: 'node_textfile_mtime_seconds{file="/d/rlock.prom"}', values: 0x30 }
    promql_expr_test:
$(raised 25m LockServerAway LockMetricsStale NightlyJobNotDone:nightly)
  - interval: 1m
    input_series:
      - series: 'rlock_last_end_timestamp_seconds{key="nightly",outcome="success"}'
        values: 60x1700
    promql_expr_test:
$(raised 25h LockMetricsMissing)
$(raised 27h LockMetricsMissing NightlyJobNotDone:nightly)
END
    run promtool test rules "$T/test.yml"
    [[ $status == 0 ]] || { echo "$output" && false; }
}

@test "Prometheus understands what the dashboard asks" {
    jq '{groups: [{name: "dashboard", rules: [.panels[].targets[].expr |
        {record: "a", expr: gsub("\\$__(rate_interval|range)"; "5m") | gsub("\\$key"; ".*")}]}]}' \
        "$EXAMPLES/grafana-dashboard.json" >"$T/rules.yml"
    run promtool check rules --lint=none "$T/rules.yml"
    [[ $status == 0 && $output == *SUCCESS* ]] || { echo "$output" && false; }
}

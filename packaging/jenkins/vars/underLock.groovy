// A step of a shared library: a shell script under a lock that all agents share.
//
//   environment {
//       RLOCK_URL = 'rediss://locks.example.com'
//       RLOCK_PASSWORD = credentials('rlock-password')
//   }
//   ...
//   underLock(key: 'production', options: '-w 30m', version: '1.1.0', sha256: '8ed1…',
//             from: 'https://files.example.com/rlock/1.1.0', script: './deploy.sh production')
//
// The step fetches the static file of that version, once a workspace, and compares its checksum
// each time (that of rlock-VERSION-linux-ARCH in SHA256SUMS). If the agent dies, the lock ends by
// itself; if the lock cannot be kept, the script is stopped before another one starts. So there is
// no "finally" that has to release it.
def call(Map step) {
    withEnv(["STEP_KEY=${step.key}", "STEP_OPTIONS=${step.options ?: ''}",
             "STEP_VERSION=${step.version}", "STEP_SHA256=${step.sha256}",
             "STEP_FROM=${step.from}", "STEP_SCRIPT=${step.script}"]) {
        sh label: "under the lock ${step.key}", script: '''#!/bin/sh
            set -eu
            case $(uname -m) in
            x86_64) arch=amd64 ;;
            aarch64) arch=arm64 ;;
            *) echo "rlock: no static file for $(uname -m)" >&2; exit 1 ;;
            esac
            file=rlock-$STEP_VERSION-linux-$arch
            mkdir -p .rlock
            [ -e ".rlock/$file" ] || curl -fsSL --retry 3 -o ".rlock/$file" "$STEP_FROM/$file"
            echo "$STEP_SHA256  .rlock/$file" | sha256sum -c >/dev/null
            chmod +x ".rlock/$file"
            # The options are words, not globs. A key must not be read as an option.
            set -f
            case $STEP_KEY in
            -*) echo "rlock: the key begins with '-': $STEP_KEY" >&2; exit 64 ;;
            esac
            exec ".rlock/$file" run $STEP_OPTIONS "$STEP_KEY" -- sh -ec "$STEP_SCRIPT"
        '''
    }
}

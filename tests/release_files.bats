# The files of a release where jobs run: RLOCK_RELEASE is the directory that "make release" has
# made. .ci/release-check runs this file, as root; it needs busybox-static, qemu-user-static,
# skopeo. "bare" runs rlock in a chroot with nothing but it and busybox; works_bare URL: it runs a
# command there.

load helper
load certificates

ARCH=$(dpkg --print-architecture)
clean=(env -i PATH=/usr/sbin:/usr/bin:/bin)

setup_file() {
    RLOCK_RELEASE=$(realpath "${RLOCK_RELEASE:-$BATS_TEST_DIRNAME/../build/release}")
    export RLOCK_RELEASE
    VERSION=$(basename "$RLOCK_RELEASE"/rlock-*.spdx.json .spdx.json)
    export VERSION
    tar xf "$RLOCK_RELEASE/$VERSION-linux-$ARCH.tar.gz" -C "$BATS_FILE_TMPDIR"
    export FOLDER=$BATS_FILE_TMPDIR/$VERSION-linux-$ARCH
    start_tls_file
}

setup() {
    start_test
    ROOT=$BATS_TEST_TMPDIR/root
    mkdir -p "$ROOT/bin"
    cp "$(command -v busybox)" "$ROOT/bin/busybox"
    ln -s busybox "$ROOT/bin/sh"
    ln -s busybox "$ROOT/bin/sleep"
    ln -s busybox "$ROOT/bin/echo"
    cp "$FOLDER/rlock" "$ROOT/rlock"
    STORE=redis://rlock:pw@127.0.0.1:$PLAIN_PORT
    SECURE=rediss://rlock:pw@127.0.0.1:$TLS_PORT
}

# bare [VARIABLE=VALUE...] ARGUMENT...: rlock in a chroot with nothing but it and busybox.
bare() {
    local variables=()
    while [[ $1 == [A-Z]*=* ]]; do
        variables+=("$1")
        shift
    done
    "${clean[@]}" "${variables[@]}" chroot "$ROOT" /rlock "$@"
}

# works_bare [VARIABLE=VALUE...] URL: a command runs under a lock.
works_bare() {
    local -a before=()
    while [[ ${1-} == [A-Z]*=* ]]; do
        before+=("$1")
        shift
    done
    run -0 bare "${before[@]}" run -u "$1" k -- sh -c 'test "$RLOCK_FENCE" -gt 0 && echo ran'
    [[ $output == ran ]]
}

@test "the checksums are those of all files" {
    cd "$RLOCK_RELEASE"
    sha256sum --quiet -c SHA256SUMS
    [[ $(find . -type f | wc -l) == $(($(wc -l <SHA256SUMS) + 1)) ]]
}

@test "static: none of the programs asks for a library, or is moved at its start" {
    for arch in amd64 arm64; do
        mkdir "$T/$arch"
        tar xf "$RLOCK_RELEASE/$VERSION-linux-$arch.tar.gz" -C "$T/$arch"
        for program in "$T/$arch/$VERSION-linux-$arch"/rlock{,-*}; do
            [[ $program != */rlock-store-git ]] || continue # a script
            run -0 readelf -ld "$program"
            [[ $output != *NEEDED* && $output != *INTERP* ]]
            [[ $output == *'file type is EXEC '* ]] # it takes long to move OpenSSL's tables
        done
        cmp "$RLOCK_RELEASE/$VERSION-linux-$arch" "$T/$arch/$VERSION-linux-$arch/rlock"
    done
}

@test "the source builds where there is neither autotools nor bats" {
    mkdir "$T/bin"
    for tool in autoconf automake aclocal autoheader autoreconf bats; do
        printf '#!/bin/sh\nexit 99\n' >"$T/bin/$tool"
        chmod +x "$T/bin/$tool"
    done
    tar xf "$RLOCK_RELEASE/$VERSION.tar.gz" -C "$T"
    cd "$T/$VERSION"
    PATH=$T/bin:$PATH ./configure >"$T/log" 2>&1
    PATH=$T/bin:$PATH make -s rlock >"$T/log" 2>&1
    [[ $(./rlock --version) == "rlock ${VERSION#rlock-}"* ]]
}

@test "in a chroot without nsswitch.conf, /etc/hosts, users, /tmp, /proc: a lock, and its holder" {
    works_bare "$STORE"
    works_bare "${STORE/127.0.0.1/localhost}"
    hold a k
    run -75 bare run -u "$STORE" -n k -- true
    run -0 bare status -u "$STORE" --json k
    [[ $(jq -r '.[0].holders[0].command' <<<"$output") == sh ]]
}

@test "names are looked up with just resolv.conf, and an unknown name is reported" {
    cat >"$T/dns.py" <<'END'
import socket, sys
served = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
served.bind(("127.9.9.9", 53))
print("ready", flush=True)
while True:
    asked, who = served.recvfrom(512)
    end = asked.index(b"\0", 12) + 5
    known = asked[12:end - 4] == b"\5store\7example\0"
    answer = known and asked[end - 3:end - 2] == b"\1"
    head = asked[:2] + (b"\x85\x80" if known else b"\x85\x83") + b"\0\1\0" + bytes([answer]) + bytes(4)
    record = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\x7f\0\0\1" if answer else b""
    served.sendto(head + asked[12:end] + record, who)
END
    python3 "$T/dns.py" >"$T/dns.log" 3>&- &
    server=$!
    poll_until 10 contains "$T/dns.log" ready
    mkdir "$ROOT/etc"
    echo nameserver 127.9.9.9 >"$ROOT/etc/resolv.conf"
    works_bare "${STORE/127.0.0.1/store.example}"
    run -69 bare run --server-wait 0 -u "${STORE/127.0.0.1/nowhere.example}" k -- true
    [[ $output == *nowhere.example* ]]
    kill $server
}

@test "certificates are found where each distribution has them" {
    run -69 bare run --server-wait 0 -u "$SECURE" k -- true
    [[ $output == *'not trusted'* ]]
    for place in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
        /etc/ssl/ca-bundle.pem /etc/pki/tls/cacert.pem /usr/local/etc/ssl/cert.pem \
        /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/ssl/cert.pem \
        /usr/local/share/certs/ca-root-nss.crt; do
        mkdir -p "$ROOT${place%/*}"
        cp "$CERTS/ca.pem" "$ROOT$place"
        works_bare "$SECURE"
        # SSL_CERT_FILE replaces the usual places.
        cp "$CERTS/other.pem" "$ROOT/other.pem" 2>/dev/null || authority other
        run -69 bare SSL_CERT_FILE=/other.pem run --server-wait 0 -u "$SECURE" k -- true
        rm "$ROOT$place"
    done
    for place in /etc/ssl/certs /etc/pki/tls/certs /usr/local/share/certs; do
        mkdir -p "$ROOT$place"
        cp "$CERTS/ca.pem" "$ROOT$place/"
        openssl rehash "$ROOT$place"
        works_bare "$SECURE"
        run -69 bare SSL_CERT_DIR=/nowhere run --server-wait 0 -u "$SECURE" k -- true
        mv "$ROOT$place" "$ROOT/kept"
        works_bare SSL_CERT_DIR=/kept "$SECURE"
        rm -r "$ROOT/kept"
    done
    cp "$CERTS/ca.pem" "$ROOT/own.pem"
    works_bare SSL_CERT_FILE=/own.pem "$SECURE"
}

@test "a user without an entry and a home; a root that cannot be written" {
    run -0 "${clean[@]}" chroot --userspec 4711:4711 "$ROOT" /rlock run -u "$STORE" k -- echo ran
    [[ $output == ran ]]
    run -0 "${clean[@]}" HOME=/nowhere chroot --userspec 4711:4711 "$ROOT" /rlock run -u "$STORE" k -- \
        echo ran
    [[ $output == ran ]]
    run -0 unshare --mount sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" &&
        exec env -i PATH="$PATH" chroot "$1" /rlock run -u "$2" k -- sh -c "! echo >/file && echo ran"' - \
        "$ROOT" "$STORE"
    [[ $output == *ran ]]
}

@test "as pid 1 of a container without a /proc of its own: it runs, waits, and stops a command" {
    run -0 "${clean[@]}" unshare --pid --fork chroot "$ROOT" /rlock run -u "$STORE" k -- \
        sh -c '[ $PPID = 1 ] && echo ran'
    [[ $output == ran ]]
    hold a k
    run -75 "${clean[@]}" unshare --pid --fork chroot "$ROOT" /rlock run -u "$STORE" -w 200ms k -- true
    # Others are gone with it.
    "${clean[@]}" unshare --pid --fork --kill-child chroot "$ROOT" /rlock run -u "$STORE" other -- \
        sh -c 'sleep 100' 3>&- &
    poll_until 10 held other
    kill $!
    poll_until 60 is_free other
}

@test "the companions stand beside it: serve answers, without /proc too" {
    local port url
    cp "$FOLDER"/rlock-* "$ROOT/"
    read -r port <<<"$(free_ports 1)"
    "${clean[@]}" chroot "$ROOT" /rlock serve -u "$STORE" --listen "localhost:$port" \
        >"$T/log" 2>&1 3>&- &
    poll_until 10 curl -sf "http://localhost:$port/metrics" -o "$T/metrics"
    contains "$T/metrics" rlock_
    kill $!
    run -64 bare top --frobnicate
    for url in postgresql mysql; do
        run -69 bare run --server-wait 0 -u "$url://u@localhost:1/db" k -- true
        [[ $output == *'refused'* ]]
    done
    rm "$ROOT/rlock-serve"
    run bare serve -u "$STORE" --listen "localhost:$port"
    [[ $status == 71 && $output == *'rlock-serve is not installed'* ]]
}

@test "the image: an OCI archive of its architecture, whose files work by themselves" {
    for arch in amd64 arm64; do
        run -0 skopeo inspect --override-arch "$arch" \
            "oci-archive:$RLOCK_RELEASE/$VERSION-linux-$arch.oci.tar"
        [[ $(jq -r .Architecture <<<"$output") == "$arch" ]]
    done
    skopeo copy -q "docker-archive:$RLOCK_RELEASE/$VERSION-linux-$ARCH.oci.tar" "dir:$T/saved"
    skopeo copy -q "oci-archive:$RLOCK_RELEASE/$VERSION-linux-$ARCH.oci.tar" "dir:$T/image"
    layer=$(jq -r '.layers[0].digest' "$T/image/manifest.json")
    ROOT=$T/root
    mkdir -p "$ROOT"
    tar xf "$T/image/${layer#sha256:}" -C "$ROOT"
    run -0 "${clean[@]}" chroot "$ROOT" /usr/bin/rlock status -u "$STORE"
    run -64 "${clean[@]}" chroot "$ROOT" /usr/bin/rlock top --frobnicate
    # The image has the usual authorities; that of the test is not trusted.
    grep -q 'BEGIN CERTIFICATE' "$ROOT/etc/ssl/certs/ca-certificates.crt"
    run -69 "${clean[@]}" chroot "$ROOT" /usr/bin/rlock run --server-wait 0 -u "$SECURE" k -- /usr/bin/rlock
    [[ $output == *'not trusted'* ]]
    [[ -e $ROOT/usr/share/terminfo/x/xterm-256color && -s $ROOT/usr/share/doc/rlock/LICENSE ]]
    [[ -s $ROOT/usr/share/doc/rlock/licenses/libssl-dev ]]
}

@test "the manual as HTML: each link to a file leads to one" {
    local page link links=0
    tar xf "$RLOCK_RELEASE/$VERSION-man-html.tar.gz" -C "$T"
    for page in "$T/$VERSION-man"/*.html; do
        while read -r link; do
            [[ -e ${page%/*}/$link ]] || { echo "$page: $link"; return 1; }
            links=$((links + 1))
        done < <(grep -oP 'href="(?!https?:|#)\K[^"#]+' "$page")
    done
    ((links > 50)) # links were found
}

@test "packages: what they depend on, and for which machine" {
    for arch in amd64 arm64; do
        dpkg-deb -f "$RLOCK_RELEASE"/rlock_*"_$arch.deb" Depends | grep -q 'libhiredis'
        dpkg-deb -f "$RLOCK_RELEASE"/rlock_*"_$arch.deb" Recommends | grep -q 'libssl3.*\|libjansson'
        dpkg-deb -f "$RLOCK_RELEASE"/rlock-postgresql_*"_$arch.deb" Depends | grep -q 'libpq5'
        [[ $(dpkg-deb -f "$RLOCK_RELEASE"/rlock_*"_$arch.deb" Architecture) == "$arch" ]]
    done
    rpm -qlp "$RLOCK_RELEASE"/rlock-*.x86_64.rpm | grep -qx /usr/libexec/rlock/rlock-mysql
    run -0 rpm -qRp "$RLOCK_RELEASE"/rlock-*.x86_64.rpm
    [[ $output != *.so* ]]
    rpm -qlp "$RLOCK_RELEASE"/rlock-*.aarch64.rpm | grep -qx /usr/bin/rlock
    mkdir "$T/rpm"
    cd "$T/rpm"
    rpm2cpio "$RLOCK_RELEASE"/rlock-*.x86_64.rpm | cpio -idm --quiet
    cmp usr/bin/rlock "$FOLDER/rlock"
}

@test "what is linked in is listed, with versions and licences" {
    local spdx=$RLOCK_RELEASE/$VERSION.spdx.json
    run -0 jq -r '.packages[] | select(.name == "openssl") | .versionInfo' "$spdx"
    [[ $output == 3.* ]]
    run -0 jq -r '.relationships[] | select(.spdxElementId == "SPDXRef-rlock-mysql-arm64" and
        .relationshipType == "STATIC_LINK") | .relatedSpdxElement' "$spdx"
    [[ $output == *mariadb* && $output == *glibc* && $output != *postgresql* ]]
    [[ $(jq '[.packages[] | select(.licenseDeclared == "NOASSERTION")] | length' "$spdx") == 0 ]]
    # Their licences go with the programs.
    (($(ls "$FOLDER/licenses" | wc -l) > $(jq '[.packages[] | select(.supplier)] | length' "$spdx")))
    grep -q 'Apache License' "$FOLDER/licenses/Apache-2.0"
    grep -q 'LESSER GENERAL PUBLIC LICENSE' "$FOLDER/licenses/LGPL-2.1"
    for text in "$FOLDER"/licenses/*; do
        [[ -s $text ]]
    done
}

# Under qemu-user a program cannot start another one of that machine (unless binfmt_misc has it), so
# the companions and drivers are only tried by themselves.
@test "arm64 under qemu-user: locks, waiting, TLS, JSON; each program starts" {
    [[ $ARCH == amd64 ]] || skip 'this is an arm64 machine'
    tar xf "$RLOCK_RELEASE/$VERSION-linux-arm64.tar.gz" -C "$T"
    arm=$T/$VERSION-linux-arm64
    emulated() { qemu-aarch64-static "$arm/rlock" "$@"; }
    [[ $(emulated --version) == "rlock ${VERSION#rlock-}"* ]]
    run emulated run -u "$STORE" k -- sh -c 'echo "$RLOCK_FENCE"'
    # An emulator may lack what no command is run without.
    [[ $status == 0 && $output -gt 0 || $output == *'refuses: prctl(PR_SET_CHILD_SUBREAPER)'* ]]
    run -0 emulated check -u "$SECURE" --tls-ca "$CERTS/ca.pem"
    hold a k
    run -75 emulated acquire -u "$STORE" -n k
    run -0 emulated status -u "$STORE" --json k
    [[ $(jq -r '.[0].holders[0].command' <<<"$output") == sh ]]
    queued k bg w qemu-aarch64-static "$arm/rlock" acquire -u "$STORE" k
    terminate a
    finish w
    [[ $status == 0 ]]
    run -0 emulated release -u "$STORE" --owner "$(<"$T/w.out")" k
    for program in rlock-top rlock-serve; do
        run -64 qemu-aarch64-static "$arm/$program" --frobnicate
    done
    for program in rlock-postgresql rlock-mysql; do
        run -0 qemu-aarch64-static "$arm/$program" </dev/null
    done
}

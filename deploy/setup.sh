#!/usr/bin/env bash
# Install what Ferryline needs on Debian 12: system packages (as root) and .venv. Safe to repeat.
#
#   deploy/setup.sh [run|dev|bench]   run: the services; dev (default): also lint, tests and browsers;
#                                     bench: also Go and Pion, for the servers to compare with
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${1:-dev}
packages=(python3-venv libopus0)
[ "$profile" = bench ] && profile=dev && packages+=(golang-go golang-github-pion-webrtc.v3-dev)
[ "$(id -u)" = 0 ] && packages+=(python3-bpfcc libbpf1 linux-libc-dev iproute2 ethtool)
[ "$profile" = dev ] && [ "$(id -u)" = 0 ] && packages+=(
    chromium firefox-esr clang-format procps redis-server bird2
    gstreamer1.0-plugins-bad gstreamer1.0-plugins-good gstreamer1.0-nice python3-gi python3-gst-1.0
    gir1.2-gst-plugins-bad-1.0 # a client of the interoperability suite
)

say() { printf 'setup: %s\n' "$*"; }
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" != 0 ]; then
        say "missing Debian packages: ${missing[*]}"
        say "mend: run as root: apt-get install --no-install-recommends ${missing[*]}"
        exit 1
    fi
    say "installing Debian packages: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
    for service in redis-server bird; do # tests start their own: nothing of ours stays running
        [[ " ${missing[*]} " == *" $service"* && -d /run/systemd/system ]] &&
            systemctl -q disable --now "$service"
    done
fi

# The environment comes from Debian's own interpreter, since that is the one which has bcc.
want=$(cat requirements.lock pyproject.toml tests/*/package-lock.json 2>/dev/null | sha256sum | cut -d' ' -f1)-$profile
if [ "$(cat .venv/.setup 2>/dev/null)" = "$want" ]; then
    say "up to date"
    exit 0
fi
if [ ! -x .venv/bin/python ]; then
    say "making .venv from /usr/bin/python3"
    /usr/bin/python3 -m venv --system-site-packages .venv
fi
say "installing Python packages from requirements.lock"
.venv/bin/python -m pip install -qq --disable-pip-version-check -r requirements.lock
.venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
if [ "$profile" = dev ]; then
    say "installing the browser driver"
    .venv/bin/python -m tests.browser.install
    say "installing the judges of events"
    .venv/bin/python -m tests.judges.agents_union
    say "installing the clients of the interoperability suite"
    .venv/bin/python -m tests.interop.install
fi
echo "$want" >.venv/.setup
say "done"

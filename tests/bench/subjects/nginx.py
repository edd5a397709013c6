"""nginx as a UDP load balancer (its stream module). It adds no header: it cannot, for UDP."""

import shutil
from pathlib import Path

from tests.bench import wire
from tests.bench.generator import Generator
from tests.bench.rig import DIRECTORY, Rig
from tests.bench.subjects import legs
from tests.bench.subjects.base import NotRun
from tests.bench.subjects.process import ProcessRelay, listens
from tests.bench.wire import ENDPOINT_PORT, HOSTS, VIP

_MODULE = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
_CONFIG = f"""
load_module {_MODULE};
daemon off;
master_process off;
pid {DIRECTORY}/nginx.pid;
error_log {DIRECTORY}/nginx-error.log crit;
worker_rlimit_nofile 65536;
events {{ worker_connections 32768; }}
stream {{
  server {{
    listen {VIP[4][0]}:{VIP[4][1]} udp reuseport rcvbuf=1m;
    proxy_pass {HOSTS[4]["sink0"]}:{ENDPOINT_PORT};
    proxy_timeout 60s;
  }}
}}
"""


def nginx(rig: Rig) -> ProcessRelay:
    if not shutil.which("nginx") or not _MODULE.exists():
        raise NotRun("no nginx with streams: apt install nginx-light libnginx-mod-stream")
    config = DIRECTORY / "nginx.conf"
    config.write_text(_CONFIG)
    first = wire.from_client(4, wire.rtp())
    return ProcessRelay(
        *(rig, [legs.forward(spp=False)], "nginx stream"),
        ["nginx", "-c", str(config), "-p", str(DIRECTORY), "-e", f"{DIRECTORY}/nginx-error.log"],
        ready=lambda: listens(rig, VIP[4][1]),
        opening=lambda flows: Generator(rig, [(first, "gen0")]),
    )

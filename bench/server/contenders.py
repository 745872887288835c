"""Servers that the suite measures: each started on a free port of this machine, pinned to one
processor, and ended when the suite ends. One that cannot be had is None and named on standard
error."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SERVER_CPU, LOAD_CPU = 0, 1
TICKS = os.sysconf("SC_CLK_TCK")


def missing(name, why):
    print(f"bench: peer missing: {name}: {why}", file=sys.stderr)


def pinned(cpu):
    """For Popen: the child runs on this processor, where there are two of them."""
    def pin():
        if cpu in os.sched_getaffinity(0):
            os.sched_setaffinity(0, {cpu})
    return pin


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def take_a_larger_share():
    """A session of our own with a larger share of the processors, if we may (bench/README.md)."""
    if os.getsid(0) != os.getpid():
        if os.getpgrp() == os.getpid():
            return subprocess.run([sys.executable, *sys.argv], start_new_session=True).returncode
        os.setsid()
    try:
        pathlib.Path("/proc/self/autogroup").write_text("-20")
    except OSError as error:
        print(f"bench: no larger share of the processors: {error}", file=sys.stderr)
    return None


class Server:
    """A process that answers on a port."""

    def __init__(self, name, command, port=None, environment=None, cpu=SERVER_CPU):
        self.name = name
        self.port = port
        self.process = subprocess.Popen(
            command, preexec_fn=pinned(cpu), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if port is None else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})}, text=True)

    def wait_until_open(self, seconds=10):
        """True once the port takes connections."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return True
            except OSError:
                time.sleep(0.02)
        return False

    def workers(self):
        """The processes that do the work: nginx has one below its master."""
        pid = self.process.pid
        below = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in below] or [pid]

    def cpu_seconds(self):
        """User and system time so far."""
        ticks = 0
        for pid in self.workers():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Weir(Server):
    """The server under test; its fronts print where they listen."""

    def __init__(self, program, environment=None):
        super().__init__("weir", [
            program, "serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--admin", "off",
            "--threads", "1", "--rules", str(HERE / "rules.yaml"), "--log-level", "error"],
            environment=environment)
        self.http = self.resp = None
        while self.http is None or self.resp is None:
            line = self.process.stdout.readline()
            if not line:
                sys.exit("bench: weir serve did not start")
            found = re.match(r"\s+(http|resp)\s+(?:http://)?127\.0\.0\.1:(\d+)", line)
            if found:
                setattr(self, found[1], int(found[2]))


def start_raw(program):
    raw = Server("raw epoll", [program])
    raw.port = int(raw.process.stdout.readline())
    return raw


def start_peer(name, command_name, make_command):
    if shutil.which(command_name) is None:
        missing(name, f"no {command_name} command")
        return None
    port = free_port()
    peer = Server(name, make_command(port), port)
    if peer.wait_until_open():
        return peer
    peer.stop()
    missing(name, f"{command_name} did not start")
    return None


def start_redis(folder):
    return start_peer("redis-server", "redis-server", lambda port: [
        "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly",
        "no", "--dir", str(folder)])


def load_script(redis, path):
    """The name under which Redis knows a script."""
    script = path.read_bytes()
    with socket.create_connection(("127.0.0.1", redis.port)) as connection:
        connection.sendall(b"*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n"
                           % (len(script), script))
        reply = connection.makefile("rb")
        if not reply.readline().startswith(b"$"):
            sys.exit("bench: redis-server does not take the script")
        return reply.readline().strip().decode()


NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 1h;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  limit_req_zone $http_x_key zone=keys:256m rate=1000r/s;
  limit_req_status 429;
  server {{
    listen 127.0.0.1:{port};
    # The cheapest content that nginx has: limit_req is not asked before a bare `return`.
    location / {{ limit_req zone=keys burst=1000 nodelay; empty_gif; }}
  }}
}}
"""


def start_nginx(folder):
    def command(port):
        path = folder / "nginx.conf"
        path.write_text(NGINX.format(folder=folder, port=port))
        return ["nginx", "-p", str(folder), "-c", str(path)]
    return start_peer("nginx limit_req", "nginx", command)


HAPROXY = """
global
  nbthread 1
  maxconn 1024
defaults
  mode http
  timeout client 1h
  timeout server 1h
  timeout connect 1s
  timeout http-keep-alive 1h
frontend all
  bind 127.0.0.1:{port}
  stick-table type string len 32 size 1m expire 1m store http_req_rate(10s)
  http-request track-sc0 req.hdr(x-key)
  http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt 100000 }}
  http-request return status 200 content-type text/plain string ok
"""


def start_haproxy(folder):
    def command(port):
        path = folder / "haproxy.cfg"
        path.write_text(HAPROXY.format(port=port))
        return ["haproxy", "-db", "-f", str(path)]
    return start_peer("HAProxy stick table", "haproxy", command)

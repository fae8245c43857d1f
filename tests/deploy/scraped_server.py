"""Lets Prometheus scrape a systole-server, and checks the queries of the alerts and the dashboard.

If a check fails, the program ends with a message that says what is wrong.
"""

import argparse
import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

# A hundred times as long as each wait takes on an idle machine.
_LONGEST_WAIT_S = 300

_METRIC = re.compile(r"\b(?:systole_(?:server|feed|trainers?)|grpc_server)_\w+")


def _get(url):
    with urllib.request.urlopen(url, timeout=_LONGEST_WAIT_S) as answer:
        return answer.read().decode()


def _wait_for(what, holds):
    """Returns the first true answer of holds()."""
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, KeyError):
            if answer := holds():
                return answer
        time.sleep(0.05)
    sys.exit(f"waited {_LONGEST_WAIT_S} s in vain for {what}")


@contextlib.contextmanager
def _running(arguments, log):
    with (
        open(log, "wb") as lines,
        subprocess.Popen(arguments, stdout=lines, stderr=lines) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_LONGEST_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def _names_of(text):
    """The names of the metrics in `text`, which is in Prometheus' text format. For each histogram,
    also the names of its series.
    """
    names = set()
    for kind in re.finditer(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        names.add(kind[1])
        if kind[2] == "histogram":
            names.update(f"{kind[1]}_{part}" for part in ("bucket", "sum", "count"))
    return names


def _check_names(scraped, folder):
    """A server or a feed has every metric that the alerts and the dashboard use. Returns the
    dashboard's queries.
    """
    known = _names_of(scraped)
    # This page has all metrics of feeds: another test compares the page with the program.
    feeds = pathlib.Path("client/step/README.md").read_text()
    known.update(re.findall(r"\| `(systole_feed_\w+)", feeds))
    alerts = (folder / "prometheus/alerts.yml").read_text()
    exprs = re.findall(r"expr:(.*?)\n\s+(?:for|labels):", alerts, re.DOTALL)
    asked = {name for expr in exprs for name in _METRIC.findall(expr)}
    dashboard = json.loads((folder / "grafana/systole.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [
        v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"
    ]
    asked.update(name for query in queries for name in _METRIC.findall(query))
    if missing := sorted(asked - known):
        names = ", ".join(missing)
        sys.exit(f"alerts.yml or systole.json uses metrics that do not exist: {names}")
    print(f"{len(asked)} metrics of the alerts and the dashboard exist")
    return queries


def _check_paragraphs(folder):
    """Each alert has a link to a paragraph about the alert, and a row in deploy/README.md. There is
    no paragraph about an alert that does not exist.
    """
    alerts = (folder / "prometheus/alerts.yml").read_text()
    page = (folder / "prometheus/README.md").read_text()
    guide = (folder / "README.md").read_text()
    named = re.findall(r"- alert: (\w+)", alerts)
    for name in named:
        if f"\n## {name}\n" not in page:
            sys.exit(f"deploy/prometheus/README.md has no paragraph about {name}")
        if f"deploy/prometheus/README.md#{name.lower()}" not in alerts:
            sys.exit(f"alerts.yml: no runbook leads to the paragraph about {name}")
        if f"| [{name}](prometheus/README.md#{name.lower()}) |" not in guide:
            sys.exit(f"deploy/README.md: the table of alerts has no row for {name}")
    if extra := sorted(set(re.findall(r"\n## (\w+)\n", page)) - set(named)):
        sys.exit(f"deploy/prometheus/README.md has unknown alerts: {', '.join(extra)}")
    print(f"each of {len(named)} alerts has its paragraph")


def _serve(options, work):
    """Packs a few images, and returns the command line of a server for these images."""
    systole = options.build / "systole"
    for command in (
        ["make-flowers", work / "images", "--images", "60"],
        ["pack", work / "images", work / "flowers", "--shards", "2"],
    ):
        subprocess.run([systole, *command], check=True, capture_output=True)
    return [
        options.build / "systole-server",
        *("--listen", "127.0.0.1:0", "--port-file", work / "port"),
        *("--admin", "127.0.0.1:0", "--admin-port-file", work / "admin-port"),
        *("--dataset", f"flowers={work}/flowers-train-*.tfrecord"),
    ]


@contextlib.contextmanager
def _prometheus(options):
    """Runs Prometheus with the config in options.work, and yields its address."""
    log = options.work / "prometheus.log"
    for _ in range(20):
        # Prometheus does not report a port that it chose, so the port is chosen here. If another
        # program takes the port first, Prometheus ends, and the next port is tried.
        address = f"127.0.0.1:{_free_port()}"
        arguments = [
            options.prometheus,
            f"--config.file={options.work}/prometheus.yml",
            f"--storage.tsdb.path={options.work}/data",
            f"--web.listen-address={address}",
        ]
        with _running(arguments, log) as process:

            def answers(process=process, address=address):
                return process.poll() is not None or "Ready" in _get(f"http://{address}/-/ready")

            _wait_for("Prometheus", answers)
            if process.poll() is None:
                yield address
                return
    sys.exit(log.read_text())


def _check_scrapes(options, admin, queries):
    """Prometheus scrapes the server, and accepts the alerts and the dashboard's queries."""
    config = pathlib.Path("deploy/prometheus/prometheus.yml").read_text()
    config = config.replace("127.0.0.1:9470", admin).replace("interval: 15s", "interval: 1s")
    (options.work / "prometheus.yml").write_text(config)
    (options.work / "alerts.yml").write_text(
        pathlib.Path("deploy/prometheus/alerts.yml").read_text()
    )
    with _prometheus(options) as address:

        def ask(query):
            url = f"http://{address}/api/v1/query?query={urllib.parse.quote(query)}"
            answer = json.loads(_get(url))
            if answer["status"] != "success":
                sys.exit(f"Prometheus refuses {query}: {answer}")
            return answer["data"]["result"]

        _wait_for("a scrape", lambda: ask('up{job="systole"} == 1'))
        _wait_for("the build's version", lambda: ask("systole_server_build_info"))
        for query in queries:
            if not query.startswith("label_values"):
                ask(query.replace("$job", "systole").replace("$instance", ".*"))
        rules = json.loads(_get(f"http://{address}/api/v1/rules"))["data"]["groups"][0]["rules"]
        if wrong := [rule["name"] for rule in rules if rule["health"] == "err"]:
            sys.exit(f"Prometheus cannot evaluate {', '.join(wrong)}")
    print(f"Prometheus scraped the server and took {len(rules)} alerts and {len(queries)} queries")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--prometheus", required=True)
    parser.add_argument("--promtool", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    folder = pathlib.Path("deploy")
    _check_paragraphs(folder)
    with _running(_serve(options, options.work), options.work / "server.log") as server:

        def admin_port():
            if server.poll() is not None:
                sys.exit((options.work / "server.log").read_text())
            port = options.work / "admin-port"
            return port.exists() and port.read_text().strip()

        admin = f"127.0.0.1:{_wait_for('the server', admin_port)}"
        # Until the server serves, this port answers with an error.
        scraped = _wait_for("the metrics", lambda: _get(f"http://{admin}/metrics"))
        checked = subprocess.run(
            [options.promtool, "check", "metrics"],
            input=scraped,
            text=True,
            capture_output=True,
            check=False,
        )
        if checked.returncode != 0 or checked.stderr:
            sys.exit(f"promtool check metrics: {checked.stdout}{checked.stderr}")
        _check_scrapes(options, admin, _check_names(scraped, folder))


if __name__ == "__main__":
    main()

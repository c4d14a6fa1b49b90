"""A browser that tests drive: Chromium without a window, over chromedriver's HTTP interface."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_FLAGS = [
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync"),
    *("disable-background-networking", "disable-component-update", "disable-dev-shm-usage"),
]


def is_there():
    return CHROMIUM is not None and DRIVER is not None


class Browser:
    """Context manager: a browser with an empty profile and one page.

    size: of the page, (width, height); dark: whether it prefers dark colours.
    """

    def __init__(self, *, size=(1500, 950), dark=False):
        self._size = size
        self._dark = dark

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        log = Path(self._folder.name, "driver.log")
        with log.open("wb") as out:
            self._driver = subprocess.Popen(
                [DRIVER, "--port=0"], stdout=out, stderr=subprocess.STDOUT
            )
        try:
            self._url = f"http://127.0.0.1:{self._port(log)}"
            width, height = self._size
            flags = [*_FLAGS, f"window-size={width},{height}"]
            flags.append(f"user-data-dir={self._folder.name}/profile")
            if self._dark:
                flags.append("blink-settings=preferredColorScheme=0")
            options = {"binary": CHROMIUM, "args": [f"--{flag}" for flag in flags]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            made = self._post("/session", {"capabilities": {"alwaysMatch": wanted}})
            self._url += f"/session/{made['sessionId']}"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if "/session/" in getattr(self, "_url", ""):
            self._call("DELETE", "")
        self._driver.terminate()
        self._driver.wait()
        self._folder.cleanup()

    def _port(self, log):
        """The port that the driver listens on, which it writes to its log."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            before, _, port = log.read_text().rpartition("started successfully on port ")
            if before:
                return int(port.partition(".")[0])
            time.sleep(0.05)
        raise RuntimeError(f"chromedriver did not start: {log.read_text()}")

    def _call(self, method, path, data=None):
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(self._url + path, body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def _post(self, path, data):
        return self._call("POST", path, data)

    def open(self, url):
        """Loads a page, and waits until it says that it is ready."""
        self._post("/url", {"url": url})
        until = time.monotonic() + 60
        while not self.run("return document.documentElement.dataset.ready"):
            if time.monotonic() > until:
                raise RuntimeError(f"{url} is not ready: {self.messages()}")
            time.sleep(0.02)

    def run(self, script, *args):
        """What a piece of JavaScript returns."""
        return self._post("/execute/sync", {"script": script, "args": args})

    def _element(self, selector):
        found = self._post("/element", {"using": "css selector", "value": selector})
        return next(iter(found.values()))

    def click(self, selector):
        self._post(f"/element/{self._element(selector)}/click", {})

    def type(self, selector, text):
        self._post(f"/element/{self._element(selector)}/value", {"text": text})

    def screenshot(self, path=None):
        """A picture of the page as PNG: bytes, also written to `path`."""
        picture = base64.b64decode(self._call("GET", "/screenshot"))
        if path is not None:
            Path(path).write_bytes(picture)
        return picture

    def messages(self):
        """What the console was told since this was last asked: a list of dicts."""
        return self._post("/se/log", {"type": "browser"})

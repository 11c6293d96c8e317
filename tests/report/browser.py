# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Opens a page of `weft bench compare` in a real, headless Chromium and uses it as a reader would:
by mouse, by keyboard, on a phone, in the dark, on paper. Speaks the WebDriver protocol (W3C) to
chromedriver over loopback. Prints one line for each check.
Usage: browser.py PAGE FOLDER_FOR_SCREENSHOTS"""

import base64
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
         "--hide-scrollbars"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def check(name, good, detail=""):
    print(f"ok - {name}" if good else f"not ok - {name}: {detail}", flush=True)


class Browser:
    """One session."""

    def __init__(self, port, profile):
        self.base = f"http://127.0.0.1:{port}"
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"], "binary": "/usr/bin/chromium"}
        wanted = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"}}}
        self.session = self.call("POST", "/session", {"capabilities": wanted})["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data,
            {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()[:600]) from error

    def do(self, method, path, body=None):
        return self.call(method, f"/session/{self.session}{path}", body)

    def js(self, script, *arguments):
        return self.do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def cdp(self, command, **parameters):
        return self.do("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def find(self, selector):
        return self.do("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def press(self, selector, key):
        self.do("POST", f"/element/{self.find(selector)}/value", {"text": key})

    def click(self, selector):
        self.do("POST", f"/element/{self.find(selector)}/click", {})

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=width < 500)

    def shoot(self, path, whole=False):
        picture = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))
        return path.stat().st_size


def table_column(browser, column):
    return browser.js("""
        const rows = document.querySelector('#goals table').tBodies[0].rows;
        return [...rows].map((row) => row.cells[arguments[0]].dataset.v)
            .filter((value) => value !== undefined).map(Number)""", column)


def reads(browser):
    """What is there when it opens."""
    check("page has its title and its sections",
        browser.js("return document.title") == "Weft beside other transports"
          and browser.js("return document.querySelectorAll('main section').length") >= 6,
              browser.js("return document.title"))
    check("MPI named like a tag stays text",
        browser.js(
        "return document.images.length === 0 && document.body.textContent.includes('<img src=x')"))
    check("every figure has a drawing with a label", browser.js("""
        const has = (figure) => figure.querySelector('svg[role=img][aria-label]');
        return [...document.querySelectorAll('figure')].every(has)"""))
    check("every table has a caption and heads with scope", browser.js("""
        const has = (table) => table.caption && table.querySelector('th[scope=col]')
            && table.querySelector('th[scope=row]');
        return [...document.querySelectorAll('table')].every(has)"""))
    check("headings go down one step at a time", browser.js("""
        const heads = [...document.querySelectorAll('h1,h2,h3')];
        const levels = heads.map((head) => Number(head.tagName[1]));
        const fits = (level, place) => place === 0 || level - levels[place - 1] <= 1;
        return levels[0] === 1 && levels.every(fits)"""))
    check("ids are unique and links lead somewhere", browser.js("""
        const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
        const links = [...document.querySelectorAll('nav a')];
        return new Set(ids).size === ids.length
            && links.every((link) => ids.includes(link.hash.slice(1)))"""))
    check("nothing is asked for from elsewhere",
        browser.js("return performance.getEntriesByType('resource').length") == 0)


def draws(browser):
    """Drawings: nothing lies on top of something else or outside."""
    script = """
      const box = (element) => element.getBoundingClientRect();
      const found = [];
      for (const picture of document.querySelectorAll('figure svg')) {
        if (!box(picture).width) { continue; }
        const frame = box(picture);
        const texts = [...picture.querySelectorAll('text')].filter((text) => text.textContent);
        for (const text of texts) {
          const it = box(text);
          if (it.left < frame.left - 1 || it.right > frame.right + 1 || it.top < frame.top - 1
              || it.bottom > frame.bottom + 1) {
            found.push('outside: ' + text.textContent + ' in ' + picture.closest('figure').id);
          }
        }
        for (let one = 0; one < texts.length; one++) {
          for (let other = one + 1; other < texts.length; other++) {
            const [first, second] = [box(texts[one]), box(texts[other])];
            const wide = Math.min(first.right, second.right) - Math.max(first.left, second.left);
            const high = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
            if (wide > 1.5 && high > 3.5) {
              found.push(texts[one].textContent + ' on ' + texts[other].textContent + ' in '
                + picture.closest('figure').id);
            }
          }
        }
      }
      return found;"""
    return browser.js(script)


def contrast(browser):
    """Texts whose colour is too near to what is behind them (WCAG 2.2, 1.4.3: 4.5 to 1)."""
    script = """
      const channel = (value) => {
        value /= 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      };
      const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
      const light = (colour) => {
        const [red, green, blue] = parts(colour).map(channel);
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
      };
      const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
          const colour = getComputedStyle(at).backgroundColor;
          if (!(parts(colour).length === 4 && parts(colour)[3] === 0)) { return colour; }
        }
        return 'rgb(255, 255, 255)';
      };
      const low = [];
      const tags = 'h1,h2,h3,p,td,th,dt,dd,a,button,summary,small,strong,span,pre,svg text';
      for (const element of document.querySelectorAll(tags)) {
        const style = getComputedStyle(element);
        const ink = element.namespaceURI.endsWith('svg') ? style.fill : style.color;
        const lights = [light(ink), light(behind(element))];
        const [one, other] = lights.sort((first, second) => second - first);
        const ratio = (one + 0.05) / (other + 0.05);
        if (ratio < 4.5) {
          const name = element.tagName + '.' + (element.className.baseVal ?? element.className);
          low.push(name + ' ' + ratio.toFixed(2) + ' ' + ink);
        }
      }
      return [...new Set(low)].slice(0, 5);"""
    return browser.js(script)


def answers(browser):
    """Sorting, the theme, saving."""
    column = 3
    head = f"#goals th:nth-child({column + 1})"
    browser.click(f"{head} button")
    values = table_column(browser, column)
    check("table sorts upwards by a click", len(values) > 3 and values == sorted(values)
          and browser.js("return document.querySelector(arguments[0]).getAttribute('aria-sort')",
              head) == "ascending", values[:8])
    browser.press(f"{head} button", "\ue007")
    values = table_column(browser, column)
    check("table sorts downwards by the keyboard", values == sorted(values, reverse=True)
          and browser.js("return document.querySelector(arguments[0]).getAttribute('aria-sort')",
              head) == "descending", values[:8])
    back = "return getComputedStyle(document.body).backgroundColor"
    seen = []
    for _ in range(3):
        browser.click("#theme")
        seen.append(
            (browser.js("return document.getElementById('theme').dataset.now"), browser.js(back)))
    check("theme goes through light, dark and the system's",
        [name for name, _ in seen] == ["light", "dark", "system"] and seen[0][1] != seen[1][1],
        seen)
    for kind in ("svg", "png"):
        browser.js("delete document.querySelector('figure').dataset.saved")
        browser.click(f"figure [data-save={kind}]")
        saved = ""
        for _ in range(100):
            saved = browser.js("return document.querySelector('figure').dataset.saved || ''")
            if saved:
                break
            time.sleep(0.1)
        check(f"figure is saved as {kind.upper()}", re.fullmatch(kind + r" \d{4,}", saved), saved)
    log = [entry["message"] for entry in browser.do("POST", "/se/log", {"type": "browser"})]
    check("no error and nothing that the page's policy refused", not log, log[:3])


def looks(browser, folder):
    """Screenshots in all its forms, and what must hold in each."""
    for name, width, height, theme in (("desktop", 1280, 1600, "light"),
        ("dark", 1280, 1600, "dark"), ("phone", 360, 780, "light")):
        browser.size(width, height)
        browser.js("document.documentElement.dataset.theme = arguments[0]; scrollTo(0, 0)", theme)
        over = browser.js("return document.documentElement.scrollWidth - innerWidth")
        check(f"{name}: nothing makes the page scroll sideways", over <= 0, f"{over} px too wide")
        collisions = draws(browser)
        check(f"{name}: no text of a drawing lies on another or outside", not collisions,
            collisions[:6])
        low = contrast(browser)
        check(f"{name}: texts stand out from what is behind them", not low, low)
        taken = browser.shoot(folder / f"{name}.png")
        browser.shoot(folder / f"{name}-whole.png", whole=True)
        check(f"{name}: screenshot", taken > 20000, f"{taken} bytes")
    browser.js("document.documentElement.dataset.theme = 'dark'")
    paper = base64.b64decode(
        browser.cdp("Page.printToPDF", printBackground=True, paperWidth=8.27,
        paperHeight=11.69)["data"])
    (folder / "paper.pdf").write_bytes(paper)
    check("paper: prints", paper.startswith(b"%PDF") and len(paper) > 20000, f"{len(paper)} bytes")


def started(log):
    """chromedriver and its port. It takes one port for two kinds of address, and the second may be
    in use: then it is asked again."""
    for _ in range(5):
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=log,
            text=True)
        for line in driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                return driver, found[1]
        driver.wait()
    raise RuntimeError("chromedriver does not start; its log is beside the screenshots")


def main(page, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, open(folder / "chromedriver.log", "wb") as log:
        driver, port = started(log)
        try:
            browser = Browser(port, profile)
            try:
                browser.size(1280, 1600)
                browser.do("POST", "/url", {"url": page.resolve().as_uri()})
                reads(browser)
                answers(browser)
                looks(browser, folder)
            finally:
                browser.do("DELETE", "")
        finally:
            driver.terminate()
            driver.wait()


if __name__ == "__main__":
    # Failed checks have had their line; only what keeps the checks from being made ends this with
    # another status than 0.
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))

#!/usr/bin/env python3
"""browser.py URL: a page in a headless Chromium. For the tests, and for pictures of the page.

Reads steps from standard input, one a line, and fails at the first one that does not come true in
time, with the text that the page showed. It takes the packages chromium and chromium-driver.

    expect REGEX     wait for it to appear in the text of the page
    gone REGEX       wait until it is not there any more
    click TEXT       the button with this text
    true SCRIPT      a script that returns true
    sh COMMAND       run it with sh; it has to succeed
    size COLS ROWS   of the page in the window, in pixels
    scheme NAME      light or dark
    keys TEXT        as typed; each of the words Tab, Enter and Space is that key
    picture FILE     of what the window shows, as PNG
"""
import base64, json, os, re, subprocess, sys, tempfile, time, urllib.request

TIMEOUT = 40
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
CLICK = """
for (const button of document.querySelectorAll("button"))
    if (button.textContent === arguments[0]) { button.click(); return true; }
return false;"""


KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Space": " "}


class Failure(Exception):
    pass


class Browser:
    def __init__(self, home):
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=dict(os.environ, HOME=home))
        self.session = None
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                break
        else:
            raise Failure("chromedriver does not start")
        self.at = "http://127.0.0.1:%s/session" % found[1]
        options = {"args": OPTIONS + ["--user-data-dir=" + home]}
        answer = self.ask("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = answer["sessionId"]
        self.at += "/" + self.session

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.at + path, data, method=method)
        # No proxy of the environment is between the two.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": arguments})

    def text(self):
        return self.run("return document.body.innerText")

    def devtools(self, command, **arguments):
        self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": arguments})

    def close(self):
        if self.session:
            self.ask("DELETE", "")
        self.driver.terminate()
        self.driver.wait()

    def wait_for(self, what, test):
        end = time.monotonic() + TIMEOUT
        while not test():
            if time.monotonic() > end:
                raise Failure("not within %d s: %s" % (TIMEOUT, what))
            time.sleep(0.1)

    def step(self, verb, rest):
        if verb == "expect":
            self.wait_for(rest, lambda: re.search(rest, self.text()))
        elif verb == "gone":
            self.wait_for("no " + rest, lambda: not re.search(rest, self.text()))
        elif verb == "click":
            self.wait_for("click", lambda: self.run(CLICK, rest))
        elif verb == "true":
            if self.run("return " + rest) is not True:
                raise Failure("it is not true")
        elif verb == "sh":
            if subprocess.run(["sh", "-c", rest], stdin=subprocess.DEVNULL).returncode:
                raise Failure("it failed")
        elif verb == "size":
            width, height = map(int, rest.split())
            self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                          deviceScaleFactor=1, mobile=False)
        elif verb == "scheme":
            self.devtools("Emulation.setEmulatedMedia",
                          features=[{"name": "prefers-color-scheme", "value": rest}])
        elif verb == "keys":
            actions = []
            for key in [KEYS.get(word, word) for word in rest.split()]:
                actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
            self.ask("POST", "/actions",
                     {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})
        elif verb == "picture":
            with open(rest, "wb") as file:
                file.write(base64.b64decode(self.ask("GET", "/screenshot")))
        else:
            raise Failure("no such step")


def play(browser, lines):
    for number, line in enumerate(lines, 1):
        verb, _, rest = line.strip().partition(" ")
        try:
            if verb and not verb.startswith("#"):
                browser.step(verb, rest)
        except Failure as failure:
            print("browser.py: step %d: %s: %s" % (number, line.strip(), failure))
            print("--- the page showed ---\n%s\n---" % browser.text())
            print(browser.ask("POST", "/se/log", {"type": "browser"}))
            return 1
    return 0


def main():
    lines = sys.stdin.read().splitlines()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        browser = Browser(home)
        try:
            browser.ask("POST", "/url", {"url": sys.argv[1]})
            return play(browser, lines)
        finally:
            browser.close()


if __name__ == "__main__":
    sys.exit(main())

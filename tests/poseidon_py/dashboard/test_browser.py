"""The page in a real browser, against a whole scheduler on the synthetic cluster: each tab, by mouse and by keyboard.

Needs Chromium and its driver, as distributions package them (apt-get install chromium chromium-driver).
"""

import asyncio
import importlib.util
import shutil

import pytest

from benchmarks.cluster import NodeShape
from poseidon_py.dashboard.dashboard import Dashboard
from tests.effort import THOROUGH
from tests.poseidon_py.app.queue_kinds import declare, install_own
from tests.poseidon_py.gang_world import World, job, template
from tests.poseidon_py.world import world_of

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
LACKS = [
    name
    for name, found in (
        ("Chromium", BROWSER),
        ("chromedriver", DRIVER),
        ("the package selenium", importlib.util.find_spec("selenium")),
        ("the package plotly", importlib.util.find_spec("plotly")),
        ("HYPOTHESIS_PROFILE=thorough", THOROUGH),
    )
    if not found
]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(bool(LACKS), reason=f"no browser test without {', '.join(LACKS)}"),
]

MARKUP = "<img src=x>"
ZONE = "topology.kubernetes.io/zone"
SHAPES = tuple(NodeShape(cpu="4", memory="8Gi", pods=20, labels={ZONE: f"zone-{at}"}) for at in range(2))
TABS = {
    "Overview": ("Why pods wait", "no node that suits it has enough free", "By pool of nodes"),
    "Jobs": ("default/runs", "default/too-large", "When they waited and ran"),
    "Gangs": ("default/gang", "Running"),
    "Pods": ("default/odd", "the declaration of its gang is missing or wrong"),
    "Queues": ("team-a", "open"),
    "Nodes": ("zone-0", "How many more pods of this shape fit?"),
    "Rounds": ("0, proved", "Time by stage"),
    "Network": ("What flowed", "Arcs, those with the largest flow first"),
}


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path, nodes=6, shapes=SHAPES) as world:
        install_own(world.cluster)
        declare(world.cluster, "poseidon.io/v1", "Queue", "team-a", {"guarantee": {"cpu": "4"}})
        bridge = await world.bridge(
            dashboard=True, secure_port=0, bind_address="127.0.0.1", prepare=lambda each: Dashboard(each).attach()
        )
        world.cluster.create(job("runs", 3))
        world.cluster.create(job("gang", 2, gang="2"))
        world.cluster.create(job("too-large", 1, cpu="64"))
        world.cluster.create(job("other", 1, cpu="64"), namespace="kube-public")
        odd = template(annotations={"poseidon.io/gang": MARKUP, "poseidon.io/gang-name": "odd"})
        world.cluster.create({"apiVersion": "v1", "kind": "Pod", **odd, "metadata": {"name": "odd", **odd["metadata"]}})
        await world.until(lambda: len(world.bound("runs")) == 3 and len(world.bound("gang")) == 2)
        runtime = bridge.runtime
        assert runtime is not None
        await world.until(lambda: len(runtime.reporter.conditions) >= 2)
        yield world


@pytest.fixture
def browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    options.accept_insecure_certs = True
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield Browser(driver)
    driver.quit()


class Browser:
    """What a reader does and sees. All of it waits, so it runs in a thread beside the scheduler."""

    def __init__(self, driver) -> None:
        self.driver = driver

    def until(self, condition, what):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, 30, poll_frequency=0.05).until(lambda _: condition(), what)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def sees(self, *texts):
        """Waits until all are there."""
        for text in texts:
            self.until(lambda text=text: text in self.text, f"{text!r} is not in {self.text[:2000]!r}")

    @property
    def text(self):
        return self.run("return document.getElementById('main').innerText")

    def open(self, url):
        self.driver.get(url)

    def key(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        for each in keys:
            ActionChains(self.driver).send_keys(each).perform()

    @property
    def focus(self):
        return self.run("return document.activeElement.innerText || document.activeElement.type || ''")

    def complaints(self):
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] == "SEVERE"]


async def test_each_tab_shows_what_it_is_for(world, browser):
    def read():
        browser.open(f"http://127.0.0.1:{world.bridges[0].health.port}/dashboard/")
        for tab, texts in TABS.items():
            browser.until(lambda tab=tab: browser.driver.find_elements("link text", tab), "no tabs")
            browser.driver.find_element("link text", tab).click()
            browser.sees(*texts)
        browser.run("location.hash = '#overview'")
        browser.until(lambda: browser.driver.find_elements("css selector", ".js-plotly-plot .main-svg"), "no chart")
        # names and messages are text
        browser.run("location.hash = '#pod?name=default/odd'")
        browser.sees(MARKUP)
        assert not browser.driver.find_elements("css selector", "main img")
        browser.run("location.hash = '#pod?name=default/nothing'")
        browser.sees("default/nothing not found")
        browser.driver.back()
        browser.sees(MARKUP)
        # a narrow screen scrolls in one direction
        browser.driver.set_window_size(500, 900)
        for page in ("overview", "jobs", "nodes", "network"):
            browser.run("location.hash = arguments[0]", f"#{page}")
            browser.sees(TABS[page.title()][0])
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth + 1"), page
        return [each for each in browser.complaints() if "404" not in each]

    assert await asyncio.to_thread(read) == []


async def test_the_keyboard_reaches_everything(world, browser):
    from selenium.webdriver.common.keys import Keys

    def type_and_read():
        browser.open(f"http://127.0.0.1:{world.bridges[0].health.port}/dashboard/#jobs")
        browser.sees("default/runs")
        browser.key(Keys.TAB)
        assert browser.focus == "Skip to the content"
        browser.key(Keys.TAB, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        assert browser.focus == "Gangs"
        browser.key(Keys.ENTER)
        browser.sees("default/gang")
        browser.driver.back()
        browser.sees("default/runs")
        browser.key("/")
        assert browser.focus == "search"
        browser.key(*"too-la")
        browser.until(lambda: "default/runs" not in browser.text, "not filtered")
        browser.sees("default/too-large")
        assert browser.focus == "search"  # also once the list is there anew
        assert "text=too-la" in browser.driver.current_url
        browser.run("location.hash = '#nodes'")
        browser.sees("zone-0")
        browser.run("document.querySelector('.cells').focus()")
        browser.key(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
        browser.sees("Labels and taints")

    await asyncio.to_thread(type_and_read)


async def test_a_tenant_signs_in_and_sees_its_namespace(world, browser):
    cluster = world.cluster
    rbac = "rbac.authorization.k8s.io/v1"
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}})
    for kind, rules in (
        ("ClusterRole", [{"nonResourceURLs": ["/dashboard/*"], "verbs": ["get"]}]),
        ("Role", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]),
    ):
        cluster.create({"apiVersion": rbac, "kind": kind, "metadata": {"name": "tenant"}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "tenant"}
        subjects = [{"kind": "ServiceAccount", "name": "tenant", "namespace": "default"}]
        cluster.create(
            {
                "apiVersion": rbac,
                "kind": f"{kind}Binding",
                "metadata": {"name": "tenant"},
                "roleRef": role,
                "subjects": subjects,
            }
        )
    token = cluster.http._accounts.issue("default", "tenant")["status"]["token"]

    def sign_in(given):
        dialog = browser.driver.find_element("id", "sign-in")
        browser.until(dialog.is_displayed, "nobody asks for a token")
        browser.driver.find_element("id", "token").send_keys(given)
        dialog.find_element("tag name", "button").click()

    def read():
        browser.open(f"https://127.0.0.1:{world.bridges[0].health.secure_port}/dashboard/#pods")
        sign_in("forged")
        problem = browser.driver.find_element("id", "sign-in-problem")
        browser.until(lambda: "does not know the token" in problem.text, "a forged token is not refused")
        sign_in(token)
        browser.sees("default/odd", "1 more are in namespaces whose pods you may not list.")
        assert "kube-public" not in browser.text
        assert token not in browser.run("return JSON.stringify([location.href, document.cookie, {...localStorage}])")

    await asyncio.to_thread(read)

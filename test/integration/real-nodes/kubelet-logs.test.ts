import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { Agent, get } from "node:https";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Cluster } from "../../support/clusters/types.ts";
import { uniqueName } from "../../support/delegated/unique-name.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { useQuickProbes } from "../../support/harness/quick-probes.ts";
import { onRealNodes, type Place } from "../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { runStreaming, StreamingKubectl } from "../../support/streams/kubectl.ts";
import { podManifest } from "../../support/streams/pods.ts";

// Runs the same pods on a plain cluster, and on a host whose member runs them: a log must be the same from both.

const LINES = 'i=0; while [ $i -lt 20 ]; do echo "line $i"; i=$((i+1)); done; sleep 0.5; echo oops >&2';

const WORK = { name: "work", mountPath: "/work" };
// The second run stays, so that the previous run is always the first.
const TWICE =
  "echo run at $(cat /proc/uptime); mkdir /work/first 2>/dev/null && exit 1; trap 'exit 0' TERM; sleep 3600 & wait";

onRealNodes((realNodes) => {
  let plain: Place;
  let here: Place;

  beforeAll(async () => {
    const places = await realNodes().places({ onFinished: afterFile });
    [plain, here] = [places.plain, places.delegating];
    const pods = [
      podManifest(
        "web",
        [
          { name: "main", script: `${LINES}; trap 'exit 0' TERM; sleep 3600 & wait` },
          { name: "quiet", script: "trap 'exit 0' TERM; sleep 3600 & wait" },
        ],
        {
          initContainers: [{ name: "init", image: "localhost/busybox:1", command: ["sh", "-c", "echo prepared"] }],
        },
      ),
      podManifest("ended", [{ name: "main", script: "echo first; sleep 1; echo last; exit 3" }]),
      podManifest("again", [{ name: "main", script: TWICE, options: { volumeMounts: [WORK] } }], {
        restartPolicy: "Always",
        volumes: [{ name: WORK.name, emptyDir: {} }],
      }),
      podManifest("waiting", [{ name: "main", script: "true", options: { image: "localhost/nowhere:1" } }]),
    ];
    await Promise.all(
      [plain, here].map(async ({ cluster, namespace }) => {
        for (const input of pods) await kubectl(cluster, ["-n", namespace, "apply", "-f", "-"], { input });
        const until = async (pod: string, condition: string): Promise<void> => {
          const wait = ["-n", namespace, "wait", `pod/${pod}`, `--for=${condition}`, "--timeout=110s"];
          await kubectl(cluster, wait, { timeoutMs: 120_000 });
        };
        await until("web", "condition=Ready");
        await until("ended", "jsonpath={.status.phase}=Failed");
        await until("again", "jsonpath={.status.containerStatuses[0].restartCount}=1");
        await until("waiting", "jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImagePull").catch(() =>
          until("waiting", "jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff"),
        );
      }),
    );
  }, 300_000);

  /** Returns kubectl's output in a place, without parts that differ between places. */
  async function logs(
    { cluster, namespace }: Place,
    args: readonly string[],
  ): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
    const { code, stdout, stderr } = await runStreaming(["-n", namespace, "logs", ...args], {
      kubeconfig: cluster.kubeconfig,
      transport: "SPDY",
    });
    const shown = (text: string): string => text.replaceAll(namespace, "NAMESPACE");
    return { code, stdout: shown(stdout.toString()), stderr: shown(stderr) };
  }

  /** Creates a pod on the host and waits until it runs. */
  async function running(name: string, script: string): Promise<void> {
    const { cluster, namespace } = here;
    const input = podManifest(name, [{ name: "main", script }]);
    await kubectl(cluster, ["-n", namespace, "apply", "-f", "-"], { input });
    const wait = ["-n", namespace, "wait", `pod/${name}`, "--for=condition=Ready", "--timeout=100s"];
    await kubectl(cluster, wait, { timeoutMs: 110_000 });
  }

  function follow(name: string, more: readonly string[] = [], onFinished = onTestFinished): StreamingKubectl {
    const { cluster, namespace } = here;
    const following = new StreamingKubectl(["-n", namespace, "logs", "-f", name, ...more], {
      kubeconfig: cluster.kubeconfig,
      transport: "SPDY",
      timeoutMs: 120_000,
    });
    onFinished(() => following[Symbol.dispose]());
    return following;
  }

  function residentMb(): number {
    const status = readFileSync(`/proc/${realNodes().legation.controller.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  }

  // Two tests that mostly wait: later tests that neither count connections nor disturb do not wait for them.
  test.concurrent("serves the previous run's log apart from this run's", async ({ expect }) => {
    const told = (more: readonly string[]): Promise<string> =>
      kubectl(here.cluster, ["-n", here.namespace, "logs", "again", ...more]);
    await eventuallyPasses(async () => {
      const [now, before] = [await told([]), await told(["--previous"])];
      expect(before).toMatch(/^run at [\d.]+ /);
      expect(now).toMatch(/^run at [\d.]+ /);
      expect(now).not.toBe(before);
    });
  });

  test.concurrent("lets a silent log be followed without a limit", async ({ expect, onTestFinished: onFinished }) => {
    const following = follow("web", ["-c", "quiet"], onFinished);
    // Longer than ANSWER_TIMEOUT_MS of src/kubelet/logs.ts, which limits logs that are not followed.
    await new Promise((resolve) => setTimeout(resolve, 33_000));
    expect(following.child.exitCode).toBeNull();
    expect(following.said).toBe("");
  }, 60_000);

  test.concurrent.each<[string, readonly string[]]>([
    ["a whole log", ["web", "-c", "main"]],
    ["its last lines", ["web", "-c", "main", "--tail=3"]],
    ["its first bytes", ["web", "-c", "main", "--limit-bytes=11"]],
    ["a log since a time before it", ["web", "-c", "main", "--since=1h"]],
    ["a log since a date before it", ["web", "-c", "main", "--since-time=2020-01-01T00:00:00Z"]],
    ["an init container's log", ["web", "-c", "init"]],
    ["the log of a container that has written nothing", ["web", "-c", "quiet"]],
    ["the log of an ended container, followed to its end", ["ended", "-f"]],
    ["a container that the pod does not have", ["web", "-c", "nobody"]],
    ["the previous log of a container without one", ["web", "-c", "main", "--previous"]],
    ["a pod that does not exist", ["nobody"]],
  ])("returns the same as a plain cluster: %s", async (_case, args) => {
    const there = await logs(plain, args);
    expect(await logs(here, args)).toEqual(there);
  });

  test.concurrent("returns the same as a plain cluster for a container that cannot start", async () => {
    // Each kubelet's message alternates between an attempt and its backoff.
    await eventuallyPasses(async () => expect(await logs(here, ["waiting"])).toEqual(await logs(plain, ["waiting"])));
  });

  test.concurrent("returns the logs of all containers as a plain cluster does, in any order of kubectl's requests", async () => {
    const lines = async (place: Place): Promise<string[]> => {
      const { code, stdout } = await logs(place, ["web", "--all-containers"]);
      expect(code).toBe(0);
      return stdout.split("\n").sort();
    };
    const there = await lines(plain);
    expect(there).toContain("prepared");
    expect(await lines(here)).toEqual(there);
  });

  test.concurrent("returns the kubelet's timestamps", async () => {
    const told = await kubectl(here.cluster, ["-n", here.namespace, "logs", "web", "-c", "main", "--timestamps"]);
    expect(told).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z line 0\n/);
  });

  test.concurrent("streams each line when it is written, and ends when the container ends", async ({
    onTestFinished: onFinished,
  }) => {
    const name = uniqueName("talker");
    await running(name, "while [ ! -f /tmp/end ]; do [ -f /tmp/say ] && cat /tmp/say && rm /tmp/say; sleep 0.1; done");
    const following = follow(name, [], onFinished);
    const say = (script: string): Promise<string> =>
      kubectl(here.cluster, ["-n", here.namespace, "exec", name, "--", "sh", "-c", script]);
    for (const word of ["one", "two"]) {
      await say(`echo ${word} >/tmp/new; mv /tmp/new /tmp/say`);
      await following.says(new RegExp(`${word}\n`));
    }
    await say("touch /tmp/end");
    const { code, stdout, stderr } = await following.ended;
    expect({ code, stdout: stdout.toString(), stderr }).toEqual({ code: 0, stdout: "one\ntwo\n", stderr: "" });
  });

  test.concurrent("serves a new pod of the same name its own log", async () => {
    const { cluster, namespace } = here;
    for (const word of ["first", "second"]) {
      await kubectl(cluster, ["-n", namespace, "delete", "pod", "named", "--ignore-not-found"]);
      await running("named", `echo ${word}; trap 'exit 0' TERM; sleep 3600 & wait`);
      await eventuallyPasses(async () => {
        expect(await kubectl(cluster, ["-n", namespace, "logs", "named"])).toBe(`${word}\n`);
      });
    }
  });

  // After the concurrent tests, which read the same pod.
  test("serves a debug container's log", async () => {
    const { cluster, namespace } = here;
    const name = uniqueName("debugger");
    const debug = ["debug", "web", "--image=localhost/busybox:1", "-c", name, "--", "echo", "found it"];
    await kubectl(cluster, ["-n", namespace, ...debug]);
    await eventuallyPasses(async () => {
      expect(await kubectl(cluster, ["-n", namespace, "logs", "web", "-c", name])).toBe("found it\n");
    });
  });

  test("uses no memory for a slow reader", async () => {
    const { cluster, namespace } = here;
    // 20 MB a second, in long lines that soon fill all buffers on the way.
    const line = "$(head -c 4000 /dev/zero | tr '\\0' x)";
    await running("flood", `while true; do yes ${line} | head -c 10000000; sleep 0.5; done`);
    const following = follow("flood");
    await eventually(() => following.received > 2 ** 20);
    following.child.stdout?.pause();
    const wait = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    // By then all buffers are full, and earlier data is garbage.
    await wait(8);
    const before = residentMb();
    await wait(6);
    expect(residentMb() - before).toBeLessThan(40);
    await kubectl(cluster, ["-n", namespace, "delete", "pod", "flood"]);
  });

  test("serves hundreds of followers, delays nothing else, and closes their connections", async () => {
    const { cluster, namespace } = here;
    const { host } = new URL(cluster.server);
    // A thousand lines a second would be too much for a controller with a tenth of a core.
    await running("popular", "while true; do date +%s; sleep 5; done");
    const before = residentMb();
    const path = `/api/v1/namespaces/${namespace}/pods/popular/log?follow=true&tailLines=1`;
    const agent = new Agent({ ca: cluster.caData, maxSockets: Number.POSITIVE_INFINITY });
    onTestFinished(() => agent.destroy());
    // Groups: the API server gives a node ten seconds for a handshake, too little for hundreds at once.
    for (let following = 0; following < 250; following += 25) {
      const more = Array.from({ length: 25 }, () => followed(`https://${host}${path}`, cluster.token, agent));
      for (const line of await Promise.all(more)) expect(line).toMatch(/^\d{10}\n/);
    }
    const asked = performance.now();
    expect(await kubectl(cluster, ["-n", namespace, "logs", "ended"], { timeoutMs: 60_000 })).toContain("last");
    expect(performance.now() - asked).toBeLessThan(30_000);
    expect(residentMb() - before).toBeLessThan(120);
    await running("meanwhile", "trap 'exit 0' TERM; sleep 3600 & wait");
    agent.destroy();
    const connections = (): number => openSockets(realNodes().legation.controller.pid);
    await eventually(() => connections() < 50, { what: "the end of the followers' connections", timeoutMs: 60_000 });
  }, 480_000);

  describe("a member that is declared lost soon", () => {
    useQuickProbes(["west"]);

    test.each<[string, (west: Cluster) => Promise<void>]>([
      ["frozen", ({ proxy }) => proxy.blackhole()],
      ["down", ({ proxy }) => proxy.cut()],
    ])("has its pods' logs refused within a minute, followed or not, while it is %s", async (_how, fault) => {
      const west = realNodes().inMember(here).cluster;
      onTestFinished(() => west.mend());
      await fault(west);
      const ask = async (more: readonly string[]): Promise<void> => {
        const { code, stderr, seconds } = await runStreaming(["-n", here.namespace, "logs", "ended", ...more], {
          kubeconfig: here.cluster.kubeconfig,
          transport: "SPDY",
        });
        expect(code).not.toBe(0);
        expect(stderr).toMatch(/cluster west (did not answer|cannot be reached): /);
        expect(seconds).toBeLessThan(50);
      };
      await Promise.all([ask([]), ask(["-f"])]);
      await west.mend();
      await eventuallyPasses(async () => {
        expect(await kubectl(here.cluster, ["-n", here.namespace, "logs", "ended"])).toBe("first\nlast\n");
      });
    });
  });

  test("ends a log whose connection in the member is cut", async () => {
    await running("cut", "while true; do echo tick; sleep 0.5; done");
    const following = follow("cut");
    await following.says(/tick\n/);
    await realNodes().inMember(here).cluster.proxy.reset();
    await following.ended;
  });

  test("ends followers when the controller is killed, and serves them again after its restart", async () => {
    const { controller } = realNodes().legation;
    await running("outliving", "while true; do echo tick; sleep 0.5; done");
    const following = follow("outliving");
    await following.says(/tick\n/);
    await controller.stop("SIGKILL");
    await following.ended;
    await controller.start();
    await eventuallyPasses(async () => {
      const told = await kubectl(here.cluster, ["-n", here.namespace, "logs", "outliving", "--tail=1"]);
      expect(told).toBe("tick\n");
    });
  });
});

/** Like `firstLine`, but repeats the request if the API server's handshake with the node timed out, as a user would. */
async function followed(url: string, token: string, agent: Agent): Promise<string> {
  let line = "";
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    line = await firstLine(url, token, agent);
    if (!line.includes("TLS handshake timeout")) break;
  }
  return line;
}

/** Returns the first line of a followed log; the connection stays open. */
function firstLine(url: string, token: string, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { agent, headers: { authorization: `Bearer ${token}` } }, (response) => {
      let text = "";
      response.on("error", () => {});
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes("\n")) resolve(text);
      });
      response.on("end", () => reject(new Error(`ended after "${text}" with ${response.statusCode}`)));
    });
    asked.on("error", reject);
  });
}

/** Counts the open sockets of a process. */
function openSockets(pid: number | undefined): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((file) => {
    try {
      return readlinkSync(`${folder}/${file}`).startsWith("socket:");
    } catch {
      // Closed after the listing.
      return false;
    }
  }).length;
}

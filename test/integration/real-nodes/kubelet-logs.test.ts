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

// The same pods on a plain cluster, and on a host whose member runs them: whoever asks the host for a log must be told
// what the plain cluster tells.

const LINES = 'i=0; while [ $i -lt 20 ]; do echo "line $i"; i=$((i+1)); done; sleep 0.5; echo oops >&2';

const WORK = { name: "work", mountPath: "/work" };
// While a container waits to be started again, the run before is this one: the second stays.
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

  /** What kubectl says in a place, without what is that place's own. */
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

  /** A pod of the host's, running. */
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

  // These two mostly wait; those after them that neither count nor disturb do not wait for their end.
  test.concurrent("the previous run's log is another one than this run's", async ({ expect }) => {
    const told = (more: readonly string[]): Promise<string> =>
      kubectl(here.cluster, ["-n", here.namespace, "logs", "again", ...more]);
    await eventuallyPasses(async () => {
      const [now, before] = [await told([]), await told(["--previous"])];
      expect(before).toMatch(/^run at [\d.]+ /);
      expect(now).toMatch(/^run at [\d.]+ /);
      expect(now).not.toBe(before);
    });
  });

  test.concurrent("a silent log is followed for as long as its reader likes", async ({
    expect,
    onTestFinished: onFinished,
  }) => {
    const following = follow("web", ["-c", "quiet"], onFinished);
    // Longer than any answer that is not followed may take: ANSWER_TIMEOUT_MS of src/kubelet/logs.ts.
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
    ["an init container's", ["web", "-c", "init"]],
    ["a container's that has written nothing", ["web", "-c", "quiet"]],
    ["an ended container's, followed to its end", ["ended", "-f"]],
    ["a container's that the pod does not have", ["web", "-c", "nobody"]],
    ["a container's that has not run before", ["web", "-c", "main", "--previous"]],
    ["a pod's that is not there", ["nobody"]],
  ])("%s is what a plain cluster tells", async (_case, args) => {
    const there = await logs(plain, args);
    expect(await logs(here, args)).toEqual(there);
  });

  test.concurrent("a container's that cannot start is what a plain cluster tells", async () => {
    // Each kubelet has other words for it while it tries than between two tries.
    await eventuallyPasses(async () => expect(await logs(here, ["waiting"])).toEqual(await logs(plain, ["waiting"])));
  });

  test.concurrent("all containers' are what a plain cluster tells, in whichever order kubectl asks for them", async () => {
    const lines = async (place: Place): Promise<string[]> => {
      const { code, stdout } = await logs(place, ["web", "--all-containers"]);
      expect(code).toBe(0);
      return stdout.split("\n").sort();
    };
    const there = await lines(plain);
    expect(there).toContain("prepared");
    expect(await lines(here)).toEqual(there);
  });

  test.concurrent("timestamps are the kubelet's", async () => {
    const told = await kubectl(here.cluster, ["-n", here.namespace, "logs", "web", "-c", "main", "--timestamps"]);
    expect(told).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z line 0\n/);
  });

  test.concurrent("a follower sees each line when it is written, and the end when the container ends", async ({
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

  test.concurrent("a pod that takes another's name has its log to itself", async () => {
    const { cluster, namespace } = here;
    for (const word of ["first", "second"]) {
      await kubectl(cluster, ["-n", namespace, "delete", "pod", "named", "--ignore-not-found"]);
      await running("named", `echo ${word}; trap 'exit 0' TERM; sleep 3600 & wait`);
      await eventuallyPasses(async () => {
        expect(await kubectl(cluster, ["-n", namespace, "logs", "named"])).toBe(`${word}\n`);
      });
    }
  });

  // Later than the others: they read the same pod.
  test("a debug container's log is read as any other's", async () => {
    const { cluster, namespace } = here;
    const name = uniqueName("debugger");
    const debug = ["debug", "web", "--image=localhost/busybox:1", "-c", name, "--", "echo", "found it"];
    await kubectl(cluster, ["-n", namespace, ...debug]);
    await eventuallyPasses(async () => {
      expect(await kubectl(cluster, ["-n", namespace, "logs", "web", "-c", name])).toBe("found it\n");
    });
  });

  test("a slow reader costs the controller no memory", async () => {
    const { cluster, namespace } = here;
    // 20 MB a second, as long as it runs, in lines that are long enough to fill all buffers on the way soon.
    const line = "$(head -c 4000 /dev/zero | tr '\\0' x)";
    await running("flood", `while true; do yes ${line} | head -c 10000000; sleep 0.5; done`);
    const following = follow("flood");
    await eventually(() => following.received > 2 ** 20);
    following.child.stdout?.pause();
    const wait = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    // All buffers on the way are full by then, and what came before is garbage.
    await wait(8);
    const before = residentMb();
    await wait(6);
    expect(residentMb() - before).toBeLessThan(40);
    await kubectl(cluster, ["-n", namespace, "delete", "pod", "flood"]);
  });

  test("a thousand followers are served, hold up nothing else, and are let go", async () => {
    const { cluster, namespace } = here;
    const { host } = new URL(cluster.server);
    // A thousand lines a second would be more than a controller can pass on that has a tenth of a core.
    await running("popular", "while true; do date +%s; sleep 5; done");
    const before = residentMb();
    const path = `/api/v1/namespaces/${namespace}/pods/popular/log?follow=true&tailLines=1`;
    const agent = new Agent({ ca: cluster.caData, maxSockets: Number.POSITIVE_INFINITY });
    onTestFinished(() => agent.destroy());
    // All follow to the end, but come by and by: the API server gives a node ten seconds for a handshake, and a thousand
    // at once are more than a busy machine can do in that time.
    for (let following = 0; following < 1_000; following += 25) {
      const more = Array.from({ length: 25 }, () => followed(`https://${host}${path}`, cluster.token, agent));
      for (const line of await Promise.all(more)) expect(line).toMatch(/^\d{10}\n/);
    }
    const asked = performance.now();
    expect(await kubectl(cluster, ["-n", namespace, "logs", "ended"], { timeoutMs: 60_000 })).toContain("last");
    expect(performance.now() - asked).toBeLessThan(30_000);
    expect(residentMb() - before).toBeLessThan(300);
    await running("meanwhile", "trap 'exit 0' TERM; sleep 3600 & wait");
    agent.destroy();
    const connections = (): number => openSockets(realNodes().legation.controller.pid);
    await eventually(() => connections() < 200, { what: "the end of the followers' connections", timeoutMs: 60_000 });
  }, 480_000);

  describe("a member that is soon missed", () => {
    useQuickProbes(["west"]);

    test.each<[string, (west: Cluster) => Promise<void>]>([
      ["is frozen", ({ proxy }) => proxy.blackhole()],
      ["is down", ({ proxy }) => proxy.cut()],
    ])("%s: its pods' logs are refused within a minute, followed or not", async (_how, fault) => {
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

  test("a log that is cut off in the member ends", async () => {
    await running("cut", "while true; do echo tick; sleep 0.5; done");
    const following = follow("cut");
    await following.says(/tick\n/);
    await realNodes().inMember(here).cluster.proxy.reset();
    await following.ended;
  });

  test("followers end when the controller is killed, and may follow again when it is back", async () => {
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

/** The same as `firstLine`; what the API server's handshake with the node was not made in time for is asked again, as by people. */
async function followed(url: string, token: string, agent: Agent): Promise<string> {
  let line = "";
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    line = await firstLine(url, token, agent);
    if (!line.includes("TLS handshake timeout")) break;
  }
  return line;
}

/** The first line of a log that is followed; the connection stays open. */
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

/** How many sockets a process has open. */
function openSockets(pid: number | undefined): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((file) => {
    try {
      return readlinkSync(`${folder}/${file}`).startsWith("socket:");
    } catch {
      // Closed since it was listed.
      return false;
    }
  }).length;
}
